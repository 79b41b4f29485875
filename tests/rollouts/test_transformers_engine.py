import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from envsched.config import RolloutSettings
from envsched.rollouts.engine import (
    Completion,
    EngineError,
    Sampling,
    StaleWeightsError,
    generate,
    write_version,
)
from envsched.rollouts.slot_cache import SlotCache
from envsched.rollouts.transformers_engine import TransformersEngine

GREEDY = Sampling(0.0, 1.0, 12, ())
SAMPLED = Sampling(1.0, 1.0, 12, stop=(7, 8, 9))
Loaded = tuple[TransformersEngine, PreTrainedModel]


def random_prompts(count: int, longest: int = 60, seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(5, 590) for _ in range(rng.randint(1, longest))] for _ in range(count)]


def reference_logprobs(model: PreTrainedModel, prompt: list[int], written: list[int]) -> torch.Tensor:
    """log-softmax of the written tokens by a full forward pass at temperature 1."""
    with torch.inference_mode():
        logits = model(torch.tensor([prompt + written])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits.float(), -1)[range(len(written)), written]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2's architecture in small: three query heads share a key head."""
    torch.manual_seed(0)
    shape = {"hidden_size": 96, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 600}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2}
    config = LlamaConfig(**shape, **heads, initializer_range=0.2, tie_word_embeddings=True)
    directory = tmp_path_factory.mktemp("llama")
    LlamaForCausalLM(config).save_pretrained(directory)
    write_version(directory, 0)
    return directory


@pytest.fixture(params=["qwen3", "llama"])
def directory(request: pytest.FixtureRequest, policies: list[Path], llama: Path) -> Path:
    return policies[0] if request.param == "qwen3" else llama


@pytest.fixture
def loaded(directory: Path, settings: RolloutSettings) -> Iterator[Loaded]:
    """An engine and the same weights in transformers' own model."""
    engine = TransformersEngine(settings, directory, 0)
    yield engine, AutoModelForCausalLM.from_pretrained(directory).eval()
    engine.close()


def test_greedy_equals_transformers_generate(loaded: Loaded) -> None:
    engine, model = loaded
    prompts = random_prompts(20)
    for prompt, completion in zip(prompts, generate(engine, prompts, GREEDY, range(20)), strict=True):
        own = model.generate(
            torch.tensor([prompt]), do_sample=False, max_new_tokens=12, eos_token_id=None, pad_token_id=0
        )
        assert completion.token_ids == own[0, len(prompt) :].tolist()
        assert not completion.finished


def test_logprobs_equal_a_full_forward_pass(loaded: Loaded) -> None:
    engine, model = loaded
    prompts = random_prompts(20)
    for prompt, completion in zip(prompts, generate(engine, prompts, SAMPLED, range(20)), strict=True):
        expected = reference_logprobs(model, prompt, completion.token_ids)
        assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=1e-4)


def test_continued_conversations_equal_fresh_ones(loaded: Loaded) -> None:
    engine, model = loaded
    conversations = random_prompts(8, longest=20)
    observations = random_prompts(16, longest=9, seed=1)
    for turn in range(2):
        before = engine.tokens_read
        new = conversations if turn == 0 else observations[:8]
        completions = generate(engine, conversations, SAMPLED, range(8))
        # Every token is read once; the last of each completion only if the conversation goes on.
        written = sum(len(c.token_ids) - 1 for c in completions) + 8 * turn
        assert engine.tokens_read - before <= sum(map(len, new)) + written
        for index, completion in enumerate(completions):
            expected = reference_logprobs(model, conversations[index], completion.token_ids)
            assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=1e-4)
            conversations[index] = (
                conversations[index] + completion.token_ids + observations[8 * turn + index]
            )


