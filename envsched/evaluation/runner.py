"""Plays a suite with one model and keeps every rollout the moment it ends, so that nothing is done twice.

`<results>/<model>/<suite>/evaluation.json` says what was evaluated and how; `<subset>.jsonl` holds the
rollouts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from envsched.environments.spec import Node
from envsched.evaluation.results import (
    Result,
    ResultsError,
    append_results,
    latest,
    read_results,
    result,
    summarise,
)
from envsched.files import write_json
from envsched.rollouts.collect import Collector
from envsched.rollouts.engine import Sampling
from envsched.rollouts.rollout import Rollout

IDENTITY = "evaluation.json"
POLICY_STEP = -2
"""Part of the seeds: evaluations draw what no step of training draws."""


def claim(directory: Path, identity: dict[str, Any], replace: bool = False) -> bool:
    """Make `directory` the place of this evaluation, or go on with it; whether it was begun before.

    Results of another evaluation found there are deleted with `replace`; else ResultsError tells each
    difference, what was found and what was expected.
    """
    path = directory / IDENTITY
    begun = path.exists()
    if begun:
        found = json.loads(path.read_text())
        names = sorted(name for name in found | identity if found.get(name) != identity.get(name))
        if names and replace:
            begun = False
            for file in directory.glob("*.jsonl"):
                file.unlink()
        elif names:
            lines = [f"  {name}: there {found.get(name)!r}, now {identity.get(name)!r}" for name in names]
            raise ResultsError(
                f"{directory}: holds the results of another evaluation; give another --out, or --replace:\n"
                + "\n".join(lines)
            )
    write_json(path, identity)
    return begun


def missing(nodes: Sequence[Node], trials: int, path: Path) -> list[tuple[Node, int]]:
    """Rollouts that are still to be played. One that failed technically is played again."""
    done = latest(read_results(path))
    return [
        (node, trial)
        for node in nodes
        for trial in range(trials)
        if (node.key, trial) not in done or done[node.key, trial].errored
    ]


def play(
    collector: Collector,
    wanted: Sequence[tuple[Node, int]],
    sampling: Sampling,
    seed: int,
    path: Path,
    progress: Callable[[int], object] = lambda done: None,
) -> None:
    """Play rollouts and append each to `path` as it ends."""
    nodes = {node.key: node for node, _ in wanted}
    pairs = [(node, Rollout(node.key, trial, collector.engine.version)) for node, trial in wanted]

    def keep(ended: list[Rollout]) -> None:
        append_results(path, [result(nodes[r.key], r, _prompt(collector, r)) for r in ended])
        progress(len(ended))

    collector.play(pairs, sampling, seed, POLICY_STEP, keep)


def results_of(nodes: Sequence[Node], trials: int, path: Path) -> list[Result]:
    """Results of these tasks, in order; KeyError where one is missing."""
    done = latest(read_results(path))
    return [done[node.key, trial] for node in nodes for trial in range(trials)]


def summary_of(nodes: Sequence[Node], trials: int, path: Path) -> dict[str, Any]:
    """See `results.summarise`."""
    return summarise(results_of(nodes, trials, path))


def _prompt(collector: Collector, rollout: Rollout) -> str:
    """What was read before the first generated token."""
    first = rollout.generated.index(True) if True in rollout.generated else len(rollout.generated)
    return str(collector.chat.tokenizer.decode(rollout.token_ids[:first]))
