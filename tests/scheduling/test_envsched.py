"""EnvSched's own promises: bit for bit from its state, no order, no leaks, predictions at once."""

import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.config import GraphSettings, ScheduleSettings, VarianceSettings
from envsched.environments.spec import OperationKind
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.alerts import LEAST_TASKS
from envsched.scheduling.envsched import PROBES, EnvSched
from envsched.scheduling.scheduler import Batch

ROOT = Path(__file__).parents[2]
GROUP_SIZE = 4
KINDS: dict[bool, tuple[OperationKind, ...]] = {
    True: ("search", "read", "read"),
    False: ("create", "update", "delete"),
}
"""What tasks of easy and of hard environments need."""
WORDS = ("order", "invoice", "room", "guest", "parcel", "route", "refund", "ticket")
GRAPH = GraphSettings(text_dimensions=8, within_neighbours=3, across_neighbours=3)
VARIANCE = VarianceSettings(width=4, fit_steps=2)
check = settings(deadline=None, max_examples=6, derandomize=True)
seeds = st.integers(0, 2**32)


def profile(environment: str, i: int) -> NodeProfile:
    """Upper-case environments are easy: their tasks look things up. Others change things."""
    easy, thing = environment.isupper(), WORDS[ord(environment[0].lower()) % 8]
    tools = tuple(f"{kind}_{thing}_{place}" for place, kind in enumerate(KINDS[easy]))
    asked = f"{KINDS[easy][i % 3]} {thing} {i % 3}, then the {WORDS[i % 8]}"
    checks = () if easy else (f"{thing} {i} has changed",)
    return NodeProfile(f"{environment}/{i}", asked, tools, KINDS[easy], (thing,), checks)


def pool(environments: str = "ABcd", tasks: int = 4) -> list[NodeProfile]:
    return [profile(name, i) for name in environments for i in range(tasks)]


def make(nodes: Sequence[NodeProfile], seed: int = 0) -> EnvSched:
    chosen = ScheduleSettings(floor=0.2)
    return EnvSched(nodes, seed, GROUP_SIZE, schedule=chosen, graph=GRAPH, variance=VARIANCE)


def play(key: str, step: int, observed: int | None = None, salt: str = "") -> GroupOutcome:
    """Easy tasks are mostly solved, hard ones hardly ever; some rollouts err."""
    rng = random.Random(f"{key}:{step}:{salt}")
    easy = key[0].isupper()
    rewards = tuple(float(rng.random() < (0.9 if easy else 0.1)) for _ in range(GROUP_SIZE))
    errored = tuple(rng.random() < 0.1 for _ in range(GROUP_SIZE))
    return GroupOutcome(
        key=key,
        drawn_step=step,
        observed_step=step if observed is None else observed,
        rewards=rewards,
        errored=errored,
        truncated=(False,) * GROUP_SIZE,
        turns=(2,) * GROUP_SIZE,
        calls=(3,) * GROUP_SIZE,
        tokens=(50,) * GROUP_SIZE,
        traces=tuple(rng.choices(KINDS[easy], k=3) for _ in range(GROUP_SIZE)),  # type: ignore[misc]
        error=f"error {rng.randint(0, 9)}" if any(errored) else "",
    )


def run(scheduler: EnvSched, size: int, steps: Sequence[int], salt: str = "") -> list[Batch]:
    batches = []
    for step in steps:
        batches.append(scheduler.next_batch(size, step))
        scheduler.observe([play(key, step, salt=salt) for key in batches[-1].keys])
    return batches


