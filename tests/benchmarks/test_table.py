"""The comparison's numbers by hand."""

from dataclasses import replace

import numpy as np
import pytest

from envsched.benchmarks.simulate import Course
from envsched.benchmarks.table import make_row, markdown

BUDGET = 64 * 8 * 20
STEPS = np.arange(1, 21)


def course(rate: float, use: int = 512, spearman: float | None = None) -> Course:
    """A level that climbs by `rate` a step from .2 until it is at .4."""
    return Course(
        start=0.2,
        level=np.minimum(0.2 + rate * STEPS, 0.4).tolist(),
        rollouts=(use * STEPS).tolist(),
        informative=[0.1] * 10 + [10 * rate] * 10,
        trained=[64] * 20,
        seconds=[0.5] * 20,
        scores=[{"step": 20, "spearman_unseen": spearman}],
    )


COURSES = {
    "uniform": {0: course(0.01), 1: course(0.01)},
    "oracle": {0: course(0.02), 1: course(0.02)},
    "good": {0: course(0.0125, spearman=0.4), 1: course(0.0125, spearman=0.6)},
    "slow": {0: course(0.005), 1: course(0.01)},
    "wasteful": {0: course(0.02, use=1024), 1: course(0.02, use=1024)},
}


def row(arm: str):  # type: ignore[no-untyped-def]
    return make_row("mixed", arm, COURSES, ("uniform", "oracle"), BUDGET)


def test_uniform_reaches_its_own_best_with_the_whole_budget() -> None:
    found = row("uniform")
    # Over the last five steps: .4, .39 … .36. It is at its best only after the last step.
    assert found.final.mean == pytest.approx(0.38)
    assert found.rollouts.mean == BUDGET
    assert (found.saving.mean, found.gain.mean, found.missed, found.seeds) == (0, 0, 0, 2)


def test_savings_are_shares_of_the_oracles() -> None:
    # Best of uniform: .38. Mean of the oracle over steps 7 to 11: .376, over 8 to 12: .388; at .0125 a step
    # that of 12 to 16 is .375, of 13 to 17 it is .385: 12 and 17 steps against uniform's 20.
    assert row("oracle").rollouts.mean == 12 * 512
    assert row("oracle").saving.mean == 1
    found = row("good")
    assert found.rollouts.mean == 17 * 512
    assert found.saving.mean == pytest.approx(3 / 8)
    assert found.informative.mean == pytest.approx(0.125 / 0.2)
    assert found.spearman.mean == pytest.approx(0.5)
    assert found.seconds.mean == 0.5


def test_never_reaching_counts_as_the_budget_and_is_marked() -> None:
    found = row("slow")
    assert found.missed == 1
    assert found.rollouts.mean == BUDGET
    assert "| > 10,240 [10,240, 10,240] (1) |" in markdown([found], BUDGET)


def test_rollouts_thrown_away_count() -> None:
    """As fast as the oracle a step, at twice the rollouts a step: too late for the budget."""
    found = row("wasteful")
    assert found.missed == 2
    assert found.final.mean == pytest.approx(row("oracle").area.mean, abs=0.05)
    assert found.area.mean < row("oracle").area.mean


def test_area_is_the_mean_level_over_the_budget() -> None:
    levels = [0.2, *COURSES["uniform"][0].level]
    assert row("uniform").area.mean == pytest.approx(np.mean(levels))


def test_only_seeds_that_all_have_are_compared() -> None:
    courses = {**COURSES, "good": {1: COURSES["good"][1], 2: COURSES["good"][0]}}
    found = make_row("mixed", "good", courses, ("uniform", "oracle"), BUDGET)
    assert found.seeds == 1
    assert found.spearman.mean == 0.6


def test_arms_stand_in_order_of_area_and_missing_numbers_are_dashes() -> None:
    text = markdown([row(arm) for arm in COURSES], BUDGET)
    order = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert order == ["arm", "---", "oracle", "good", "uniform", "wasteful", "slow"]
    assert "| - |" in text
    assert replace(row("good")).arm in text
