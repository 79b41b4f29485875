"""Updates on a DeepSpeed engine equal plain ones, whatever the ZeRO stage, ranks and micro-batches."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from envsched.policy.batches import Sample, samples, split
from envsched.policy.trainer_client import free_port
from envsched.rollouts.rollout import Group

pytestmark = pytest.mark.slow

Cases = dict[str, dict[str, Any]]
ROOT = Path(__file__).parents[2]
RATE, BETAS, CLIP_LOW, CLIP_HIGH, CAP = 1e-3, (0.9, 0.99), 0.2, 0.28, 2.0
BASE = {
    "learning_rate": RATE,
    "betas": BETAS,
    "clip_low": CLIP_LOW,
    "clip_high": CLIP_HIGH,
    "correction_cap": CAP,
    "gradient_clip": 1.0,
    "cooldown": 0.0,
    "micro_tokens": 64,  # one to three rollouts
}
TWICE = {"epochs": 2, "minibatches": 2}
STAGES = {f"zero {stage}": {"zero_stage": stage} for stage in range(4)}
CASES: Cases = {
    **STAGES,
    "zero 0, twice": {"zero_stage": 0, **TWICE},
    "zero 3, twice": {"zero_stage": 3, **TWICE},
    "bfloat16": {"zero_stage": 2, "precision": "bfloat16"},
}
ONE_RANK_CASES: Cases = {
    **CASES,
    "large micro-batches": {"micro_tokens": 100_000},
    "zero 1, sgd": {"zero_stage": 1, "optimizer": "sgd"},
    "bfloat16, zero 0": {"zero_stage": 0, "precision": "bfloat16"},
    "warm-up": {"warmup_steps": 3},
    "cooldown": {"cooldown": 1.0},
}


def run(ranks: int, cases: Cases, model: Path, trajectories: list[Path], out: Path) -> Path:
    """Play `run_trainers.py` on so many ranks; the folder with its results."""
    job = {
        "model": str(model),
        "trajectories": [str(path) for path in trajectories],
        "cases": {name: BASE | case for name, case in cases.items()},
        "out": str(out),
    }
    (out / "job.json").write_text(json.dumps(job))
    script = [str(Path(__file__).with_name("run_trainers.py")), str(out / "job.json")]
    variables = os.environ | {
        "DS_ACCELERATOR": "cpu",
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONPATH": str(ROOT),
        "TORCH_EXTENSIONS_DIR": str(out / "extensions"),
    }
    port = str(free_port())
    if ranks == 1:
        variables |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
        variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, *script]
    else:
        launcher = ["-m", "deepspeed.launcher.runner", "--num_gpus", str(ranks), "--master_port", port]
        command = [sys.executable, *launcher, "--no_local_rank", *script]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def one_rank(tiny_policy: Path, trajectories: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(1, ONE_RANK_CASES, tiny_policy, trajectories, tmp_path_factory.mktemp("one-rank"))


@pytest.fixture(scope="module")
def two_ranks(tiny_policy: Path, trajectories: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(2, CASES, tiny_policy, trajectories, tmp_path_factory.mktemp("two-ranks"))


def curve(results: Path, case: str, part: str = "curve") -> list[dict[str, float]]:
    found: list[dict[str, float]] = json.loads((results / "results.json").read_text())[case][part]
    return found


def weights(directory: Path) -> torch.Tensor:
    """All weights in one row, in float32."""
    tensors = load_file(directory / "model.safetensors")
    return torch.cat([tensors[name].float().flatten() for name in sorted(tensors)])


def distance(one: Path, other: Path, start: Path) -> float:
    """How far two policies are apart, as a share of the way that one of them has come."""
    a, b, origin = weights(one), weights(other), weights(start)
    return float((a - b).norm() / (a - origin).norm())


class Reference:
    """GRPO on a plain model, rollout by rollout, with the formula written out."""

    def __init__(self, directory: Path, epochs: int, minibatches: int) -> None:
        from transformers import AutoModelForCausalLM

        self.model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE, betas=BETAS, weight_decay=0.0)
        self.epochs, self.minibatches = epochs, minibatches

    def update(self, groups: list[Group]) -> tuple[float, float]:
        """Mean loss of a token, and mean gradient norm before clipping."""
        chosen, tokens = samples(groups, normalize=True)
        if not chosen:
            return 0.0, 0.0
        parts = split(chosen, self.minibatches)
        with torch.no_grad():
            old = {id(s): self._logprobs(s) for s in chosen}
        total, norms = 0.0, []
        for _ in range(self.epochs):
            for part in parts:
                loss = sum(self._loss(s, old[id(s)]) for s in part)
                assert isinstance(loss, torch.Tensor)
                (loss / (tokens * len(part) / len(chosen))).backward()
                norms.append(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0).item())
                self.optimizer.step()
                self.optimizer.zero_grad()
                total += loss.item()
        return total / (tokens * self.epochs), sum(norms) / len(norms)

    def save(self, directory: Path) -> Path:
        self.model.save_pretrained(directory)
        return directory

    def _logprobs(self, sample: Sample) -> torch.Tensor:
        logits = self.model(torch.tensor([sample.token_ids])).logits[0, :-1]
        return logits.log_softmax(-1).gather(1, torch.tensor(sample.token_ids[1:])[:, None])[:, 0]

    def _loss(self, sample: Sample, old: torch.Tensor) -> torch.Tensor:
        new, engine, a = self._logprobs(sample), torch.tensor(sample.logprobs[1:]), sample.advantage
        ratio = torch.exp(new - old)
        surrogate = torch.minimum(ratio * a, ratio.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH) * a)
        losses = -torch.exp(old - engine).clamp(max=CAP) * surrogate
        return losses[torch.tensor(sample.generated[1:])].sum()


@pytest.fixture(scope="module")
def references(
    tiny_policy: Path, steps: list[list[Group]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[tuple[float, float]], Path]]:
    """Losses and norms, and the folder of the last policy, for one update a step and for several."""
    found = {}
    for name, options in {"once": (1, 1), "twice": (2, 2)}.items():
        reference = Reference(tiny_policy, *options)
        losses = [reference.update(groups) for groups in steps]
        found[name] = losses, reference.save(tmp_path_factory.mktemp("reference") / name)
    return found


IN_FLOAT32 = [*STAGES, "zero 0, twice", "zero 3, twice"]


@pytest.mark.parametrize(
    ("ranks", "case"),
    [
        *(("one_rank", case) for case in [*IN_FLOAT32, "large micro-batches"]),
        *(("two_ranks", case) for case in IN_FLOAT32),
    ],
)
def test_updates_equal_a_plain_reference(
    ranks: str, case: str, references: Any, tiny_policy: Path, request: pytest.FixtureRequest
) -> None:
    results: Path = request.getfixturevalue(ranks)
    expected, last = references["twice" if "twice" in case else "once"]
    found = curve(results, case)
    assert [m["update/loss"] for m in found] == pytest.approx(
        [loss for loss, _ in expected], rel=1e-3, abs=1e-6
    )
    norms = [m.get("update/gradient_norm", 0.0) for m in found]
    assert norms == pytest.approx([norm for _, norm in expected], rel=1e-3)
    assert distance(results / case / "last", last, tiny_policy) < 0.01


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ranks", ["one_rank", "two_ranks"])
def test_a_saved_trainer_goes_on_as_if_nothing_had_been(
    case: str, ranks: str, request: pytest.FixtureRequest
) -> None:
    results: Path = request.getfixturevalue(ranks)
    assert curve(results, case, "resumed") == curve(results, case)[1:]
    folder = results / case
    assert torch.equal(weights(folder / "resumed"), weights(folder / "last"))


@pytest.mark.parametrize("case", ["bfloat16", "bfloat16, zero 0"])
def test_bfloat16_comes_near_float32(case: str, one_rank: Path, tiny_policy: Path) -> None:
    losses = [m["update/loss"] for m in curve(one_rank, case)]
    expected = [m["update/loss"] for m in curve(one_rank, "zero 0")]
    assert losses == pytest.approx(expected, rel=0.02, abs=1e-3)
    # Weights are rounded when they are written, so that they come near, not close.
    assert distance(one_rank / "zero 0" / "last", one_rank / case / "last", tiny_policy) < 0.3


@pytest.mark.parametrize("ranks", ["one_rank", "two_ranks"])
def test_a_step_without_informative_groups_tells_that_it_learnt_nothing(
    ranks: str, request: pytest.FixtureRequest
) -> None:
    metrics = curve(request.getfixturevalue(ranks), "zero 0")[2]
    assert metrics == {"update/loss": 0.0, "update/learnt_rollouts": 0.0}


def test_sgd_moves_along_the_clipped_gradient(one_rank: Path, tiny_policy: Path) -> None:
    first = one_rank / "zero 1, sgd" / "first"
    norm = curve(one_rank, "zero 1, sgd")[0]["update/gradient_norm"]
    moved = float((weights(first) - weights(tiny_policy)).norm())
    assert moved == pytest.approx(RATE * min(norm, 1.0), rel=1e-3)


def test_warm_up_moves_less_at_first(one_rank: Path, tiny_policy: Path) -> None:
    def moved(case: str) -> float:
        return float((weights(one_rank / case / "first") - weights(tiny_policy)).norm())

    assert moved("warm-up") < 0.5 * moved("zero 0")
    assert distance(one_rank / "zero 0" / "last", one_rank / "warm-up" / "last", tiny_policy) < 1


def test_in_a_cooldown_a_step_of_adam_shrinks_with_the_rate(one_rank: Path, tiny_policy: Path) -> None:
    def moved(case: str) -> torch.Tensor:
        return weights(one_rank / case / "first") - weights(tiny_policy)

    # Of four steps that all belong to the cooldown, the first has 4 / 5 of the rate.
    assert torch.allclose(moved("cooldown"), 0.8 * moved("zero 0"), rtol=1e-2, atol=1e-6)


def test_a_checkpoint_keeps_the_files_beside_the_weights(one_rank: Path, tiny_policy: Path) -> None:
    last = one_rank / "zero 0" / "last"
    assert (last / "tokenizer_config.json").read_bytes() == (
        tiny_policy / "tokenizer_config.json"
    ).read_bytes()
    assert json.loads((last / "version.json").read_text()) == {"version": 4}
    assert [path.name for path in last.parent.iterdir() if path.name.startswith(".")] == []


def test_nothing_is_compiled(one_rank: Path, two_ranks: Path) -> None:
    assert not (one_rank / "extensions").exists()
    assert not (two_ranks / "extensions").exists()
