"""The comparison in numbers: one row for each arm in a regime, paired by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from envsched.benchmarks.efficiency.trials import Outcome
from envsched.measures import Estimate, Floats, estimate, level_at, smooth

Outcomes = Mapping[int, Outcome]
"""Outcome by seed."""

SMOOTHED = 3
"""Evaluations that a level is the mean of: the last ones, up to so many."""
WORST = 0.2
"""Share of environments that are counted as the worst."""
POINTS = 201
"""Of the grids that curves are compared on."""
UNIFORM, ORACLE, OURS = "uniform", "sampled_oracle", "envsched"


@dataclass(frozen=True)
class Row:
    """An arm in a regime against uniform, and the oracle where it was run. Estimates are over seeds."""

    regime: str
    model: str
    arm: str
    rate: float
    seeds: int
    speedup: Estimate
    """Uniform's rollouts to a level over the arm's, see `speedup`."""
    token_speedup: Estimate
    """The same in generated tokens."""
    saving: Estimate
    """Share of the rollouts that the oracle saves: 0 is uniform's own use, 1 the oracle's."""
    area: Estimate
    """Mean success over the budget of rollouts."""
    gain: Estimate
    """`area` minus uniform's, on the same seed."""
    ahead: Estimate
    """`area` minus EnvSched's, on the same seed: above 0 where the arm is better."""
    final: Estimate
    """Smoothed success at the end."""
    final_environments: Estimate
    """The same on environments held out whole."""
    worst: Estimate
    """The same on the worst environment."""
    worst_fifth: Estimate
    """Its mean over the worst fifth of environments."""
    informative: Estimate
    """Share of informative groups among all rolled out."""
    scheduling: Estimate
    """Share of a step's time spent in the scheduler."""


@dataclass(frozen=True)
class Curves:
    """Smoothed success on held-out tasks along what was used, one row a seed, evaluations as columns."""

    used: Floats
    """Rollouts or tokens before each evaluation, from 0."""
    level: Floats

    def mean(self, rows: Floats, at: Floats) -> Floats:
        """Mean level over these rows after so much use."""
        levels = [level_at(self.used[row], self.level[row], at) for row in rows.astype(int)]
        return np.asarray(np.mean(levels, axis=0), dtype=np.float64)


def make_row(regime: str, model: str, arm: str, rate: float, outcomes: Mapping[str, Outcomes]) -> Row:
    """Compare an arm with uniform, and with the oracle where it is there, on the seeds that they share."""
    seeds = shared_seeds(outcomes, arm, UNIFORM)
    own = [outcomes[arm][seed] for seed in seeds]
    base = [outcomes[UNIFORM][seed] for seed in seeds]
    budget = min((found.rollouts[-1] for found in base), default=0)
    return Row(
        regime,
        model,
        arm,
        rate,
        seeds=len(seeds),
        speedup=_speedup(base, own, "rollouts"),
        token_speedup=_speedup(base, own, "tokens"),
        saving=_saving(outcomes, arm),
        area=_mean(_areas(own, budget)),
        gain=_mean(area_difference(outcomes, arm, UNIFORM, seeds)),
        ahead=_mean(area_difference(outcomes, arm, OURS, shared_seeds(outcomes, arm, OURS, UNIFORM))),
        final=_mean([_last(found.heldout) for found in own]),
        final_environments=_mean([_last(found.heldout_environments) for found in own]),
        worst=_mean([_worst(found, 0.0) for found in own]),
        worst_fifth=_mean([_worst(found, WORST) for found in own]),
        informative=_mean([found.informative for found in own]),
        scheduling=_mean([found.scheduling for found in own]),
    )


def shared_seeds(outcomes: Mapping[str, Outcomes], *arms: str) -> list[int]:
    """Seeds that all of these arms were run with."""
    return sorted(set.intersection(*(set(outcomes.get(arm, {})) for arm in arms)))


def area_difference(outcomes: Mapping[str, Outcomes], arm: str, other: str, seeds: Sequence[int]) -> Floats:
    """Area of an arm minus that of another over uniform's budget, one a seed."""
    budget = min((outcomes[UNIFORM][seed].rollouts[-1] for seed in seeds), default=0)
    mine, theirs = (_areas([outcomes[name][seed] for seed in seeds], budget) for name in (arm, other))
    return mine - theirs


