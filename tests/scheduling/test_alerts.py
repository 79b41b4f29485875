"""Broken environments raise an alert, hard ones do not."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, expit, logit, logsumexp

from envsched.config import GraphSettings, VarianceSettings
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.alerts import MOST_EXCEPTIONS, PRIOR, RAISE, SLIP, always_errs
from envsched.scheduling.alerts import broken_probability as broken_probabilities
from envsched.scheduling.envsched import EnvSched

GROUP_SIZE = 8
Rate = Callable[[str, int], float]
tasks_of = st.lists(
    st.tuples(st.floats(-3, 3), st.integers(0, 16), st.integers(0, 16)), min_size=1, max_size=30
)
check = settings(deadline=None, max_examples=40, derandomize=True)


def sound_by_hand(
    elsewhere: np.ndarray, strength: float, successes: np.ndarray, failures: np.ndarray, deviation: float
) -> float:
    """Log of the chance of these records, averaged over many environments' effects."""
    effects = np.linspace(-14, 14, 10_001)
    mean = np.clip(expit(elsewhere + deviation * effects[:, None]), 1e-6, 1 - 1e-6)
    records = betaln(strength * mean + successes, strength * (1 - mean) + failures)
    records -= betaln(strength * mean, strength * (1 - mean))
    density = np.exp(-(effects**2) / 2)
    return float(logsumexp(records.sum(1), b=density / density.sum()))


def broken_probability(
    elsewhere: np.ndarray, strength: float, successes: np.ndarray, trials: np.ndarray, deviation: float
) -> float:
    """Of a single environment."""
    one = np.zeros(len(elsewhere), dtype=np.int64)
    return float(broken_probabilities(one, elsewhere, strength, successes, trials, deviation)[0])


@given(tasks_of, st.floats(1, 60), st.floats(0.1, 2.5))
@check
def test_probability_weighs_broken_against_sound(
    tasks: list[tuple[float, int, int]], strength: float, deviation: float
) -> None:
    elsewhere, successes, failures = np.array(tasks, dtype=float).T
    sound = sound_by_hand(elsewhere, strength, successes, failures, deviation)
    shut = successes.sum() * np.log(SLIP) + failures.sum() * np.log(1 - SLIP)
    open_ = failures.sum() * np.log(SLIP) + successes.sum() * np.log(1 - SLIP)
    odds = np.log(PRIOR / (1 - PRIOR)) + max(shut, open_) - sound
    found = broken_probability(elsewhere, strength, successes, successes + failures, deviation)
    mixed = min(successes.sum(), failures.sum()) > MOST_EXCEPTIONS * (successes + failures).sum()
    assert found == pytest.approx(0 if mixed else expit(odds), abs=1e-3)


def test_environments_do_not_disturb_each_other() -> None:
    rng = np.random.default_rng(0)
    environment, elsewhere = np.repeat(np.arange(5), [3, 1, 4, 2, 6]), rng.normal(size=16)
    trials = rng.integers(0, 3, 16) * 4.0
    successes = np.where(environment < 3, 0, trials)
    together = broken_probabilities(environment, elsewhere, 9.0, successes, trials, 1.0)
    for number in range(5):
        part = environment == number
        alone = broken_probability(elsewhere[part], 9.0, successes[part], trials[part], 1.0)
        assert together[number] == pytest.approx(alone, abs=1e-12)


def test_probabilities_are_right_as_often_as_they_say() -> None:
    """Of simulated environments, a share `PRIOR` always fails and another always passes."""
    rng = np.random.default_rng(0)
    environments, tasks, deviation, strength = 4000, 3, 1.5, 8.0
    environment = np.repeat(np.arange(environments), tasks)
    elsewhere = rng.normal(size=environments * tasks)
    mean = expit(elsewhere + deviation * rng.normal(size=environments)[environment])
    draw = rng.random(environments)[environment]
    rate = rng.beta(strength * mean, strength * (1 - mean))
    rate = np.where(draw < PRIOR, SLIP, np.where(draw > 1 - PRIOR, 1 - SLIP, rate))
    successes, trials = rng.binomial(8, rate).astype(float), np.full(len(rate), 8.0)
    found = broken_probabilities(environment, elsewhere, strength, successes, trials, deviation)
    truth = np.abs(draw[::tasks] - 0.5) > 0.5 - PRIOR
    likely = found > 0.2
    assert likely.sum() > 40
    assert truth[likely].mean() == pytest.approx(found[likely].mean(), abs=0.15)
    assert truth.sum() == pytest.approx(found.sum(), rel=0.25)


def test_without_evidence_the_prior_stays() -> None:
    nothing = np.zeros(3)
    assert broken_probability(nothing, 5.0, nothing, nothing, 1.0) == pytest.approx(PRIOR)


@given(st.floats(-1, 2), st.floats(2, 40), st.floats(0.1, 1.5), st.integers(1, 12))
@check
def test_more_failures_make_it_likelier_and_a_few_successes_settle_it(
    elsewhere: float, strength: float, deviation: float, trials: int
) -> None:
    def found(successes: int, trials: int, elsewhere: float = elsewhere) -> float:
        rows = np.full(4, float(successes)), np.full(4, float(trials))
        return broken_probability(np.full(4, elsewhere), strength, *rows, deviation)

    assert found(0, trials + 1) >= found(0, trials)
    assert found(1, trials + 1) <= found(0, trials + 1)
    assert found(trials, 2 * trials + 2) < 0.01
    assert found(trials, trials, -elsewhere) == pytest.approx(found(0, trials), abs=1e-9)


