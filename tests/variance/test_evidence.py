"""Evidence equals its definition; the variance ratio is 1 for pass or fail, and found for graded rewards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.history.outcome import GroupOutcome
from envsched.history.statistics import NodeStatistics
from envsched.variance.evidence import RATIO_PRIOR, Evidence, gather

HALF_LIFE = 4.0
KEYS = tuple(f"{environment}/{i}" for environment in "abc" for i in range(3))
ENVIRONMENT = np.repeat([0, 1, 2], 3)
binary, graded = st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 0.25, 0.5, 1.0])


def group(key: str, step: int, rewards: list[float], errors: int = 0) -> GroupOutcome:
    size = len(rewards)
    return GroupOutcome(
        key=key,
        drawn_step=step,
        observed_step=step,
        rewards=tuple(rewards),
        errored=(False,) * (size - errors) + (True,) * errors,
        truncated=(True,) + (False,) * (size - 1),
        turns=(2,) * size,
        calls=(3,) * size,
        tokens=(50,) * size,
    )


def histories(reward: st.SearchStrategy[float]) -> st.SearchStrategy[list[GroupOutcome]]:
    one = st.builds(
        group,
        st.sampled_from(KEYS),
        st.integers(0, 9),
        st.lists(reward, min_size=4, max_size=4),
        st.integers(0, 4),
    )
    return st.lists(one, max_size=20)


def gathered(groups: list[GroupOutcome], keys: tuple[str, ...] = KEYS, step: int = 10) -> Evidence:
    statistics = NodeStatistics(keys, HALF_LIFE)
    statistics.observe(groups)
    order = np.array([statistics.keys.index(key) for key in keys])
    names = sorted({key.split("/")[0] for key in keys})
    return gather(statistics.table(step), order, np.array([names.index(key.split("/")[0]) for key in keys]))


def slow_ratio(groups: list[GroupOutcome], step: int) -> list[float]:
    """Ratio of summed unbiased estimates of variance and of mu (1 - mu), node, environment and all mixed."""

    def sums(chosen: list[GroupOutcome]) -> tuple[float, float, float]:
        found = most = count = 0.0
        for one in chosen:
            rewards = one.valid_rewards
            if rewards:
                weight = 2.0 ** ((one.drawn_step - step) / HALF_LIFE)
                spread = one.mean * (1 - one.mean) + one.variance / len(rewards)
                found, most, count = found + weight * one.variance, most + weight * spread, count + weight
        return found, most, count

    found, most, count = sums(groups)
    overall, typical = (found + 1e-9) / (most + 1e-9), most / max(count, 1e-9)
    unit = RATIO_PRIOR * max(typical, 1e-9)
    ratios = []
    for key in KEYS:
        mine = sums([one for one in groups if one.key == key])
        theirs = sums([one for one in groups if one.key.split("/")[0] == key.split("/")[0]])
        environment = (theirs[0] + unit * overall) / (theirs[1] + unit)
        ratios.append(min(1.0, max(0.02, (mine[0] + unit * environment) / (mine[1] + unit))))
    return ratios


@given(histories(graded))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_evidence_equals_its_definition(groups: list[GroupOutcome]) -> None:
    groups = [one for one in groups if len(one.valid_rewards) != 1]
    found = gathered(groups)
    np.testing.assert_allclose(found.ratio, slow_ratio(groups, 10), rtol=1e-6)
    for row, key in enumerate(KEYS):
        mine = [one for one in groups if one.key == key]
        weights = [2.0 ** ((one.drawn_step - 10) / HALF_LIFE) for one in mine]
        valid = [one for one in mine if one.valid_rewards]
        assert found.seen[row] == bool(valid)
        rollouts = sum(w * len(one.valid_rewards) for w, one in zip(weights, mine, strict=True))
        assert found.trials[row] == pytest.approx(rollouts / found.ratio[row])
        if valid:
            groups_weight = sum(w for w, one in zip(weights, mine, strict=True) if one.valid_rewards)
            mean = sum(w * one.mean for w, one in zip(weights, mine, strict=True) if one.valid_rewards)
            assert found.successes[row] == pytest.approx(mean / groups_weight * found.trials[row])
            errors = sum(w * np.mean(one.errored) for w, one in zip(weights, mine, strict=True)) / sum(
                weights
            )
            first_ends = sum(
                w * (1 / len(one.valid_rewards))
                for w, one in zip(weights, mine, strict=True)
                if one.valid_rewards
            )
            expected = [errors, first_ends / groups_weight, np.log1p(2), np.log1p(3), np.log1p(50)]
            assert found.other[row].tolist() == pytest.approx(expected)


@given(histories(binary))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_ratio_is_one_for_pass_or_fail_however_many_groups(groups: list[GroupOutcome]) -> None:
    found = gathered(groups)
    np.testing.assert_allclose(found.ratio, 1, rtol=1e-6)
    assert (found.successes <= found.trials + 1e-9).all()


def test_ratio_stays_one_while_a_task_is_learnt() -> None:
    rng = np.random.default_rng(0)
    groups = [
        group(key, step, (rng.random(8) < 0.1 + 0.08 * step).astype(float).tolist())
        for step in range(11)
        for key in KEYS
    ]
    np.testing.assert_allclose(gathered(groups).ratio, 1, rtol=1e-6)


@pytest.mark.parametrize("checks", [2, 5])
@pytest.mark.parametrize("visits", [1, 6])
def test_ratio_of_graded_rewards_is_recovered(checks: int, visits: int) -> None:
    """A reward that is the mean of independent checks has that share of a single check's variance."""
    rng = np.random.default_rng(checks)
    keys = tuple(f"{environment}/{i:02d}" for environment in "abcd" for i in range(25))
    groups = [
        group(key, step, (rng.binomial(checks, rate, 8) / checks).tolist())
        for key, rate in zip(keys, rng.beta(1, 1, len(keys)), strict=True)
        for step in range(visits)
    ]
    found = gathered(groups, keys)
    np.testing.assert_allclose(found.ratio, 1 / checks, rtol=0.3)
    assert found.ratio.mean() == pytest.approx(1 / checks, rel=0.15)


def test_environments_have_ratios_of_their_own() -> None:
    rng = np.random.default_rng(0)
    keys = tuple(f"{environment}/{i:03d}" for environment in "ab" for i in range(120))
    groups = [
        group(key, 9, (rng.binomial(checks, rng.random(), 8) / checks).tolist())
        for key, checks in zip(keys, np.repeat([1, 10], 120), strict=True)
    ]
    ratio = gathered(groups, keys).ratio
    assert ratio[:120].min() > 0.7
    assert ratio[120:].max() < 0.35


def test_nodes_never_rolled_out_have_no_evidence() -> None:
    found = gathered([group("a/0", 3, [1.0, 0.0]), group("b/1", 3, [0.0, 0.0], errors=2)])
    assert found.seen.tolist() == [True] + [False] * 8
    assert not found.successes[1:].any()
    assert not found.trials[1:].any()
    # All errors: an attempt that says nothing about rewards.
    assert found.other[4].tolist() == [1.0, 0, 0, 0, 0]
    assert not found.other[[1, 2, 3, 5, 6, 7, 8]].any()