CONTINUE = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("here", sys.argv[1])
here = importlib.util.module_from_spec(spec)
spec.loader.exec_module(here)
scheduler = here.make(here.pool()[::-1], seed=99)
scheduler.load_state_dict(json.load(sys.stdin))
print(json.dumps([here.run(scheduler, 5, range(3, 6)), scheduler.state_dict()], default=vars))
"""


def test_a_new_process_continues_bit_for_bit() -> None:
    scheduler = make(pool(), seed=5)
    run(scheduler, 5, range(3))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONTINUE, __file__],
        input=json.dumps(scheduler.state_dict()),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = json.dumps([run(scheduler, 5, range(3, 6)), scheduler.state_dict()], default=vars)
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("after", ["rebuild_graph", "fit_variance", "next_batch", "observe"])
def test_the_state_may_be_saved_between_any_two_stages_of_a_step(after: str) -> None:
    through = make(pool())
    run(through, 5, range(2))
    through.observe([play("c/3", 1, observed=2)])
    if after != "observe":
        _ = through.next_batch(5, 2) if after == "next_batch" else getattr(through, after)(2)
        through.observe([play("d/3", 1, observed=2)])
    saved = json.dumps(through.state_dict())
    resumed = make(pool(), seed=7)
    resumed.load_state_dict(json.loads(saved))
    assert json.dumps(resumed.state_dict()) == saved
    assert run(resumed, 5, range(2, 4)) == run(through, 5, range(2, 4))
    assert json.dumps(resumed.state_dict()) == json.dumps(through.state_dict())


@given(seeds, st.randoms(use_true_random=False))
@check
def test_order_of_registration_and_of_observation_changes_nothing(seed: int, rng: random.Random) -> None:
    nodes = pool()
    mixed = rng.sample(nodes, len(nodes))
    straight, shuffled = make(nodes, seed), make(mixed[:7], seed)
    shuffled.update(added=mixed[7:])
    for step in range(0, 6, 2):
        batch = straight.next_batch(5, step)
        assert shuffled.next_batch(5, step) == batch
        # Several groups of a node may become known in one step, drawn in different ones.
        groups = [play(key, drawn, step + 1) for key in batch.keys for drawn in (step, step + 1)]
        straight.observe(groups)
        for group in rng.sample(groups, len(groups)):
            shuffled.observe([group])
    assert json.dumps(shuffled.state_dict()) == json.dumps(straight.state_dict())
    assert straight.metrics() == shuffled.metrics()


@given(
    seeds,
    st.lists(st.sampled_from(["predict", "posterior", "metrics", "alerts", "ahead"]), min_size=3, max_size=3),
)
@check
def test_looking_changes_nothing(seed: int, looks: list[str]) -> None:
    looked, plain = make(pool(), seed), make(pool(), seed)
    for step, look in enumerate(looks):
        batch = looked.next_batch(5, step)
        assert plain.next_batch(5, step) == batch
        if look == "ahead":
            looked.predict(step + 1)  # before the groups of this step are known
        else:
            getattr(looked, look)(*([step] if look[0] == "p" else []))
        for scheduler in (looked, plain):
            scheduler.observe([play(key, step) for key in batch.keys])
    assert run(looked, 5, range(3, 5)) == run(plain, 5, range(3, 5))
    assert json.dumps(looked.state_dict()) == json.dumps(plain.state_dict())


@pytest.mark.parametrize("change", [1, 2, 3])
def test_batches_rest_on_nothing_but_groups_observed_before(change: int) -> None:
    """Histories that part with the groups of a step give the same batches up to that step, and no longer."""
    one, other = make(pool()), make(pool())
    for step in range(change + 2):
        expected, found = one.next_batch(5, step), other.next_batch(5, step)
        assert (found == expected) == (step <= change)
        for scheduler, batch, salt in ((one, expected, ""), (other, found, "else" if step >= change else "")):
            scheduler.observe([play(key, step, salt=salt) for key in batch.keys])


def test_a_prediction_is_what_was_explained_with_the_batch() -> None:
    scheduler = make(pool())
    run(scheduler, 5, range(3))
    batch = scheduler.next_batch(5, 3)
    found = scheduler.predict(3)
    for task in batch.tasks:
        row = scheduler.keys.index(task.key)
        assert task.context["predicted_mean"] == found.mean[row]
        assert task.context["predicted_variance"] == found.variance[row]
        assert task.context["predicted_informative"] == found.informative[row]
        assert task.value == pytest.approx(sum(task.parts.values()), abs=1e-12)


def test_late_groups_count_by_the_step_in_which_they_were_drawn() -> None:
    prompt, late, fresh = make(pool()), make(pool()), make(pool())
    group = replace(play("A/0", 1), rewards=(1.0,) * GROUP_SIZE, errored=(False,) * GROUP_SIZE)
    prompt.observe([group])
    late.observe([replace(group, observed_step=40)])
    fresh.observe([replace(group, drawn_step=40, observed_step=40)])
    means = [scheduler.predict(41).mean[0] for scheduler in (prompt, late, fresh)]
    assert means[0] == means[1] < means[2]


def test_an_old_group_that_comes_late_does_not_replace_newer_play() -> None:
    scheduler = make(pool())
    scheduler.observe([replace(play("A/0", 5), traces=(("read",),))])
    newest = scheduler.state_dict()["sketches"]
    scheduler.observe([replace(play("A/0", 2, observed=6), traces=(("delete",),))])
    assert scheduler.state_dict()["sketches"] == newest


def test_changing_the_pool_keeps_statistics_executions_and_what_was_learnt() -> None:
    scheduler = make(pool())
    run(scheduler, 8, range(4))
    before, table = scheduler.state_dict(), scheduler.table(4)
    scheduler.update(added=pool("Ee", 3), removed=[key for key in scheduler.keys if key[0] == "A"])
    after, other = scheduler.state_dict(), scheduler.table(4)
    assert after["predictor"] == before["predictor"]
    for part in ("sketches", "sketched"):
        assert after[part] == {key: row for key, row in before[part].items() if key[0] != "A"}
    assert after["errors"] == {name: row for name, row in before["errors"].items() if name != "A"}
    for field in ("attempts", "mean", "variance", "effective_count", "since_visit"):
        old = dict(zip(table.keys, getattr(table, field), strict=True))
        new = dict(zip(other.keys, getattr(other, field), strict=True))
        kept = [key for key in old if key[0] != "A"]
        np.testing.assert_array_equal([old[key] for key in kept], [new[key] for key in kept])
    assert len(scheduler.next_batch(len(scheduler.keys), 4).keys) == 18


def test_new_environments_are_predicted_at_once_by_what_others_have_in_common_with_them() -> None:
    scheduler = make(pool("ABCcde", 5))
    run(scheduler, 10, range(6))
    scheduler.update(added=pool("Gg", 5))
    across = scheduler.rebuild_graph(6)
    new = np.array([key[0] in "Gg" for key in scheduler.keys])
    assert np.bincount(across.index[1], minlength=len(new))[new].min() >= 1
    mean = scheduler.predict(6).mean
    easy = np.array([key[0] == "G" for key in scheduler.keys])
    assert mean[easy].min() > mean[new & ~easy].max() + 0.1


def test_unseen_tasks_are_predicted_from_their_environments() -> None:
    scheduler = make(pool("ABCcde", 5))
    for step in range(5):
        keys = [f"{name}/{i}" for name in "ABCcde" for i in range(2)]
        scheduler.fit_variance(step)
        scheduler.observe([play(key, step) for key in keys])
    mean = scheduler.predict(5).mean
    unseen = np.array([key[-1] not in "01" for key in scheduler.keys])
    easy = np.array([key[0].isupper() for key in scheduler.keys])
    assert mean[unseen & easy].min() > mean[unseen & ~easy].max() + 0.2


def test_numbers_are_finite_from_the_beginning() -> None:
    scheduler = make(pool())
    assert "variance/loss" not in scheduler.metrics()
    for step in range(3):
        assert all(np.isfinite(value) for value in scheduler.metrics().values())
        run(scheduler, 4, [step])
    scheduler.fit_variance(3)
    assert scheduler.metrics()["variance/loss"] > 0
    assert scheduler.metrics()["graph/across_edges"] > 0


def shut(key: str, step: int) -> GroupOutcome:
    """Play that fails throughout in environment A, whose tasks look easy."""
    group = play(key, step)
    return (
        replace(group, rewards=(0.0,) * GROUP_SIZE, errored=(False,) * GROUP_SIZE) if key[0] == "A" else group
    )


def test_an_environment_under_suspicion_is_looked_into_where_success_is_likeliest() -> None:
    scheduler = make(pool("ABCDEFgh", tasks=12))
    looked_into = 0
    for step in range(12):
        batch = scheduler.next_batch(20, step)
        chances = scheduler.telling(step)
        for number in scheduler._suspects[:2]:
            name = scheduler.graph.environments[number]
            chosen = [key for key in batch.keys if key.startswith(f"{name}/")]
            best = max(
                (key for key in scheduler.keys if key.startswith(f"{name}/")),
                key=lambda key: chances[scheduler._row[key]],
            )
            assert len(chosen) >= PROBES
            assert best in chosen
            looked_into += name == "A"
        scheduler.observe([shut(key, step) for key in batch.keys])
    assert looked_into > 0


def test_too_few_tasks_on_record_raise_no_alert(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = make(pool("ABC", tasks=LEAST_TASKS + 1))
    monkeypatch.setattr("envsched.scheduling.envsched.broken_probability", lambda *_: np.ones(3))
    scheduler.observe([play(f"A/{i}", 0) for i in range(LEAST_TASKS - 1)])
    scheduler.observe([play(f"B/{i}", 0) for i in range(LEAST_TASKS)])
    scheduler.next_batch(4, 1)
    assert [alert.environment for alert in scheduler.alerts()] == ["B"]
    assert [scheduler.graph.environments[number] for number in scheduler._suspects] == ["A", "C"]


def test_tasks_that_were_trained_on_are_expected_to_have_come_further() -> None:
    """Each group teaches its task half a unit of log-odds; the record knows nothing of that."""
    visits: dict[str, int] = {}
    rng = random.Random(0)

    def learner(key: str, step: int) -> GroupOutcome:
        rate = 1 / (1 + math.exp(1 - 0.5 * visits.get(key, 0)))
        visits[key] = visits.get(key, 0) + 1
        return replace(
            play(key, step),
            rewards=tuple(float(rng.random() < rate) for _ in range(GROUP_SIZE)),
            errored=(False,) * GROUP_SIZE,
        )

    scheduler = make(pool())
    for step in range(25):
        scheduler.observe([learner(key, step) for key in scheduler.next_batch(6, step).keys])
    scheduler.fit_variance(25)
    assert 0.15 < scheduler.metrics()["variance/drift"] < 0.8
    truth = [1 / (1 + math.exp(1 - 0.5 * visits.get(key, 0))) for key in scheduler.keys]
    drifting = np.abs(scheduler.posterior(25).mean - truth).mean()
    scheduler.drift.shift = 0.0
    assert drifting < np.abs(scheduler.posterior(25).mean - truth).mean()
