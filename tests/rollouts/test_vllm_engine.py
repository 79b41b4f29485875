import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoModelForCausalLM

from envsched.config import RolloutSettings
from envsched.rollouts.engine import EngineError, Sampling, StaleWeightsError, generate, write_version

if TYPE_CHECKING:
    from envsched.rollouts.vllm_engine import VllmEngine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed"),
]

SAMPLED = Sampling(1.0, 1.0, 12, stop=tuple(range(0, 600, 25)))
GREEDY = Sampling(0.0, 1.0, 12, ())


@pytest.fixture(scope="module")
def vllm(policies: list[Path]) -> Iterator["VllmEngine"]:
    """An engine with version 0 at the start; tests leave the version they found."""
    import torch_geometric.utils.ppr  # noqa: F401  loads numba, which must not keep vLLM from starting

    from envsched.rollouts.vllm_engine import VllmEngine

    settings = RolloutSettings(
        concurrency=8, context_tokens=192, turn_tokens=16, cpu_cache_gb=1, gpu_memory=0.1
    )
    opened = VllmEngine(settings, policies[0], 0)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def prompts() -> list[list[int]]:
    rng = random.Random(0)
    return [[rng.randrange(5, 590) for _ in range(rng.randint(1, 60))] for _ in range(20)]


def test_logprobs_equal_a_full_forward_pass(
    vllm: "VllmEngine", prompts: list[list[int]], policies: list[Path]
) -> None:
    model = AutoModelForCausalLM.from_pretrained(policies[0]).eval()
    for prompt, completion in zip(prompts, generate(vllm, prompts, SAMPLED, range(20)), strict=True):
        ids = completion.token_ids
        assert completion.finished == (ids[-1] in SAMPLED.stop)
        assert completion.finished or len(ids) == 12
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        expected = torch.log_softmax(logits, -1)[range(len(ids)), ids]
        assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=1e-3)


def test_seeds_decide_what_is_drawn(vllm: "VllmEngine", prompts: list[list[int]]) -> None:
    first = generate(vllm, prompts, SAMPLED, range(20))
    again = generate(vllm, prompts[::-1], SAMPLED, range(20)[::-1])[::-1]
    assert [c.token_ids for c in again] == [c.token_ids for c in first]
    other = generate(vllm, prompts, SAMPLED, range(100, 120))
    assert [c.token_ids for c in other] != [c.token_ids for c in first]


def test_both_engines_take_the_likeliest_tokens(
    vllm: "VllmEngine", prompts: list[list[int]], policies: list[Path], settings: RolloutSettings
) -> None:
    from envsched.rollouts.transformers_engine import TransformersEngine

    other = TransformersEngine(settings, policies[0], 0)
    ours = [c.token_ids for c in generate(vllm, prompts, GREEDY, range(20))]
    assert ours == [c.token_ids for c in generate(other, prompts, GREEDY, range(20))]


def test_new_weights_replace_the_old_ones(
    vllm: "VllmEngine", prompts: list[list[int]], policies: list[Path]
) -> None:
    old = generate(vllm, prompts, GREEDY, range(20))
    vllm.load_weights(policies[1], 1)
    assert vllm.version == 1
    new = generate(vllm, prompts, GREEDY, range(20))
    model = AutoModelForCausalLM.from_pretrained(policies[1]).eval()
    for prompt, before, after in zip(prompts, old, new, strict=True):
        assert before.token_ids != after.token_ids
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + after.token_ids])).logits[0, len(prompt) - 1 : -1]
        assert logits.argmax(-1).tolist() == after.token_ids
    vllm.load_weights(policies[0], 0)
    assert [c.token_ids for c in generate(vllm, prompts, GREEDY, range(20))] == [c.token_ids for c in old]


def test_stale_weights_are_refused(vllm: "VllmEngine", policies: list[Path], tmp_path: Path) -> None:
    with pytest.raises(StaleWeightsError, match="holds policy version 1, expected 2"):
        vllm.load_weights(policies[1], 2)
    assert vllm.version == 0
    write_version(tmp_path, 1)
    with pytest.raises(EngineError, match="cannot be loaded"):
        vllm.load_weights(tmp_path, 1)
