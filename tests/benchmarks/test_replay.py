"""Recorded histories are replayed one step ahead, without a look at what came later."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from envsched.benchmarks.replay import Forecasts, read_run, replay
from envsched.benchmarks.worlds import make_world
from envsched.config import EnvironmentSettings
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.history.store import write_outcomes
from envsched.rollouts.rollout import Group, Rollout
from envsched.scheduling.baselines.uniform import Uniform
from envsched.scheduling.envsched import EnvSched
from envsched.scheduling.scheduler import Prediction

NODES = [NodeProfile(f"a/{letter}") for letter in "pqrs"]


class LastSeen(Uniform):
    """Predicts that each node's last group comes again, and .5 for the others."""

    def __init__(self, nodes: Sequence[NodeProfile], seed: int) -> None:
        self.last: dict[str, GroupOutcome] = {}
        super().__init__(nodes, seed)

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Keep the last."""
        self.last |= {group.key: group for group in groups}

    def predict(self, step: int) -> Prediction:
        """From the last."""
        known = [self.last.get(key) for key in self.keys]
        mean = np.array([group.mean if group else 0.5 for group in known])
        variance = np.array([group.variance if group else 0.25 for group in known])
        return Prediction(mean, variance, (variance > 0).astype(float), np.sqrt(variance), variance)


def group(
    key: str, drawn: int, rewards: Sequence[float], late: int = 0, errored: bool = False
) -> GroupOutcome:
    count = len(rewards)
    return GroupOutcome(
        key, drawn, drawn + late, tuple(rewards), (errored,) * count, (False,) * count,
        (1,) * count, (1,) * count, (1,) * count,
    )  # fmt: skip


HISTORY = [
    group("a/p", 0, [1, 1]),
    group("a/q", 0, [0, 1]),
    group("a/r", 0, [0, 0], late=1),
    group("a/p", 1, [1, 1]),
    group("a/r", 1, [0, 1]),
    group("a/r", 2, [0, 0]),
    group("a/s", 2, [0, 0], errored=True),
    group("elsewhere/x", 2, [0, 1]),
]


def test_each_step_is_predicted_from_earlier_outcomes_only() -> None:
    found = replay(LastSeen(NODES, 0), HISTORY)
    # Of step 0 nothing could be said; the group of r drawn then was known only after step 1 had been drawn.
    assert found.step.tolist() == [1, 1, 2]
    assert found.unseen.tolist() == [0, 1, 0]
    assert found.predicted_mean.tolist() == [1, 0.5, 0.5]
    assert found.mean.tolist() == [1, 0.5, 0]
    assert found.predicted_variance.tolist() == [0, 0.25, 0.5]
    assert found.informative.tolist() == [0, 1, 0]
    assert found.mean_before == pytest.approx([0.75, 0.75, 0.6])


def test_a_scheduler_with_a_model_predicts_as_it_did_in_the_run() -> None:
    world = make_world("mixed", 0, 16 * 8)
    scheduler = EnvSched(world.nodes, 0)
    history: list[GroupOutcome] = []
    predicted = []
    for step in range(3):
        batch = scheduler.next_batch(16, step)
        predicted += [task.context["predicted_variance"] for task in batch.tasks]
        groups = world.roll_out(batch.keys, step)
        scheduler.observe(groups)
        history += groups
    found = replay(EnvSched(world.nodes, 0), history)
    # Of the first batch nothing was known; groups are judged in order of step, then key.
    order = sorted(range(16, 48), key=lambda place: (history[place].drawn_step, history[place].key))
    assert found.predicted_variance.tolist() == pytest.approx([predicted[place] for place in order])


def test_later_outcomes_change_no_earlier_prediction() -> None:
    changed = [replace(g, rewards=(1.0, 0.0)) if g.observed_step >= 1 else g for g in HISTORY]
    before, after = replay(LastSeen(NODES, 0), HISTORY), replay(LastSeen(NODES, 0), changed)
    assert before.predicted_mean[:2].tolist() == after.predicted_mean[:2].tolist()
    assert before.predicted_mean[2] == after.predicted_mean[2] == 0.5  # r's last group of step 1, both times
    assert before.mean.tolist() != after.mean.tolist()


def test_the_order_of_a_history_does_not_matter() -> None:
    forwards, backwards = replay(LastSeen(NODES, 0), HISTORY), replay(LastSeen(NODES, 0), HISTORY[::-1])
    assert sorted(forwards.predicted_mean) == sorted(backwards.predicted_mean)


def test_scores_by_hand() -> None:
    columns = {
        "step": [1, 1, 2, 2], "unseen": [0, 0, 1, 1], "predicted_mean": [0.8, 0.5, 0.2, 0.2],
        "predicted_variance": [0.1, 0.2, 0.1, 0.2], "predicted_informative": [0.5] * 4,
        "mean": [1, 0.5, 0, 0.5], "variance": [0, 0.3, 0.3, 0], "informative": [0, 1, 1, 0],
        "mean_before": [0.5] * 4,
    }  # fmt: skip
    scores = Forecasts(**{name: np.array(values, dtype=float) for name, values in columns.items()}).scores()
    assert (scores["groups"], scores["unseen"]) == (4, 2)
    assert scores["spearman/all"] == 0
    assert scores["spearman/unseen"] == -1
    assert scores["log_loss/mean_before"] == pytest.approx(np.log(2)) == scores["log_loss/informative"]
    # Bins 2, 5 and 8: |.4 - .5| + 0 + |.8 - 1| over four groups.
    assert scores["calibration/mean"] == pytest.approx(0.075)
    assert scores["calibration/informative"] == pytest.approx(0)


def test_nothing_to_judge_is_nan_and_no_predictions_is_an_error() -> None:
    assert np.isnan(replay(LastSeen(NODES, 0), HISTORY[:2]).scores()["log_loss/mean"])
    with pytest.raises(ValueError, match="Uniform: found no predictions"):
        replay(Uniform(NODES, 0), HISTORY)


CODE = "class Shop:\n    def __init__(self):\n        self.items = {}\n\n    def add(self):\n        pass\n"
ENVIRONMENT = {
    "env_id": "shop", "environment_summary": "", "environment_introduction": "", "state_space_definition": [],
    "constraints_rules": [], "env_class_name": "Shop", "env_class_code": CODE,
    "env_class_def": "class Shop: ...",
    "env_func_details": {"add": {"signature": {}, "doc": "", "source_code": ""}},
    "operation_list": [
        {"operation_name": "add", "operation_description": "", "operation_type": "state_change"}
    ],
    "tools": [{
        "type": "function",
        "function": {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}},
    }],
}  # fmt: skip


def scenario(number: int) -> dict[str, object]:
    check = {"check_item": "added?", "check_func": "def check_func(final_state):\n    return True"}
    return {
        "env_id": "shop", "env_class_name": "Shop", "task_id": f"shop-task_{number}",
        "task": f"Add {number}.",
        "init_config": {"items": {}}, "checklist_with_func": [check],
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory over two tasks, without a history."""
    (tmp_path / "environments.json").write_text(json.dumps([ENVIRONMENT]))
    (tmp_path / "scenarios.json").write_text(json.dumps([scenario(1), scenario(2)]))
    run = tmp_path / "run"
    (run / "history").mkdir(parents=True)
    settings = EnvironmentSettings(source="envscaler", path=str(tmp_path), reward="graded")
    (run / "config.json").write_text(json.dumps({"environments": settings.model_dump(), "other": 1}))
    return run