def test_where_failure_is_expected_failure_proves_nothing() -> None:
    failed = np.zeros(4), np.full(4, 16.0)
    assert broken_probability(np.full(4, logit(0.01)), 20.0, *failed, 0.5) < 0.1
    assert broken_probability(np.full(4, logit(0.7)), 20.0, *failed, 0.5) > 0.99
    # Nor where tasks are known to be all or nothing.
    assert broken_probability(np.full(4, logit(0.7)), 0.2, *failed, 0.5) < RAISE


def test_tasks_never_tried_change_nothing() -> None:
    rows = np.array([0.5, 0.2, -1.0]), 9.0, np.zeros(3), np.array([8.0, 0.0, 6.0])
    few = rows[0][[0, 2]], 9.0, np.zeros(2), np.array([8.0, 6.0])
    assert broken_probability(*rows, 1.0) == broken_probability(*few, 1.0)


def test_always_erring_needs_four_attempts_and_nearly_only_errors() -> None:
    environment = np.repeat(np.arange(4), 2)
    rates = np.array([1, 1, 1, 1, 1, np.nan, 1, 0.5])
    attempts = np.array([2, 1, 2, 2, 4, 0, 3, 3])
    assert always_errs(environment, rates, attempts).tolist() == [False, True, True, False]


class World:
    """Twelve environments; tasks are solved at the rate that `rate` tells for an environment and a step."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.erring: set[str] = set()
        nodes = [
            NodeProfile(f"env-{e:02d}/{i}", f"get the thing number {i}", ("get_thing",), ("read",))
            for e in range(12)
            for i in range(8)
        ]
        self.scheduler = EnvSched(
            nodes,
            0,
            GROUP_SIZE,
            graph=GraphSettings(text_dimensions=4, within_neighbours=3, across_neighbours=3),
            variance=VarianceSettings(width=4, fit_steps=2),
        )

    def run(self, first: int, last: int) -> dict[int, set[str]]:
        """Environments under alert after the choice of each step."""
        found = {}
        for step in range(first, last):
            batch = self.scheduler.next_batch(16, step)
            found[step] = {alert.environment for alert in self.scheduler.alerts()}
            self.scheduler.observe([self.play(key, step) for key in batch.keys])
        return found

    def play(self, key: str, step: int) -> GroupOutcome:
        rng = random.Random(f"{key}:{step}")
        environment = key.split("/")[0]
        bad = environment in self.erring
        rewards = tuple(
            float(not bad and rng.random() < self.rate(environment, step)) for _ in range(GROUP_SIZE)
        )
        no, times = (False,) * GROUP_SIZE, (2,) * GROUP_SIZE
        return GroupOutcome(
            key,
            step,
            step,
            rewards,
            (bad,) * GROUP_SIZE,
            no,
            times,
            times,
            times,
            (),
            "no such table" if bad else "",
        )


def usual(environment: str, step: int) -> float:
    return 0.4 + 0.4 * random.Random(environment).random()


def test_always_failing_raises_an_alert_that_a_repair_clears() -> None:
    world = World(lambda name, step: (0.0 if step < 16 else 0.8) if name == "env-03" else usual(name, step))
    alerts = world.run(0, 16)
    assert alerts[15] == {"env-03"}
    [alert] = world.scheduler.alerts()
    assert alert.measured == 0
    assert alert.predicted > 0.4
    assert alert.since == min(step for step, names in alerts.items() if names)
    assert world.scheduler.metrics()["schedule/alerts"] == 1
    repaired = world.run(16, 24)
    assert repaired[23] == set()
    assert world.scheduler.alerts() == []


def test_an_environment_under_alert_is_tried_in_every_step() -> None:
    world = World(lambda name, step: 0.0 if name == "env-03" else usual(name, step))
    world.run(0, 16)
    for step in range(16, 20):
        keys = world.scheduler.next_batch(16, step).keys
        assert any(key.startswith("env-03/") for key in keys)
        world.scheduler.observe([world.play(key, step) for key in keys])


def test_honestly_hard_environments_raise_none() -> None:
    """Where environments differ widely, some are hopeless without being broken."""
    rates = dict(zip((f"env-{e:02d}" for e in range(12)), expit(np.linspace(-4, 2, 12)), strict=True))
    world = World(lambda name, step: rates[name])
    assert not any(world.run(0, 14).values())


def test_always_erring_raises_an_alert_with_its_error() -> None:
    world = World(usual)
    world.erring = {"env-05"}
    assert world.run(0, 14)[13] == {"env-05"}
    [alert] = world.scheduler.alerts()
    assert alert.error == "no such table"
    world.erring = set()
    assert world.run(14, 24)[23] == set()


def test_alerts_survive_as_state_and_go_with_their_environment() -> None:
    world = World(lambda name, step: 0.0 if name == "env-03" else usual(name, step))
    world.run(0, 12)
    alerts = world.scheduler.alerts()
    resumed = World(usual).scheduler
    resumed.load_state_dict(world.scheduler.state_dict())
    assert resumed.alerts() == alerts
    resumed.update(removed=[f"env-03/{i}" for i in range(8)])
    assert resumed.alerts() == []
    assert len(resumed.next_batch(16, 12).keys) == 16
