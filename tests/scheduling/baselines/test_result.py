"""What the baselines are told about a group."""

import math
import random
from collections.abc import Callable

import pytest

from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.result import result

MakeGroup = Callable[..., GroupOutcome]


def test_spread_and_advantages_by_hand(group: MakeGroup) -> None:
    found = result(group("a/0", 1.0, 0.0, 0.0, 0.0))
    assert found.rewards == (0.0, 0.0, 0.0, 1.0)
    assert found.mean == 0.25
    assert found.deviation == pytest.approx(math.sqrt(3) / 4)
    low, high = 0.25 / (math.sqrt(3) / 4), 0.75 / (math.sqrt(3) / 4)
    assert found.advantages == pytest.approx([low, low, low, high])
    assert found.informative


def test_equal_rewards_teach_nothing(group: MakeGroup) -> None:
    found = result(group("a/0", 0.1, 0.1, 0.1))
    assert (found.informative, found.deviation, found.advantages) == (False, 0.0, (0.0, 0.0, 0.0))


def test_errored_rollouts_are_left_out_unless_all_are(group: MakeGroup) -> None:
    assert result(group("a/0", 1.0, 0.5, 0.0, errors=1)).rewards == (0.5, 1.0)
    assert result(group("a/0", 1.0, 1.0, errors=2)).rewards == (0.0, 0.0)


def test_results_sort_by_time_first(group: MakeGroup) -> None:
    ordered = [
        result(group("b/0", 0.0, step=1)),
        result(group("b/0", 0.0, step=2, drawn=1)),
        result(group("a/0", 0.0, step=2)),
        result(group("a/0", 1.0, step=2)),
    ]
    mixed = ordered.copy()
    random.Random(0).shuffle(mixed)
    assert mixed != ordered
    assert sorted(mixed) == ordered
