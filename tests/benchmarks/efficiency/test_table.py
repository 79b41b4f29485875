"""The comparison's numbers by hand."""

from dataclasses import replace

import numpy as np
import pytest

from envsched.benchmarks.efficiency.report import markdown
from envsched.benchmarks.efficiency.results import Results
from envsched.benchmarks.efficiency.table import ORACLE, OURS, UNIFORM, make_row, over_regimes
from envsched.benchmarks.efficiency.trials import Outcome

USED = [100 * number for number in range(11)]


def climbing(rate: float, top: float = 1.0, tokens: int = 10, offset: float = 0.0) -> Outcome:
    """A level that climbs by `rate` an evaluation from .2; smoothed, it lags one evaluation behind."""
    levels = [min(0.2 + offset + rate * number, top) for number in range(11)]
    return Outcome(
        commit="abc",
        rollouts=USED,
        tokens=[tokens * used for used in USED],
        heldout=levels,
        heldout_environments=[0.1] * 11,
        environments={f"e{n}": [level * n / 10 for level in levels] for n in range(1, 11)},
        informative=0.4,
        scheduling=0.02,
        seconds=60.0,
    )


OUTCOMES = {
    UNIFORM: {0: climbing(0.02), 1: climbing(0.02)},
    ORACLE: {0: climbing(0.04), 1: climbing(0.04)},
    "good": {0: climbing(0.03), 1: climbing(0.03), 7: climbing(0.3)},
    "slow": {0: climbing(0.01), 1: climbing(0.01)},
    "talks": {0: climbing(0.04, tokens=30), 1: climbing(0.04, tokens=30)},
    "stuck": {0: climbing(0.04, top=0.24), 1: climbing(0.04, top=0.24)},
}


def row(arm: str):  # type: ignore[no-untyped-def]
    return make_row("ordinary", "tiny", arm, 6e-4, OUTCOMES)


def test_uniform_is_as_fast_as_itself() -> None:
    found = row(UNIFORM)
    assert (found.speedup.mean, found.token_speedup.mean, found.saving.mean, found.gain.mean) == (1, 1, 0, 0)
    assert found.final.mean == pytest.approx(0.38)  # mean of .36, .38, .40
    assert found.area.mean == pytest.approx(0.3)
    assert found.final_environments.mean == pytest.approx(0.1)
    assert found.seeds == 2


def test_how_many_times_as_fast() -> None:
    # Smoothed, the level after n evaluations is .2 + rate (n - 1): uniform's best is .38 after 10, the oracle
    # is there after 5.5 and `good` after 7 evaluations.
    assert row(ORACLE).speedup.mean == pytest.approx(1000 / 550)
    assert row("good").speedup.mean == pytest.approx(1000 / 700)
    assert row(ORACLE).saving.mean == 1
    assert row("good").saving.mean == pytest.approx(300 / 450)
    assert row("good").gain.mean == pytest.approx(0.05)
    assert row("good").seeds == 2


def test_an_arm_that_is_slower_is_measured_by_its_own_best() -> None:
    # The best of `slow`, .29, uniform reaches after 5.5 evaluations.
    assert row("slow").speedup.mean == pytest.approx(550 / 1000)
    assert row("slow").saving.mean == 0  # never there: the whole budget, as uniform


def test_tokens_are_counted_apart() -> None:
    # `talks` is at uniform's best, after 10 evaluations, after 5.5 of three times the tokens.
    found = row("talks")
    assert found.speedup.mean == pytest.approx(1000 / 550)
    assert found.token_speedup.mean == pytest.approx(10_000 / 16_500)


def test_the_worst_environments() -> None:
    found = row(UNIFORM)
    assert found.worst.mean == pytest.approx(0.038)
    assert found.worst_fifth.mean == pytest.approx(0.057)


def test_intervals_hold_the_mean_and_pair_seeds() -> None:
    shifted = {
        UNIFORM: {seed: climbing(0.02, offset=0.02 * seed) for seed in range(5)},
        "good": {seed: climbing(0.03, offset=0.02 * seed) for seed in range(5)},
    }
    found = make_row("ordinary", "tiny", "good", 6e-4, shifted)
    assert found.gain.low == pytest.approx(found.gain.high)  # what seeds share does not widen it
    assert found.area.low < found.area.mean < found.area.high
    assert np.isnan(found.saving.mean)


def test_arms_are_compared_with_envsched_and_over_regimes() -> None:
    better = {**OUTCOMES, OURS: {0: climbing(0.01), 1: climbing(0.03)}}
    worse = {**OUTCOMES, OURS: {1: climbing(0.05)}}
    # Areas are .2 + 5 x rate.
    found = make_row("ordinary", "tiny", "good", 6e-4, better)
    assert found.ahead.mean == pytest.approx(0.05)
    assert (found.ahead.low, found.ahead.high) == pytest.approx((0, 0.1))
    assert np.isnan(row("good").ahead.mean)
    # Only seed 1 is in both.
    assert over_regimes([better, worse], "good", OURS).mean == pytest.approx((0 - 0.1) / 2)
    assert over_regimes([better, worse], "good", UNIFORM).mean == pytest.approx(0.05)
    assert np.isnan(over_regimes([better, OUTCOMES], "good", OURS).mean)


def test_a_trial_that_was_continued_names_each_commit() -> None:
    continued = replace(climbing(0.02), commit="abc, def")
    results = Results("ordinary", "tiny", {UNIFORM: {0: climbing(0.02), 1: continued}}, {UNIFORM: 6e-4})
    assert results.commits == {"abc", "def"}


def test_a_second_regime_adds_their_mean() -> None:
    rates = dict.fromkeys(OUTCOMES, 6e-4)
    few = {arm: OUTCOMES[arm] for arm in (UNIFORM, "good")}
    found = [Results("ordinary", "tiny", OUTCOMES, rates), Results("scarce", "tiny", few, rates)]
    text = markdown(found)
    lines = text[text.index("## Mean of ordinary and scarce, tiny") :].splitlines()[4:]
    assert [line.split(" | ")[0].strip("| ") for line in lines] == ["good", UNIFORM]
    assert "+0.050" in lines[0]
    assert "Mean of" not in markdown(found[:1])


def test_the_table_puts_the_best_first() -> None:
    text = markdown([Results("ordinary", "tiny", OUTCOMES, dict.fromkeys(OUTCOMES, 6e-4))])
    lines = [line.split(" | ")[0].strip("| ") for line in text.splitlines() if line.startswith("|")]
    assert lines[2:4] == [ORACLE, "talks"]
    assert lines[-1] in ("slow", "stuck")
    assert "Run at abc." in text
    assert "Nothing to compare yet" in markdown([])