def test_what_is_drawn_depends_on_nothing_else_that_is_queued(engine: TransformersEngine) -> None:
    prompts = random_prompts(20)
    together = generate(engine, prompts, SAMPLED, range(100, 120))
    order = random.Random(0).sample(range(20), 20)
    shuffled = generate(engine, [prompts[i] for i in order], SAMPLED, [100 + i for i in order])
    assert tokens_of(shuffled) == tokens_of([together[i] for i in order])
    alone = [generate(engine, [prompt], SAMPLED, [100 + i])[0] for i, prompt in enumerate(prompts)]
    assert tokens_of(alone) == tokens_of(together)
    other = generate(engine, prompts, SAMPLED, range(200, 220))
    assert tokens_of(other) != tokens_of(together)


def test_requests_that_join_later_change_nothing(engine: TransformersEngine) -> None:
    prompts = random_prompts(30)
    together = generate(engine, prompts, SAMPLED, range(30))
    done: dict[int, Completion] = {}
    for request, prompt in enumerate(prompts):
        engine.submit(request, prompt, SAMPLED, request)
        done.update(engine.step())
    while len(done) < len(prompts):
        done.update(engine.step())
    assert tokens_of([done[request] for request in range(30)]) == tokens_of(together)
    assert engine.step() == []


def test_prompts_that_begin_alike_are_read_once(engine: TransformersEngine, policies: list[Path]) -> None:
    prompts = [[*range(10, 90), 100 + i] for i in range(6)]
    one = Sampling(1.0, 1.0, 1, ())
    together = generate(engine, prompts, one, range(6))
    assert engine.tokens_read == 80 + 6
    engine.load_weights(policies[0], 0)
    alone = [generate(engine, [prompt], one, [seed])[0] for seed, prompt in enumerate(prompts)]
    assert engine.tokens_read == 2 * (80 + 6)
    assert tokens_of(alone) == tokens_of(together)


def test_the_longest_unused_conversation_is_forgotten_first(engine: TransformersEngine) -> None:
    one = Sampling(1.0, 1.0, 1, ())
    prompts = [list(range(20 * i, 20 * i + 10)) for i in range(10)]  # no two share a token

    def read(index: int) -> int:
        """How many tokens the engine reads for this prompt."""
        before = engine.tokens_read
        generate(engine, [prompts[index]], one, [0])
        return engine.tokens_read - before

    assert [read(i) for i in range(8)] == [10] * 8
    assert read(0) == 1
    assert [read(8), read(9)] == [10, 10]
    assert [read(0), read(3), read(4)] == [1, 1, 1]
    assert [read(1), read(2)] == [10, 10]


def test_completions_end_at_stop_tokens_and_limits(engine: TransformersEngine) -> None:
    prompts = random_prompts(40)
    everything = Sampling(1.0, 1.0, 20, stop=tuple(range(0, 600, 20)))
    completions = generate(engine, prompts, everything, range(40))
    assert {completion.finished for completion in completions} == {True, False}
    for completion in completions:
        ended = [token in everything.stop for token in completion.token_ids]
        assert not any(ended[:-1])
        assert completion.finished == ended[-1]
        assert completion.finished or len(completion.token_ids) == 20
    [cut] = generate(engine, [list(range(190))], Sampling(0.0, 1.0, 60, ()), [0])
    assert (len(cut.token_ids), cut.finished) == (2, False)
    for prompt in ([], [1] * 192):
        with pytest.raises(ValueError, match=f"request 5: {len(prompt)} tokens; expected 1 to 191"):
            engine.submit(5, prompt, GREEDY, 0)


def test_top_p_and_temperature_shape_the_logprobs(engine: TransformersEngine, policies: list[Path]) -> None:
    model = AutoModelForCausalLM.from_pretrained(policies[0]).eval()
    prompts = random_prompts(6)
    for completion, prompt in zip(
        generate(engine, prompts, Sampling(0.5, 0.3, 4, ()), range(6)), prompts, strict=True
    ):
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + completion.token_ids])).logits[0, len(prompt) - 1 : -1]
        for row, token, logprob in zip(logits, completion.token_ids, completion.logprobs, strict=True):
            ordered, index = torch.softmax(row / 0.5, -1).sort(descending=True)
            kept = index[: int((ordered.cumsum(-1) - ordered < 0.3).sum())]
            assert token in kept
            expected = torch.log_softmax(row[kept] / 0.5, -1)[(kept == token).nonzero()[0, 0]]
            assert logprob == pytest.approx(float(expected), abs=1e-3)


