"""The whole suite from one seed: environments, tasks and splits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsched.environments.synthetic.draft import compose
from envsched.environments.synthetic.families import FAMILIES
from envsched.environments.synthetic.variant import Variant, draw_variants

FAMILY_COUNT = 8
"""Families of a suite; the seed chooses them."""
TRAINING_VARIANTS = 4
"""Environments of each family that are trained on."""
HELDOUT_ENVIRONMENTS = 4
"""Further environments, at most one a family, that are held out whole."""
TASKS = {"train": 75, "heldout": 15, "heldout_environment": 30}
"""Tasks an environment, by split."""
LENGTHS = (1, 2, 3, 4, 2, 1, 5, 3, 2, 6, 1, 4, 3, 2, 1, 5, 2, 3, 4, 6)
"""Tool calls of a task, in turn: short ones are more frequent, so that there is something to begin with."""


@dataclass(frozen=True)
class Suite:
    """Records in EnvScaler's format."""

    environments: list[dict[str, Any]]
    scenarios: list[dict[str, Any]]


def generate(seed: int, calls: tuple[int, ...] | None = None) -> Suite:
    """The suite of this seed: the same records every time, and other ones for another seed.

    `calls` gives other training tasks, which take so many calls in turn, from 1 to 6 each.
    """
    training, unseen = _variants(seed)
    environments, scenarios = [], []
    for index, variant in enumerate(training):
        environments.append(variant.record("train"))
        seen = set[str]()
        tasks = _tasks(variant, ("train", "heldout"), index, seed, seen)
        if calls:
            # Goals already seen are left out, those of held-out tasks among them.
            tasks[: TASKS["train"]] = _tasks(variant, ("train",), index, seed, seen, calls)
        scenarios += tasks
    for index, variant in enumerate(unseen):
        environments.append(variant.record("heldout_environment"))
        scenarios += _tasks(variant, ("heldout_environment",), index, seed)
    return Suite(environments, scenarios)


def practice(seed: int, rng: random.Random) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Environments of the suite of this seed with new tasks for them, without end, drawn by `rng`.

    Environments held out whole do not occur, nor does the goal of any held-out task.
    """
    training = _variants(seed)[0]
    records = [variant.record("train") for variant in training]
    heldout = [_heldout_goals(variant, index, seed) for index, variant in enumerate(training)]
    while True:
        index = rng.randrange(len(training))
        length = rng.choice(LENGTHS)
        yield records[index], compose(training[index], rng, length, "practice", "train", set(heldout[index]))


def write(seed: int, directory: str | Path) -> None:
    """Write `environments.json` and `scenarios.json`, byte for byte the same every time."""
    suite = generate(seed)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for name, records in (("environments", suite.environments), ("scenarios", suite.scenarios)):
        (directory / f"{name}.json").write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")


def _variants(seed: int) -> tuple[list[Variant], list[Variant]]:
    """Environments to train on, and those held out whole."""
    rng = random.Random(f"suite {seed}")
    families = rng.sample(FAMILIES, FAMILY_COUNT)
    heldout = {family.name for family in rng.sample(families, HELDOUT_ENVIRONMENTS)}
    training, unseen = [], []
    for family in families:
        variants = draw_variants(family, TRAINING_VARIANTS + (family.name in heldout), rng)
        training += variants[:TRAINING_VARIANTS]
        unseen += variants[TRAINING_VARIANTS:]
    return training, unseen


def _heldout_goals(variant: Variant, index: int, seed: int) -> set[str]:
    """Goals of the environment's held-out tasks."""
    trained, both = set[str](), set[str]()
    _tasks(variant, ("train",), index, seed, trained)
    _tasks(variant, ("train", "heldout"), index, seed, both)
    return both - trained


def _tasks(
    variant: Variant,
    splits: tuple[str, ...],
    index: int,
    seed: int,
    seen: set[str] | None = None,
    calls: tuple[int, ...] | None = None,
) -> list[dict[str, Any]]:
    """Tasks of one environment; where a split's size is no multiple of the lengths, others even it out.

    None has a goal in `seen`, to which theirs are added.
    """
    name = f"tasks {seed} {variant.name}"
    rng = random.Random(f"{name} calls {calls}" if calls else name)
    lengths = calls or LENGTHS
    seen = set() if seen is None else seen
    records: list[dict[str, Any]] = []
    for split in splits:
        for position in range(TASKS[split]):
            length = lengths[(index * TASKS[split] + position) % len(lengths)]
            name = f"{variant.name}-task_{len(records) + 1}"
            records.append(compose(variant, rng, length, name, split, seen))
    return records
