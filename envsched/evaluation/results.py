"""What came of an evaluation: one JSON line a rollout, written as it ends, and a summary with intervals.

The interval is Wilson's score interval (Wilson 1927) over tasks; trials of one task are not independent, so
several of them do not narrow it. pass^k is the chance that k trials of a task all succeed (tau-bench,
arXiv 2406.12045): the mean over tasks of C(successes, k) / C(trials, k).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from envsched.environments.spec import Node
from envsched.rollouts.rollout import Rollout

SUCCESS = 1.0
Z95 = 1.959964
"""Standard normal quantile of 0.975."""


class ResultsError(ValueError):
    """A file of results is damaged, or belongs to another evaluation."""


@dataclass(frozen=True)
class Result:
    """One rollout of one task."""

    key: str
    environment: str
    task: str
    trial: int
    reward: float
    success: bool
    errored: bool
    error: str
    truncated: bool
    turns: int
    calls: int
    generated_tokens: int
    tokens: int
    """In the whole conversation."""
    seconds: float
    trace: list[str]
    """Operation kinds in order."""
    prompt: str
    """What the agent read before its first message, template and all."""
    transcript: list[list[str]]
    """Role and text of every message after the system message."""
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, int]:
        """Which rollout this is."""
        return self.key, self.trial


def result(node: Node, rollout: Rollout, prompt: str) -> Result:
    """A rollout as a line of results."""
    return Result(
        key=rollout.key,
        environment=node.environment.name,
        task=node.task.name,
        trial=rollout.sample,
        reward=rollout.reward,
        success=rollout.reward >= SUCCESS,
        errored=rollout.errored,
        error=rollout.error,
        truncated=rollout.truncated,
        turns=rollout.turns,
        calls=rollout.calls,
        generated_tokens=rollout.generated_tokens,
        tokens=len(rollout.token_ids),
        seconds=round(rollout.seconds, 3),
        trace=list(rollout.trace),
        prompt=prompt,
        transcript=[list(message) for message in rollout.transcript],
        info=dict(rollout.info),
    )


def read_results(path: Path) -> list[Result]:
    """All whole lines; one that a killed process left half written at the end is cut off the file.

    ResultsError for a line in the middle that is none.
    """
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return [_parse(path, number, line) for number, line in enumerate(whole.splitlines(), 1)]


def latest(results: Iterable[Result]) -> dict[tuple[str, int], Result]:
    """The last line of each rollout: one that failed technically is played again later."""
    return {result.identity: result for result in results}


def append_results(path: Path, results: Iterable[Result]) -> None:
    """Add lines."""
    text = "".join(json.dumps(asdict(r), ensure_ascii=False) + "\n" for r in results)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """Success with its 95 % interval, and what it cost. ValueError without results."""
    if not results:
        raise ValueError("no results to summarise")
    tasks: defaultdict[str, list[bool]] = defaultdict(list)
    for one in results:
        tasks[one.key].append(one.success)
    success = sum(sum(trials) / len(trials) for trials in tasks.values()) / len(tasks)
    low, high = wilson(success, len(tasks))
    trials = min(len(outcomes) for outcomes in tasks.values())
    count = len(results)
    return {
        "tasks": len(tasks),
        "trials": trials,
        "success": success,
        "low": low,
        "high": high,
        "pass_hat": {
            str(k): sum(pass_hat(outcomes, k) for outcomes in tasks.values()) / len(tasks)
            for k in range(1, trials + 1)
        },
        "reward": sum(one.reward for one in results) / count,
        "errored": sum(one.errored for one in results),
        "truncated": sum(one.truncated for one in results),
        "turns": sum(one.turns for one in results) / count,
        "calls": sum(one.calls for one in results) / count,
        "generated_tokens": sum(one.generated_tokens for one in results),
        "seconds": sum(one.seconds for one in results),
        **_means_of_info(results),
    }


def wilson(share: float, count: int) -> tuple[float, float]:
    """95 % score interval of a share of `count`, within [0, 1]."""
    centre = (share + Z95**2 / (2 * count)) / (1 + Z95**2 / count)
    half = Z95 / (1 + Z95**2 / count) * math.sqrt(share * (1 - share) / count + Z95**2 / (4 * count**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def pass_hat(outcomes: Sequence[bool], k: int) -> float:
    """Share of the ways to draw `k` of the trials in which all succeeded; `k` at most their number."""
    return math.comb(sum(outcomes), k) / math.comb(len(outcomes), k)


def _means_of_info(results: Sequence[Result]) -> dict[str, float]:
    """Means of the numbers that every rollout's environment reported, such as `process`."""
    names = set.intersection(*(set(one.info) for one in results))
    numbers = {n for n in names if all(isinstance(one.info[n], int | float) for one in results)}
    return {f"info_{n}": sum(float(one.info[n]) for one in results) / len(results) for n in sorted(numbers)}


def _parse(path: Path, number: int, line: bytes) -> Result:
    try:
        data: Mapping[str, Any] = json.loads(line)
        return Result(**data)
    except (ValueError, TypeError) as error:
        raise ResultsError(
            f"{path}: line {number}: expected a result, found {line[:60]!r}: {error}"
        ) from None
