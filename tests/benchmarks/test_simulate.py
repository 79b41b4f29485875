"""What a course records, and what schedulers are charged for and shown."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest

from envsched.benchmarks.simulate import simulate
from envsched.benchmarks.world import World, WorldKind
from envsched.benchmarks.worlds import make_world
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.dapo import Dapo
from envsched.scheduling.baselines.oracle import Oracle
from envsched.scheduling.baselines.uniform import Uniform
from envsched.scheduling.scheduler import Alert, Batch


class Watched(Uniform):
    """Uniform, with a diary; draws again where a batch is not full, and alerts from its third batch on."""

    rounds = 2

    def __init__(self, world: World) -> None:
        self.batches: list[Batch] = []
        self.observed: list[tuple[int, GroupOutcome]] = []
        super().__init__(world.nodes, 0)

    def next_batch(self, size: int, step: int) -> Batch:
        """Noted."""
        self.batches.append(super().next_batch(size, step))
        return self.batches[-1]

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Noted, with the step of the newest batch."""
        self.observed += [(self.batches[-1].step, group) for group in groups]

    def alerts(self) -> list[Alert]:
        """The same again and again, with a gap."""
        return [Alert("a", 0.0, 0.5, 2)] if len(self.batches) in (3, 4, 6) else []


def without_seconds(course: object) -> dict[str, object]:
    return {name: value for name, value in asdict(course).items() if name != "seconds"}  # type: ignore[call-overload]


def test_equal_courses_are_equal_and_count_every_rollout() -> None:
    courses = []
    for _ in range(2):
        world = make_world("mixed", 0)
        courses.append(simulate(world, Uniform(world.nodes, 0), steps=4, batch_size=16))
    assert without_seconds(courses[0]) == without_seconds(courses[1])
    course = courses[0]
    assert course.rollouts == [128, 256, 384, 512]
    assert course.trained == [16] * 4
    assert len(course.level) == len(course.seconds) == len(course.informative) == len(course.top_share) == 4
    assert sum(course.environments.values()) == 64
    assert course.scores == [] == course.events


def test_a_filter_is_charged_for_what_it_throws_away() -> None:
    world = make_world("mixed", 0)
    course = simulate(world, Dapo(world.nodes, 0), steps=3, batch_size=16)
    groups = np.diff([0, *course.rollouts]) / 8
    assert (groups > 2 * 16).all()
    assert np.array(course.informative) * groups == pytest.approx(course.trained)
    assert 12 <= min(course.trained) <= max(course.trained) <= 16


def test_a_filter_that_finds_too_few_trains_on_fewer() -> None:
    world = make_world("impossible", 0)
    course = simulate(world, Dapo(world.nodes, 0), steps=1, batch_size=64)
    assert 0 < course.trained[0] < 64
    assert 64 * 8 < course.rollouts[0] <= 64 * 8 * Dapo.rounds


def test_late_groups_are_shown_and_trained_on_when_they_come() -> None:
    world = World(replace(WorldKind(), slow=True), seed=0)
    scheduler = Watched(world)
    course = simulate(world, scheduler, steps=8, batch_size=200)
    assert all(step == group.observed_step for step, group in scheduler.observed)
    late = [group for _, group in scheduler.observed if group.observed_step > group.drawn_step]
    assert late
    assert sum(event["count"] for event in course.events if event["event"] == "late") == len(late)
    assert {event["event"] for event in course.events} == {"late"}
    assert course.rollouts == [1600 * (step + 1) for step in range(8)]
    assert sum(course.trained) == len(scheduler.observed) < 8 * 200


def test_new_environments_reach_the_scheduler() -> None:
    world = make_world("growing", 0)
    scheduler = Watched(world)
    before = len(scheduler.keys)
    course = simulate(world, scheduler, steps=32, batch_size=8)
    assert course.events == [{"step": 30, "event": "added", "count": len(scheduler.keys) - before}]
    assert len(scheduler.keys) == 2500


def test_an_alert_is_noted_with_the_steps_it_came_and_went() -> None:
    world = make_world("mixed", 0)
    course = simulate(world, Watched(world), steps=6, batch_size=8)
    alert = {"environment": "a", "measured": 0.0, "predicted": 0.5, "since": 2, "error": ""}
    assert course.alerts == [{"step": 2, "cleared": 4, **alert}, {"step": 5, "cleared": None, **alert}]
    assert (course.broken, course.repaired) == ([], -1)


def test_broken_environments_are_named() -> None:
    for name, repaired in (("grader", 40), ("broken", -1)):
        world = make_world(name, 0)
        course = simulate(world, Uniform(world.nodes, 0), steps=1, batch_size=8)
        assert course.repaired == repaired
        (broken,) = course.broken
        keys = [node.key for node in world.nodes if node.environment == broken]
        assert {world.truth()[key] for key in keys} == {(0.0, 0.0)}


def test_predictions_are_scored_on_what_was_never_rolled_out() -> None:
    world = make_world("mixed", 0)
    course = simulate(world, Oracle(world.nodes, 0, truth=world.truth), steps=11, batch_size=32)
    assert [score["step"] for score in course.scores] == [5, 10]
    for score in course.scores:
        assert score["spearman_unseen"] == pytest.approx(1) == score["spearman_all"]
        assert score["mean_error_unseen"] == pytest.approx(0)
        assert score["mean_all"] == score["predicted_mean_all"]
    first, second = (score["unseen"] for score in course.scores)
    assert 2500 - 5 * 32 <= first < 2500  # type: ignore[operator]
    assert second < first  # type: ignore[operator]
