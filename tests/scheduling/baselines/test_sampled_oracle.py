"""The oracle that measures."""

import json
from collections.abc import Callable
from math import ceil

import pytest

from envsched.config import ScheduleSettings
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.sampled_oracle import FIRST, LATER, SampledOracle

Group = Callable[..., GroupOutcome]
RATES = {"a/0": 0.0, "a/1": 0.5, "a/2": 1.0, "a/3": 0.25}


def played(group: Group, key: str, step: int) -> GroupOutcome:
    won = round(8 * RATES[key])
    return group(key, *[1.0] * won, *[0.0] * (8 - won), step=step)


@pytest.fixture
def oracle() -> SampledOracle:
    return SampledOracle([NodeProfile(key) for key in RATES], 0, schedule=ScheduleSettings(floor=0))


def test_measures_are_beta_posteriors_by_hand(oracle: SampledOracle, group: Group) -> None:
    oracle.observe_hidden([played(group, "a/1", 0), played(group, "a/2", 0)])
    # 12 of 16 rollouts succeeded: the prior is one rollout at 12.5 / 17.
    prior = 12.5 / 17
    found = oracle.predict(0)
    alpha, beta = 4 + prior, 5 - prior
    assert found.mean[1] == pytest.approx(alpha / 9)
    assert found.variance[1] == pytest.approx(alpha * beta / 90)
    assert found.mean[0] == pytest.approx(prior)
    assert found.variance[0] == pytest.approx(prior * (1 - prior) / 2)


def test_it_selects_by_what_it_measured(oracle: SampledOracle, group: Group) -> None:
    oracle.observe_hidden([played(group, key, 0) for key in RATES])
    assert oracle.next_batch(2, 0).keys == ("a/1", "a/3")


def test_charged_groups_count_too(oracle: SampledOracle, group: Group) -> None:
    oracle.observe_hidden([played(group, key, 0) for key in RATES])
    oracle.observe([group("a/1", *[1.0] * 8, step=step) for step in range(4)])
    assert oracle.predict(4).mean[1] > 0.8


def test_a_task_that_comes_back_is_worth_less(oracle: SampledOracle, group: Group) -> None:
    oracle.observe_hidden([played(group, key, 0) for key in RATES])
    oracle.observe([played(group, "a/1", step) for step in range(2)])
    assert oracle.predict(2).variance[1] > oracle.predict(2).variance[3]
    assert oracle.next_batch(1, 2).keys == ("a/3",)


def test_old_measures_fade(oracle: SampledOracle, group: Group) -> None:
    oracle.observe_hidden([group("a/0", *[1.0] * 8)])
    oracle.observe_hidden([group("a/0", *[0.0] * 8, step=160)])
    assert oracle.predict(160).mean[0] < 0.12


def test_half_the_pool_is_measured_first_then_what_was_measured_longest_ago(group: Group) -> None:
    keys = [f"a/{number}" for number in range(100)]
    oracle = SampledOracle([NodeProfile(key) for key in keys], 3)
    first = oracle.hidden(0)
    assert len(set(first)) == 100 // FIRST
    assert oracle.hidden(0) == first
    seen: list[str] = []
    for step in range(40):
        wanted = oracle.hidden(step)
        oracle.observe_hidden([group(key, *[0.0] * 8, step=step) for key in wanted])
        seen += wanted
        if step:
            assert len(wanted) == ceil(100 / LATER)
    assert seen[:100] == list(dict.fromkeys(seen))[:100]  # nothing twice before everything once
    assert set(seen) == set(keys)


def test_it_goes_on_where_it_was(group: Group) -> None:
    keys = [f"a/{number}" for number in range(30)]
    whole, halved = (SampledOracle([NodeProfile(key) for key in keys], 1) for _ in range(2))
    for step in range(6):
        if step == 3:
            state = json.loads(json.dumps(halved.state_dict()))
            halved = SampledOracle([NodeProfile(key) for key in keys], 1)
            halved.load_state_dict(state)
        batches = []
        for oracle in (whole, halved):
            hidden = oracle.hidden(step)
            oracle.observe_hidden(
                [group(key, float(int(key[2:]) % 2), *[0.0] * 7, step=step) for key in hidden]
            )
            batch = oracle.next_batch(4, step)
            oracle.observe([group(key, 1.0, *[0.0] * 7, step=step) for key in batch.keys])
            batches.append((hidden, batch))
        assert batches[0] == batches[1]
