"""Ridge regression, against fits that really leave a row out."""

from collections.abc import Callable

import numpy as np
import pytest

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.ridge import PENALTIES, Ridge, leave_one_out
from envsched.variance.evidence import Evidence

MakeEvidence = Callable[..., Evidence]


def test_left_out_rows_are_as_if_never_fitted() -> None:
    rng = np.random.default_rng(0)
    inputs, weight = rng.normal(size=(30, 5)), rng.uniform(0.2, 1, size=30)
    targets = inputs @ rng.normal(size=5) + rng.normal(size=30)
    asked = rng.normal(size=(4, 5))

    def solve(rows: np.ndarray, penalty: float) -> np.ndarray:
        x, w = inputs[rows], weight[rows]
        return np.linalg.solve(x.T @ (w[:, None] * x) + penalty * np.eye(5), x.T @ (w * targets[rows]))

    every = np.arange(30)
    errors, without = [], []
    for penalty in PENALTIES:
        left_out = np.array([inputs[i] @ solve(every[every != i], penalty) for i in every])
        without.append(left_out)
        errors.append(float(weight @ (targets - left_out) ** 2))
    best = int(np.argmin(errors))
    error, everywhere, found = leave_one_out(inputs, targets, weight, asked)
    assert 0 < best < len(PENALTIES) - 1
    assert error == pytest.approx(errors[best])
    assert found == pytest.approx(without[best])
    assert everywhere == pytest.approx(asked @ solve(every, PENALTIES[best]))


def test_learns_from_text_and_environment(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = Ridge(told_pool, 0)
    records = {f"{name}/{i}": (16.0 * (i % 2), 16.0) for name in "ab" for i in range(6)}
    mean = dict(zip(scheduler.keys, scheduler.expected(evidence(scheduler, records)), strict=True))
    assert mean["c/1"] > 0.8 > 0.2 > mean["c/0"]
    records = {f"{name}/{i}": (16.0 * (name == "a"), 16.0) for name in "ab" for i in range(6)}
    mean = dict(zip(scheduler.keys, scheduler.expected(evidence(scheduler, records)), strict=True))
    assert mean["a/7"] > 0.8 > 0.2 > mean["b/7"]
    assert mean["c/7"] == pytest.approx(0.5, abs=0.1)


def test_nothing_known_leaves_the_pool(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = Ridge(told_pool, 0)
    assert scheduler.expected(evidence(scheduler, {})) == pytest.approx(np.full(24, 0.5))
