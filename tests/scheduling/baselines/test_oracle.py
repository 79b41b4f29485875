"""The oracle takes what truly varies most."""

from collections import Counter

import numpy as np
import pytest

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.oracle import Oracle
from envsched.scheduling.registry import SCHEDULERS
from envsched.scheduling.scheduler import ScheduleError


def bernoulli(**rates: float) -> dict[str, tuple[float, float]]:
    return {f"a/{name}": (rate, rate * (1 - rate)) for name, rate in rates.items()}


def make(truth: dict[str, tuple[float, float]], seed: int = 0, group_size: int = 8) -> Oracle:
    return Oracle([NodeProfile(key) for key in truth], seed, group_size, truth=lambda: truth)


def test_largest_variances_come_first() -> None:
    oracle = make(bernoulli(v=0.9, w=0.45, x=0.5, y=0.0, z=0.3))
    batch = oracle.next_batch(3, 0)
    assert batch.keys == ("a/x", "a/w", "a/z")
    assert [task.value for task in batch.tasks] == pytest.approx([0.25, 0.2475, 0.21])
    assert batch.tasks[0].context == {"mean": 0.5}


def test_truth_is_asked_anew_for_every_batch() -> None:
    truth = bernoulli(x=0.5, y=0.0)
    oracle = make(truth)
    assert oracle.next_batch(1, 0).keys == ("a/x",)
    truth |= bernoulli(x=1.0, y=0.2)
    assert oracle.next_batch(1, 1).keys == ("a/y",)


def test_ties_fall_at_random_but_reproducibly() -> None:
    truth = bernoulli(w=0.5) | {"a/x": (0.2, 0.16), "a/y": (0.8, 0.16), "a/z": (0.5, 0.16)}
    counts = Counter(make(truth).next_batch(2, step).keys[1] for step in range(900))
    assert all(abs(counts[f"a/{name}"] - 300) < 65 for name in "xyz")
    again = make(truth)
    again.load_state_dict(make(truth).state_dict())
    assert again.next_batch(4, 7) == make(truth).next_batch(4, 7)


def test_predicts_the_truth() -> None:
    found = make(bernoulli(x=0.5, y=0.9, z=1.0), group_size=4).predict(0)
    assert found.mean.tolist() == [0.5, 0.9, 1.0]
    assert found.variance == pytest.approx([0.25, 0.09, 0.0])
    assert found.informative == pytest.approx([0.875, 1 - 0.9**4 - 0.1**4, 0.0])
    assert isinstance(found.informative, np.ndarray)


def test_needs_a_truth_and_enough_tasks() -> None:
    with pytest.raises(ValueError, match="truth: found None"):
        Oracle([NodeProfile("a/x")], 0)
    with pytest.raises(ScheduleError, match="batch of 2 distinct tasks asked for; 1 are schedulable"):
        make(bernoulli(x=0.5)).next_batch(2, 0)
    assert not [name for name, place in SCHEDULERS.items() if place.endswith(":Oracle")]