def over_regimes(regimes: Sequence[Mapping[str, Outcomes]], arm: str, other: str) -> Estimate:
    """Area of an arm minus that of another, mean over regimes, on the seeds that they share in all."""
    shared = [set(shared_seeds(outcomes, arm, other, UNIFORM)) for outcomes in regimes]
    seeds = sorted(set.intersection(*shared))
    found = [area_difference(outcomes, arm, other, seeds) for outcomes in regimes]
    return _mean(np.mean(found, axis=0))


def speedup(base: Curves, own: Curves, rows: Floats) -> float:
    """How many times as much uniform uses to the highest level that both mean curves reach.

    Above 1 where the arm is faster. Curves are means over seeds, as each alone is noisy.
    """
    own_grid, base_grid = _grid(own), _grid(base)
    mine, theirs = own.mean(rows, own_grid), base.mean(rows, base_grid)
    level = min(mine.max(), theirs.max())
    if level <= max(mine[0], theirs[0]):
        return float("nan")
    return float(base_grid[np.argmax(theirs >= level)] / own_grid[np.argmax(mine >= level)])


def saving(base: Curves, own: Curves, oracle: Curves, rows: Floats) -> float:
    """Share of the oracle's saving: of the rollouts that uniform needs to its best level, those the arm saves
    over those the oracle saves. A curve that does not reach that level counts with the whole budget."""
    grid = _grid(base)
    best = base.mean(rows, grid)
    used = []
    for curves in (base, own, oracle):
        hits = np.flatnonzero(curves.mean(rows, grid) >= best.max())
        used.append(grid[hits[0]] if len(hits) else grid[-1])
    saved = used[0] - used[2]
    return float((used[0] - used[1]) / saved) if saved > 0 else float("nan")


def _speedup(base: Sequence[Outcome], own: Sequence[Outcome], use: str) -> Estimate:
    return _over_rows(lambda rows: speedup(_curves(base, use), _curves(own, use), rows), len(own))


def _saving(outcomes: Mapping[str, Outcomes], arm: str) -> Estimate:
    shared = shared_seeds(outcomes, arm, UNIFORM, ORACLE)
    base, own, oracle = (
        _curves([outcomes[name][seed] for seed in shared if shared], "rollouts") if shared else None
        for name in (UNIFORM, arm, ORACLE)
    )
    if base is None or own is None or oracle is None:
        return Estimate(*[float("nan")] * 3)
    return _over_rows(lambda rows: saving(base, own, oracle, rows), len(shared))


def _over_rows(statistic: Callable[[Floats], float], count: int) -> Estimate:
    """A statistic of seeds, given by their rows, with its bootstrap interval."""

    def each(rows: Floats) -> Floats:
        return np.array([statistic(drawn) for drawn in rows]) if rows.ndim > 1 else np.array(statistic(rows))

    return estimate(each, np.arange(count, dtype=np.float64))


def _curves(outcomes: Sequence[Outcome], use: str) -> Curves:
    used = np.array([getattr(found, use) for found in outcomes], dtype=np.float64)
    level = np.array([smooth(np.array(found.heldout), SMOOTHED) for found in outcomes])
    return Curves(used, level)


def _grid(curves: Curves) -> Floats:
    """Use that all of the curves cover, evenly spaced."""
    return np.linspace(0, float(curves.used[:, -1].min()), POINTS)


def _areas(outcomes: Sequence[Outcome], budget: float) -> Floats:
    """Mean success over the budget of each."""
    grid = np.linspace(0, budget, POINTS)
    levels = [level_at(np.array(found.rollouts, float), np.array(found.heldout), grid) for found in outcomes]
    return np.array([level.mean() for level in levels], dtype=np.float64)


def _last(levels: Sequence[float]) -> float:
    return float(np.mean(levels[-SMOOTHED:]))


def _worst(found: Outcome, share: float) -> float:
    """Mean smoothed success at the end over the worst environments: that share of all, one at least."""
    levels = sorted(_last(levels) for levels in found.environments.values())
    return float(np.mean(levels[: max(round(share * len(levels)), 1)]))


def _mean(values: Sequence[float] | Floats) -> Estimate:
    return estimate(lambda sample: np.asarray(sample.mean(axis=-1)), np.asarray(values, dtype=np.float64))
