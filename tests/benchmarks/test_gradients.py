"""What `benchmarks.gradients` makes of gradients, by hand."""

import numpy as np
import pytest

from benchmarks.gradients import Measured, markdown, parts, summary
from envsched.rollouts.rollout import Group, Rollout

# Tasks 0 and 1 lie in a, 2 in b; the last group is not informative.
FOUND = Measured(
    task=np.array([0, 0, 1, 2, 1]),
    successes=np.array([1, 2, 1, 3, 0]),
    others=np.array([0.25, 0.125, 0.0, 0.5, 0.125]),
    worth=np.array([1.0, 3.0, 2.0, 2.0, 0.0]),
    square=np.array([4.0, 4.0, 1.0, 1.0, 0.0]),
    sketch=np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.6, 0.8]]),
)


def test_summary_by_hand() -> None:
    found = summary(FOUND, ["a", "a", "b"])
    assert (found["groups"], found["informative"]) == (5, 0.8)
    one = found["by_successes"]["1"]
    assert (one["groups"], one["informative"]) == (2, 1.0)
    assert one["worth"] == pytest.approx(1.5 / 2)
    assert one["norm"] == pytest.approx(1.5 / 1.5)
    middle = found["by_rate"]["0.1 to 0.25"]
    assert (middle["groups"], middle["informative"], middle["worth"]) == (3, pytest.approx(2 / 3), 1.0)
    scale = 10 / 4
    assert found["pairs"] == pytest.approx(
        {
            "same task": 0.0,
            "same environment": (2 + 0) / 2 / scale,
            "other environment": (1.2 + 1.6 + 0.6) / 3 / scale,
        }
    )
    table = markdown("policy", found)
    assert "5 groups, 80% of them informative" in table
    assert "| 0.1 to 0.25 | 3 | 67% |" in table


def test_parts_are_all_rollouts_once() -> None:
    groups = [Group(f"e/{task}", [Rollout(f"e/{task}", sample, 0) for sample in range(8)]) for task in "ab"]
    found = [(task, [r.sample for r in part.rollouts]) for task, part in parts(groups, 4)]
    assert sorted(found) == [(task, list(range(start, start + 4))) for task in (0, 1) for start in (0, 4)]