def test_new_weights_replace_the_old_ones_and_what_they_computed(
    engine: TransformersEngine, policies: list[Path], settings: RolloutSettings
) -> None:
    prompts = random_prompts(8)
    old = generate(engine, prompts, SAMPLED, range(8))
    engine.load_weights(policies[1], 1)
    assert engine.version == 1
    new = generate(engine, prompts, SAMPLED, range(8))
    fresh = TransformersEngine(settings, policies[1], 1)
    assert new == generate(fresh, prompts, SAMPLED, range(8))
    assert tokens_of(new) != tokens_of(old)


def test_stale_weights_are_refused_and_leave_the_engine_as_it_was(
    engine: TransformersEngine, policies: list[Path], tmp_path: Path
) -> None:
    before = generate(engine, [[1, 2, 3]], GREEDY, [0])
    with pytest.raises(StaleWeightsError, match="holds policy version 1, expected 2"):
        engine.load_weights(policies[1], 2)
    with pytest.raises(StaleWeightsError, match="cannot be read"):
        engine.load_weights(tmp_path, 1)
    assert engine.version == 0
    assert tokens_of(generate(engine, [[1, 2, 3]], GREEDY, [0])) == tokens_of(before)


def test_directories_that_do_not_fit_are_refused(
    engine: TransformersEngine, llama: Path, settings: RolloutSettings, tmp_path: Path, policies: list[Path]
) -> None:
    with pytest.raises(EngineError, match=r"of another shape: .*lm_head|of another shape: model"):
        engine.load_weights(llama, 0)
    write_version(tmp_path, 0)
    with pytest.raises(EngineError, match="no model can be loaded"):
        TransformersEngine(settings, tmp_path, 0)
    broken = tmp_path / "broken"
    shutil.copytree(policies[0], broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(EngineError, match="no model can be loaded"):
        TransformersEngine(settings, broken, 0)
    with pytest.raises(EngineError, match="the weights cannot be read"):
        engine.load_weights(broken, 0)


def test_models_that_do_not_see_all_tokens_are_refused(
    settings: RolloutSettings, tmp_path: Path, policies: list[Path]
) -> None:
    shutil.copytree(policies[0], tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"use_sliding_window": True, "sliding_window": 8, "layer_types": ["sliding_attention"] * 5}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineError, match="layers are sliding_attention"):
        TransformersEngine(settings, tmp_path, 0)


def test_logits_that_are_not_numbers_end_the_engine(
    settings: RolloutSettings, tmp_path: Path, policies: list[Path]
) -> None:
    model = AutoModelForCausalLM.from_pretrained(policies[0])
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)
    model.save_pretrained(tmp_path)
    write_version(tmp_path, 0)
    with pytest.raises(EngineError, match="policy version 0 gives logits that are not numbers"):
        generate(TransformersEngine(settings, tmp_path, 0), [[1]], GREEDY, [0])


@given(data=st.data())
@hypothesis_settings(max_examples=30)
def test_shared_prefixes_equal_a_slow_count(data: st.DataObject) -> None:
    cache = SlotCache(4, 6, layers=1, heads=1, size=1, like=torch.zeros(1))
    token = st.integers(0, 2)
    held = data.draw(st.lists(st.lists(token, min_size=1, max_size=6), min_size=4, max_size=4))
    for slot, tokens in enumerate(held):
        cache.begin(slot, np.array([9] * 6), slot, 0)
        cache.begin(slot, np.array(tokens), slot, 0)
    prompt = data.draw(st.lists(token, min_size=1, max_size=6))
    slow = [
        next((i for i, (a, b) in enumerate(zip(t, prompt, strict=False)) if a != b), min(len(t), len(prompt)))
        for t in held
    ]
    assert cache.shared(np.array(prompt)).tolist() == slow


def tokens_of(completions: list[Completion]) -> list[list[int]]:
    return [completion.token_ids for completion in completions]
