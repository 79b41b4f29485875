"""A batch joined with what came of it: tables without gaps in columns, metrics worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.reports.batch import (
    Played,
    curve_environments,
    environment_metrics,
    explain_rows,
    finite,
    forecast_metrics,
    join,
    schedule_metrics,
    with_predictions,
)
from envsched.scheduling.registry import SCHEDULERS, make_scheduler
from envsched.scheduling.scheduler import Batch, ScheduledTask

ERRORED = (True, True, True, True)


def group(key: str, rewards: tuple[float, ...], errored: tuple[bool, ...] = (False,) * 4) -> GroupOutcome:
    zeros = (0,) * len(rewards)
    return GroupOutcome(key, 1, 1, rewards, errored, (False,) * len(rewards), zeros, zeros, zeros)


def prediction(mean: float, variance: float, informative: float) -> dict[str, float | str]:
    return {"predicted_mean": mean, "predicted_variance": variance, "predicted_informative": informative}


def batch() -> Batch:
    return Batch(
        1,
        (
            ScheduledTask("a/x#1", 0.9, {"deviation": 1.0, "penalty": -0.1}, prediction(0.5, 0.2, 0.8)),
            ScheduledTask("a/y#2", 0.7, {"deviation": 0.7, "penalty": 0.0}, prediction(0.2, 0.1, 0.6)),
            ScheduledTask("b/z#3", 0.5, {"deviation": 0.8, "penalty": -0.3}, prediction(0.1, 0.05, 0.1)),
            ScheduledTask("b/w#4", 0.2),
        ),
    )


GROUPS = [
    group("b/w#4", (0.0,) * 4, ERRORED),
    group("b/z#3", (0.0,) * 4),
    group("a/x#1", (1.0, 1.0, 0.0, 0.0)),
    group("a/y#2", (1.0, 0.0, 0.0, 0.0)),
]


def played() -> list[Played]:
    return join(batch(), GROUPS, seen={"a/x#1"})


def test_the_table_has_every_column_in_every_row_and_none_where_nothing_is_known() -> None:
    rows = explain_rows(played())
    assert [row["key"] for row in rows] == list(batch().keys)
    assert len({tuple(row) for row in rows}) == 1
    assert rows[0] == {
        "key": "a/x#1",
        "environment": "a",
        "value": 0.9,
        "deviation": 1.0,
        "penalty": -0.1,
        **prediction(0.5, 0.2, 0.8),
        "unseen": False,
        "realised_mean": 0.5,
        "realised_variance": pytest.approx(1 / 3),
        "realised_informative": True,
    }
    last = rows[3]
    assert {name for name, value in last.items() if value is None} == {
        "deviation",
        "penalty",
        "predicted_mean",
        "predicted_variance",
        "predicted_informative",
        "realised_mean",
        "realised_variance",
    }
    assert (last["unseen"], last["realised_informative"]) == (True, False)


def test_a_scheduler_that_predicts_nothing_still_fills_the_same_columns() -> None:
    rows = explain_rows(join(Batch(1, (ScheduledTask("a/x#1", 0.0),)), GROUPS, ()))
    assert rows[0]["predicted_variance"] is None
    assert rows[0]["realised_mean"] == 0.5


def test_schedule_metrics() -> None:
    assert schedule_metrics(played()) == {
        "schedule/environments": 2,
        "schedule/unseen_share": 0.75,
        "schedule/penalty_mean": pytest.approx(-0.4 / 3),
        "schedule/informative_predicted": pytest.approx(0.5),
    }
    bare = join(Batch(1, (ScheduledTask("a/x#1", 0.0),)), GROUPS, ())
    assert schedule_metrics(bare) == {"schedule/environments": 1, "schedule/unseen_share": 1}


def test_forecasts_are_held_against_what_the_groups_showed() -> None:
    """Variances shown: 1/3, 1/4, 0 in the predicted order; of the two unseen tasks too. Means: .5, .25, 0."""
    expected = {
        "variance/spearman": 1.0,
        "variance/spearman_unseen": 1.0,
        # bins [.5, .6), [.2, .3), [.1, .2): gaps 0, .05, .1
        "variance/calibration_error": 0.15 / 3,
        "variance/log_loss": (math.log(2) - 0.25 * math.log(0.2) - 0.75 * math.log(0.8) - math.log(0.9)) / 3,
    }
    assert forecast_metrics(played()) == pytest.approx(expected)


def test_what_a_batch_cannot_tell_is_left_out() -> None:
    one = join(Batch(1, batch().tasks[:1]), GROUPS, ())
    assert forecast_metrics(one).keys() == {"variance/calibration_error", "variance/log_loss"}
    errored = join(Batch(1, batch().tasks[3:]), GROUPS, ())
    assert forecast_metrics(errored) == {}


def test_environment_metrics() -> None:
    assert environment_metrics(played(), ("a", "b", "c")) == {
        "env/a/share": 0.5,
        "env/a/informative": 1.0,
        "env/a/reward": 0.375,
        "env/b/share": 0.5,
        "env/b/informative": 0.0,
        "env/b/reward": 0.0,
    }
    assert {name.split("/")[1] for name in environment_metrics(played(), ("b",))} == {"b"}
    errored = join(Batch(1, batch().tasks[3:]), GROUPS, ())
    assert environment_metrics(errored, ("b",)) == {"env/b/share": 1.0, "env/b/informative": 0.0}


def test_the_largest_environments_get_curves() -> None:
    keys = [
        f"{name}/{number}"
        for name, size in (("c", 1), ("b", 3), ("a", 2), ("d", 2))
        for number in range(size)
    ]
    assert curve_environments(keys) == ["a", "b", "c", "d"]
    assert curve_environments(keys, 2) == ["a", "b"]
    assert len(curve_environments(f"env {number}/x" for number in range(100))) == 64


def test_a_task_without_a_group_is_an_error() -> None:
    with pytest.raises(KeyError, match="b/w#4"):
        join(batch(), GROUPS[1:], ())


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_predictions_are_those_of_the_scheduler(name: str) -> None:
    nodes = [
        NodeProfile(f"{environment}/{number}#x", f"do {number}")
        for environment in "ab"
        for number in range(3)
    ]
    scheduler = make_scheduler(name, nodes, 0)
    chosen = with_predictions(scheduler.next_batch(4, 1), scheduler)
    foreseen = scheduler.predict(1)
    for task in chosen.tasks:
        if foreseen is None:
            assert "predicted_mean" not in task.context
        else:
            row = scheduler.keys.index(task.key)
            assert task.context["predicted_mean"] == foreseen.mean[row]
            assert task.context["predicted_variance"] == foreseen.variance[row]
            assert task.context["predicted_informative"] == foreseen.informative[row]


numbers = st.floats(0, 1)


@given(st.lists(st.tuples(numbers, numbers, numbers, st.lists(numbers, min_size=4, max_size=4)), max_size=8))
@settings(derandomize=True, deadline=None)
def test_metrics_are_finite(tasks: list[tuple[float, float, float, list[float]]]) -> None:
    chosen = [
        ScheduledTask(f"e/{number}#x", 0.0, {}, prediction(mean, variance / 4, informative))
        for number, (mean, variance, informative, _) in enumerate(tasks)
    ]
    groups = [group(f"e/{number}#x", tuple(rewards)) for number, (*_, rewards) in enumerate(tasks)]
    found = forecast_metrics(join(Batch(1, tuple(chosen)), groups, ()))
    assert np.isfinite(list(found.values())).all()
    assert found.keys() <= {
        f"variance/{n}" for n in ("spearman", "spearman_unseen", "calibration_error", "log_loss")
    }


def test_finite_leaves_out_what_is_no_number() -> None:
    assert finite({"a": 1.0, "b": math.nan, "c": math.inf}) == {"a": 1.0}
