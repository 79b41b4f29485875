"""Trials: their settings and names, what is kept of a run, which rate suits an arm."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from envsched.benchmarks.arms import find_arm
from envsched.benchmarks.efficiency.protocol import PROTOCOL, read_protocol
from envsched.benchmarks.efficiency.trials import Trial, comparison, outcome, tuned_rates, tuning
from envsched.runs import RunDirectory
from envsched.runs.record import note_commit

PROTOCOL_HERE = read_protocol(Path(__file__).parents[3] / PROTOCOL)
CONFIG = {"policy": {"model": "tiny"}, "schedule": {"scheduler": "uniform"}, "train": {"seed": 3}}


def trial(arm: str = "uniform", rate: float = 6e-4, seed: int = 0) -> Trial:
    return Trial(PROTOCOL_HERE, "ordinary", "tiny", find_arm(arm), rate, seed)


def make_run(path: Path, levels: tuple[float, ...] = (0.25, 0.5)) -> Path:
    """Three steps, evaluated before the first and after the last."""
    with RunDirectory.open(path, CONFIG, {"version": "v", "counts": {"train": 4}}) as run:
        for step in range(4):
            batch = run.file("batches", step, ".json")
            batch.write_text("[]")
            metrics = {"rollouts/total": 8.0 * step, "tokens/total": 80.0 * step, "seconds/step": 2.0}
            if step:
                metrics |= {"schedule/informative_share": 0.2 * step, "seconds/variance": 0.25}
                metrics |= {"seconds/hidden": 1.0}
            if step in (0, 3):
                level = levels[step == 3]
                metrics |= {"heldout/success": level, "heldout_environments/success": 0.1}
                metrics |= {"seconds/evaluate": 5.0}
                rewards = {"a/one#1": [level], "a/two#2": [1.0], "b/x#3": [0.0, 0.9, 1.0, 1.0]}
                run.evaluation(step).write_text(json.dumps({"heldout": rewards}))
            run.commit(step, [batch] if step else [], metrics)
    for commit in ("abc", "abc", "def"):
        note_commit(path, commit, 0)
    return path


def test_an_arm_is_its_settings() -> None:
    settings = trial("envsched:no_quota", 3e-4, 2).settings
    assert (settings.schedule.scheduler, settings.schedule.quota) == ("envsched", 1)
    assert (settings.update.learning_rate, settings.train.seed) == (3e-4, 2)
    assert trial("envsched:across_only").settings.variance.relations == ("across",)


def test_names_tell_apart_whatever_decides() -> None:
    other = PROTOCOL_HERE.model_copy(update={"settings": {**PROTOCOL_HERE.settings, "train": {"steps": 9}}})
    trials = [
        trial(),
        trial("sec"),
        trial(rate=3e-4),
        trial(seed=1),
        replace(trial(), suite_seed=1),
        replace(trial(), regime="scarce"),
        replace(trial(), model="small"),
        replace(trial(), protocol=other),
    ]
    assert len({one.name for one in trials}) == len(trials)
    assert trial().name == trial().name
    elsewhere = {**PROTOCOL_HERE.settings, "tracking": {"experiment": "other"}}
    same = PROTOCOL_HERE.model_copy(update={"settings": elsewhere})
    assert replace(trial(), protocol=same).name == trial().name


def test_a_schedulers_own_settings_decide_whole_and_others_where_they_are_no_defaults() -> None:
    assert trial("uniform").decisive["schedule"] == {"scheduler": "uniform"}
    assert trial("uniform").decisive["variance"] == {}
    for arm, blocks in (("envsched", ("schedule", "graph", "variance")), ("knn", ("schedule", "graph"))):
        one = trial(arm)
        for block in blocks:
            assert one.decisive[block] == getattr(one.settings, block).model_dump(mode="json")
    assert trial("knn").decisive["variance"] == {}


def test_what_is_kept_of_a_run(tmp_path: Path) -> None:
    found = outcome(make_run(tmp_path / "run"))
    assert found.commit == "abc, def"
    assert (found.rollouts, found.tokens) == ([0, 24], [0, 240])
    assert (found.heldout, found.heldout_environments) == ([0.25, 0.5], [0.1, 0.1])
    assert found.environments == {"a": [0.5, 0.5], "b": [0.5, 0.5]}
    assert found.informative == pytest.approx(0.4)
    assert found.scheduling == pytest.approx(0.25)
    assert found.seconds == 4 * 2.0 + 2 * 5.0
    one = trial()
    assert one.load(tmp_path) is None
    one.keep(tmp_path / "run", tmp_path)
    assert one.load(tmp_path) == found


def test_the_rate_with_the_largest_area_is_taken_once_all_are_there(tmp_path: Path) -> None:
    arms = ["uniform", "envsched", "envsched:no_graph"]
    trials = tuning(PROTOCOL_HERE, "ordinary", "tiny", arms, 0)
    assert {one.arm.name for one in trials} == {"uniform", "envsched"}
    assert len(trials) == 2 * len(PROTOCOL_HERE.rates["ordinary"]) * len(PROTOCOL_HERE.tuning_seeds)
    best = {"uniform": PROTOCOL_HERE.rates["ordinary"][0], "envsched": PROTOCOL_HERE.rates["ordinary"][2]}
    for number, one in enumerate(trials):
        level = 0.6 if one.rate == best[one.arm.name] else 0.4
        one.keep(make_run(tmp_path / f"run-{number}", (0.2, level)), tmp_path)
    found = tuned_rates(PROTOCOL_HERE, "ordinary", "tiny", arms, 0, tmp_path)
    assert found == {**best, "envsched:no_graph": best["envsched"]}
    missing = next(one for one in trials if one.arm.name == "envsched")
    missing.file(tmp_path).unlink()
    assert tuned_rates(PROTOCOL_HERE, "ordinary", "tiny", arms, 0, tmp_path).keys() == {"uniform"}
    compared = comparison(PROTOCOL_HERE, "ordinary", "tiny", found, [0, 1, 2, 3, 4], 0)
    seeds = {arm: [one.seed for one in compared if one.arm.name == arm] for arm in found}
    assert seeds == {"uniform": [0, 1, 2, 3, 4], "envsched": [0, 1, 2, 3, 4], "envsched:no_graph": [0, 1, 2]}