def write_history(run: Path, keys: Sequence[str]) -> None:
    """One group of two rollouts for each key, one a step."""
    for step, key in enumerate(keys):
        rollouts = [Rollout(key, sample, policy_step=step, reward=float(sample)) for sample in range(2)]
        write_outcomes(run / "history" / f"step-{step:06d}.parquet", [Group(key, rollouts)], step)


def test_a_run_directory_is_read_with_its_nodes(run: Path) -> None:
    keys = [node.key for node in read_run(run)[0]]
    write_history(run, [keys[0], keys[1], keys[0]])
    nodes, groups = read_run(run)
    assert [(node.text, node.tools, node.graded) for node in nodes] == [
        ("Add 1.", ("add",), True),
        ("Add 2.", ("add",), True),
    ]
    assert [(g.key, g.drawn_step, g.rewards) for g in groups] == [
        (keys[row], step, (0.0, 1.0)) for step, row in enumerate([0, 1, 0])
    ]
    assert replay(LastSeen(nodes, 0), groups).predicted_mean.tolist() == [0.5, 0.5]


def test_nodes_that_are_gone_are_named(run: Path) -> None:
    write_history(run, ["old/task#1"])
    with pytest.raises(
        ValueError, match="found 1 nodes in the history, old/task#1 for one; expected only the 2"
    ):
        read_run(run)
