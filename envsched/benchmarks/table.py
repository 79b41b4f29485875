"""The comparison in numbers: one row for each world and arm, paired by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from envsched.benchmarks.cells import GROUP_SIZE
from envsched.benchmarks.simulate import Course
from envsched.measures import Estimate, Floats, estimate, level_at, reached, smooth

Courses = Mapping[int, Course]
"""Course by seed."""

WARM_STEP = 10
"""Step from which informative shares are compared."""
SPEARMAN_STEP = 20


@dataclass(frozen=True)
class Row:
    """An arm in a world. Estimates are over seeds; nan where there is nothing to estimate."""

    world: str
    arm: str
    seeds: int
    missed: int
    """Seeds with which it never reached uniform's best level; each counts as the whole budget."""
    rollouts: Estimate
    """Rollouts to the best level that uniform reaches within the budget, levels smoothed over 5 steps."""
    saving: Estimate
    """Share of the oracle's saving of rollouts: 0 is uniform's own use, 1 the oracle's."""
    area: Estimate
    """Mean level over the budget of rollouts."""
    gain: Estimate
    """`area` minus uniform's, on the same seed."""
    final: Estimate
    """Smoothed level at the end of the budget."""
    informative: Estimate
    """Informative share of all groups rolled out from step 10 on, over the oracle's."""
    spearman: Estimate
    """Rank correlation of predicted and true variance on nodes never rolled out, before step 20."""
    seconds: Estimate
    """Time in the scheduler a step."""


@dataclass(frozen=True)
class Curve:
    """A course along the rollouts it used."""

    rollouts: Floats
    """From 0 on."""
    level: Floats

    def at(self, rollouts: Floats) -> Floats:
        """Level after so many rollouts."""
        return level_at(self.rollouts, self.level, rollouts)


def curve(course: Course, smoothed: bool = True) -> Curve:
    """The learning curve of a course, before its first update at 0 rollouts."""
    level = np.array(course.level)
    return Curve(
        np.array([0, *course.rollouts], dtype=np.float64),
        np.concatenate([[course.start], smooth(level) if smoothed else level]),
    )


def make_row(
    world: str, arm: str, courses: Mapping[str, Courses], references: tuple[str, str], budget: int
) -> Row:
    """Compare an arm with `references`, uniform and oracle, on the seeds that all three have.

    `budget` is the number of rollouts that count, those of uniform.
    """
    uniform, oracle = (courses[name] for name in references)
    seeds = sorted(courses[arm].keys() & uniform.keys() & oracle.keys())
    own, base, best = ([arms[seed] for seed in seeds] for arms in (courses[arm], uniform, oracle))
    targets = [float(curve(course).level.max()) for course in base]
    used = _rollouts_to(own, targets, budget)
    of_uniform = _rollouts_to(base, targets, budget)
    of_oracle = np.nan_to_num(_rollouts_to(best, targets, budget), nan=budget)
    capped = np.nan_to_num(used, nan=budget)
    areas, base_areas = _areas(own, budget), _areas(base, budget)
    return Row(
        world,
        arm,
        seeds=len(seeds),
        missed=int(np.isnan(used).sum()),
        rollouts=estimate(_mean, capped),
        saving=estimate(_share, of_uniform, capped, of_oracle),
        area=estimate(_mean, areas),
        gain=estimate(_mean, areas - base_areas),
        final=estimate(_mean, np.array([curve(course).at(np.array([budget]))[0] for course in own])),
        informative=estimate(_ratio, _informative(own), _informative(best)),
        spearman=estimate(_mean, _spearmans(own)),
        seconds=estimate(_mean, np.array([np.mean(course.seconds) for course in own])),
    )


def markdown(rows: Sequence[Row], budget: int) -> str:
    """A table for each world, the arms in order of their area."""
    head = [
        "arm", "rollouts to uniform's best", "share of oracle's saving", "area", "area - uniform's",
        "final level", "informative / oracle's", "Spearman, unseen", "s / step",
    ]  # fmt: skip
    parts = [
        "Mean and 95 % bootstrap interval over seeds. `>`: some seeds never reached uniform's best level and "
        f"count as the budget of {budget:,} rollouts; in brackets how many."
    ]
    for world in dict.fromkeys(row.world for row in rows):
        own = sorted((row for row in rows if row.world == world), key=lambda row: -row.area.mean)
        parts += ["", f"## {world}, seeds: {own[0].seeds}", "", line(head), line(["---"] * len(head))]
        parts += [line(_texts(row)) for row in own]
    return "\n".join(parts) + "\n"


def _texts(row: Row) -> list[str]:
    never = f" ({row.missed})" if row.missed else ""
    return [
        row.arm,
        f"{'> ' if row.missed else ''}{text(row.rollouts, ',.0f')}{never}",
        text(row.saving, ".2f"),
        text(row.area, ".3f"),
        text(row.gain, "+.4f"),
        text(row.final, ".3f"),
        text(row.informative, ".2f"),
        text(row.spearman, ".2f"),
        f"{row.seconds.mean:.3f}",
    ]


def text(value: Estimate, form: str) -> str:
    """A number and its interval; a dash where there is none."""
    return "-" if np.isnan(value.mean) else f"{value.mean:{form}} [{value.low:{form}}, {value.high:{form}}]"


def line(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def _rollouts_to(courses: Sequence[Course], targets: Sequence[float], budget: int) -> Floats:
    """Rollouts to reach each course's target; nan where it is not reached within the budget."""
    curves = [curve(course) for course in courses]
    return np.array(
        [reached(c.rollouts, c.level, target, budget) for c, target in zip(curves, targets, strict=True)]
    )


def _areas(courses: Sequence[Course], budget: int) -> Floats:
    grid = np.linspace(0, budget, 1 + budget // GROUP_SIZE // 8)
    return np.array([curve(course, smoothed=False).at(grid).mean() for course in courses])


def _informative(courses: Sequence[Course]) -> Floats:
    return np.array([np.mean(course.informative[WARM_STEP:] or np.nan) for course in courses])


def _spearmans(courses: Sequence[Course]) -> Floats:
    values = [
        score.get("spearman_unseen")
        for course in courses
        for score in course.scores
        if score["step"] == SPEARMAN_STEP
    ]
    return np.array([value for value in values if value is not None])


def _mean(values: Floats) -> Floats:
    return np.asarray(values.mean(axis=-1))


def _ratio(values: Floats, others: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(values.mean(axis=-1) / others.mean(axis=-1))


def _share(uniform: Floats, own: Floats, oracle: Floats) -> Floats:
    """Ratio of mean savings: a mean of ratios would be ruled by seeds on which the oracle hardly saves."""
    return _ratio(uniform - own, uniform - oracle)
