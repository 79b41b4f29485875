"""Rewards of each environment in numbers: can its groups teach anything?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from envsched.environments.collection import Examined
from envsched.environments.spec import key_environment
from envsched.history.outcome import GroupOutcome

FEW = 0.02
"""Share of informative groups below which an environment hardly ever teaches."""
ENOUGH_GROUPS = 8


@dataclass(frozen=True)
class Analysis:
    """One environment. What nothing was measured for is None or empty."""

    environment: str
    tasks: int
    do_nothing: float | None
    """Mean raw reward of doing nothing, in [0, 1]."""
    true_at_reset: float | None
    """Mean share of checks that pass before anything is done."""
    groups: int
    mean: float | None
    """Mean reward of the rollouts."""
    levels: tuple[float, ...]
    """Different rewards that occurred."""
    deviation: float | None
    """Mean standard deviation of the rewards within a group."""
    informative: float | None
    """Share of groups whose rewards differ."""
    errored: float | None
    """Share of rollouts that failed for a technical reason."""
    errors: tuple[tuple[str, int], ...]
    """Error texts and in how many groups each was the commonest, most frequent first."""
    tokens: float | None
    """Mean generated tokens of a rollout."""

    @property
    def warnings(self) -> list[str]:
        """What stands in the way of learning, in plain words."""
        found = []
        if self.groups >= ENOUGH_GROUPS and self.informative is not None and self.informative < FEW:
            level = "fails" if (self.mean or 0.0) < 0.5 else "succeeds"
            found.append(f"rewards hardly ever differ within a group: nearly every rollout {level}")
        if self.do_nothing is not None and self.do_nothing > 0.5:
            found.append(f"doing nothing earns {self.do_nothing:.2f} in the mean")
        if self.true_at_reset is not None and self.true_at_reset > 0.5:
            found.append(
                f"{self.true_at_reset:.0%} of the checks pass at reset; "
                "environments.reward=progress leaves them out"
            )
        if self.errored is not None and self.errored > 0.2:
            found.append(f"{self.errored:.0%} of the rollouts fail for technical reasons")
        return found


def analyse(
    keys: Iterable[str], examined: Mapping[str, Examined], groups: Iterable[GroupOutcome]
) -> list[Analysis]:
    """One analysis an environment, by name; `keys` are those of its tasks."""
    tasks: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        tasks[key_environment(key)].append(key)
    played: dict[str, list[GroupOutcome]] = defaultdict(list)
    for group in groups:
        played[key_environment(group.key)].append(group)
    return [
        _analysis(name, tasks[name], [examined[key] for key in tasks[name] if key in examined], played[name])
        for name in sorted(tasks)
    ]


def _analysis(
    name: str, keys: Sequence[str], examined: Sequence[Examined], groups: Sequence[GroupOutcome]
) -> Analysis:
    rewards = [reward for group in groups for reward in group.valid_rewards]
    errors = Counter(" ".join(group.error.split())[:100] for group in groups if group.error)
    failed = [failed for group in groups for failed in group.errored]
    return Analysis(
        environment=name,
        tasks=len(keys),
        do_nothing=_mean([one.do_nothing for one in examined if one.do_nothing is not None]),
        true_at_reset=_mean([one.true_at_reset for one in examined if one.true_at_reset is not None]),
        groups=len(groups),
        mean=_mean(rewards),
        levels=tuple(sorted(set(rewards))),
        deviation=_mean([float(np.std(g.valid_rewards)) for g in groups if g.valid_rewards]),
        informative=_mean([float(group.informative) for group in groups]),
        errored=_mean([float(one) for one in failed]),
        errors=tuple(errors.most_common()),
        tokens=_mean([float(count) for group in groups for count in group.tokens]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def table(analyses: Sequence[Analysis]) -> str:
    """Aligned columns, then warnings and errors."""
    head = [
        "environment",
        "tasks",
        "idle",
        "at reset",
        "groups",
        "mean",
        "levels",
        "spread",
        "differ",
        "failed",
        "tokens",
    ]
    rows = [head, *(_row(one) for one in analyses)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    notes = [f"warning: {one.environment}: {text}" for one in analyses for text in one.warnings]
    notes += [
        f"error: {one.environment}: {text} ({count})" for one in analyses for text, count in one.errors[:3]
    ]
    legend = (
        "idle: reward of doing nothing; at reset: checks that pass then; levels: different rewards; spread: "
        "standard deviation within a group; differ: informative groups; failed: technical failures"
    )
    return "\n".join([*lines, "", *notes, *([""] if notes else []), legend])


def _row(one: Analysis) -> list[str]:
    return [
        one.environment,
        str(one.tasks),
        _number(one.do_nothing, ".2f"),
        _number(one.true_at_reset, ".0%"),
        str(one.groups),
        _number(one.mean, ".2f"),
        str(len(one.levels)) if one.levels else "-",
        _number(one.deviation, ".2f"),
        _number(one.informative, ".0%"),
        _number(one.errored, ".0%"),
        _number(one.tokens, ".0f"),
    ]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
