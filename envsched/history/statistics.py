"""What the history says about each node, older evidence counting less."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from envsched.history.outcome import GroupOutcome

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SUMS = (
    "visits",
    "errors",
    "groups",
    "mean",
    "truncations",
    "turns",
    "calls",
    "tokens",
    "rollouts",
    "pairs",
    "variance",
    "spread",
)
"""What is summed for a node; each group adds its share, weighted by age."""
Observation = tuple[Any, ...]
"""Key, step drawn, then what the group adds to each of `SUMS`."""


@dataclass(frozen=True)
class NodeTable:
    """Statistics of all nodes at one step: arrays aligned with `keys`.

    A group drawn `age` steps ago weighs 2 ** (-age / half_life). Averages are over a node's groups, and
    within a group over the rollouts that did not error. What was never observed is nan.
    """

    keys: tuple[str, ...]
    """Sorted."""
    seen: npt.NDArray[np.bool_]
    """Whether some rollout of the node ended without an error."""
    attempts: Integers
    """Groups rolled out, of any age and outcome."""
    since_visit: Floats
    """Steps since the newest group was drawn; inf for a node never drawn."""
    effective_count: Floats
    """Sum of the weights of groups that are evidence: those with a rollout that did not error."""
    effective_rollouts: Floats
    """The same sum, each group times its rollouts that did not error."""
    mean: Floats
    """Mean of the groups' mean rewards, in [0, 1]."""
    variance: Floats
    """Mean of the groups' unbiased reward variances, in [0, 0.5]."""
    spread: Floats
    """Mean of the groups' unbiased estimates of mu (1 - mu), mu being the expected reward; in [0, 0.5]."""
    error_rate: Floats
    """Share of rollouts that errored."""
    truncation_rate: Floats
    turns: Floats
    calls: Floats
    tokens: Floats
    """Generated tokens of a rollout."""


class NodeStatistics:
    """Decayed statistics of a pool of nodes, updated group by group.

    The order in which groups of one `observed_step` come in changes nothing, not even the last bit: they are
    kept apart, and added in a fixed order once a later step begins.
    """

    def __init__(self, keys: Sequence[str], half_life: float) -> None:
        """`half_life` in policy steps, above 0; `math.inf` keeps all evidence at full weight."""
        if not half_life > 0:
            raise ValueError(f"half_life: found {half_life}; expected a number above 0")
        self.half_life = half_life
        self.keys: tuple[str, ...]
        self._attempts: Integers
        self._visited: Integers
        self._sums: Floats
        self._place_keys(keys)
        self._pending: list[Observation] = []
        self._pending_step = -1

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, also late ones. Groups of nodes outside the pool are left out."""
        for group in sorted(groups, key=lambda group: group.observed_step):
            if group.observed_step > self._pending_step:
                self._attempts, self._visited, self._sums = self._with_pending()
                self._pending = []
                self._pending_step = group.observed_step
            if group.key in self._index:
                self._pending.append(_observation(group))

    def table(self, step: int) -> NodeTable:
        """Statistics as of a step; ValueError where a group was drawn after it."""
        attempts, visited, sums = self._with_pending()
        if visited.max(initial=-1) > step:
            raise ValueError(f"step: found {step}; expected at least {visited.max()}, when a group was drawn")
        total = dict(zip(SUMS, sums.T, strict=True))
        now = np.exp2(self._epoch(visited) - step / self.half_life)
        return NodeTable(
            keys=self.keys,
            seen=total["groups"] > 0,
            attempts=attempts,
            since_visit=np.where(visited < 0, np.inf, step - visited),
            effective_count=total["groups"] * now,
            effective_rollouts=total["rollouts"] * now,
            mean=_ratio(total["mean"], total["groups"]),
            variance=_ratio(total["variance"], total["pairs"]),
            spread=_ratio(total["spread"], total["pairs"]),
            error_rate=_ratio(total["errors"], total["visits"]),
            truncation_rate=_ratio(total["truncations"], total["groups"]),
            turns=_ratio(total["turns"], total["groups"]),
            calls=_ratio(total["calls"], total["groups"]),
            tokens=_ratio(total["tokens"], total["groups"]),
        )

    def update(self, added: Sequence[str] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; all other nodes keep their statistics. KeyError for a removed key not in it."""
        missing = sorted(set(removed) - self._index.keys())
        if missing:
            raise KeyError(f"not in the pool: {', '.join(missing[:5])}")
        kept = self._nodes()
        self._place_keys([*(set(self.keys) - set(removed)), *added])
        self._fill(kept)
        self._pending = [observation for observation in self._pending if observation[0] in self._index]

    def state_dict(self) -> dict[str, Any]:
        """Everything, as JSON data."""
        return {
            "keys": list(self.keys),
            "half_life": self.half_life,
            "nodes": self._nodes(),
            "pending": [list(observation) for observation in sorted(self._pending)],
            "pending_step": self._pending_step,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`. ValueError names fields that are unknown or missing."""
        wrong = sorted(state.keys() ^ self.state_dict().keys())
        if wrong:
            raise ValueError(f"NodeStatistics state: unknown or missing fields: {', '.join(wrong)}")
        self.half_life = state["half_life"]
        self._place_keys(state["keys"])
        self._fill(state["nodes"])
        self._pending = [(key, drawn, *values) for key, drawn, *values in state["pending"]]
        self._pending_step = state["pending_step"]

    def _place_keys(self, keys: Sequence[str]) -> None:
        """An empty record for each key."""
        self.keys = tuple(sorted(set(keys)))
        self._index = {key: row for row, key in enumerate(self.keys)}
        self._attempts = np.zeros(len(self.keys), dtype=np.int64)
        self._visited = np.full(len(self.keys), -1, dtype=np.int64)
        self._sums = np.zeros((len(self.keys), len(SUMS)))

    def _epoch(self, visited: Integers) -> Floats:
        """To which multiple of the half-life each node's sums refer; whole, so that moving on is exact."""
        return np.floor(np.maximum(visited, 0) / self.half_life)

    def _with_pending(self) -> tuple[Integers, Integers, Floats]:
        """Attempts, newest step drawn and sums, with the pending observations added."""
        attempts, visited = self._attempts.copy(), self._visited.copy()
        if not self._pending:
            return attempts, visited, self._sums.copy()
        ordered = sorted(self._pending)
        rows = np.array([self._index[observation[0]] for observation in ordered])
        drawn = np.array([observation[1] for observation in ordered])
        values = np.array([observation[2:] for observation in ordered])
        np.add.at(attempts, rows, 1)
        np.maximum.at(visited, rows, drawn)
        epoch = self._epoch(visited)
        sums = self._sums * np.exp2(self._epoch(self._visited) - epoch)[:, None]
        weights = np.exp2(drawn / self.half_life - epoch[rows])
        np.add.at(sums, rows, weights[:, None] * values)
        return attempts, visited, sums

    def _nodes(self) -> dict[str, list[float]]:
        """Attempts, newest step drawn and sums of each node that has any."""
        return {
            self.keys[row]: [int(self._attempts[row]), int(self._visited[row]), *self._sums[row].tolist()]
            for row in np.flatnonzero(self._attempts)
        }

    def _fill(self, nodes: Mapping[str, Sequence[float]]) -> None:
        """Put back what `_nodes` gave, where the key is still in the pool."""
        for key, (attempts, visited, *sums) in nodes.items():
            row = self._index.get(key)
            if row is not None:
                self._attempts[row], self._visited[row], self._sums[row] = attempts, visited, sums


def _observation(group: GroupOutcome) -> Observation:
    """What a group adds; rollouts that errored are evidence about errors only."""
    valid = ~np.array(group.errored, dtype=bool)
    count = int(valid.sum())
    errors = 1 - count / len(valid)
    if not count:
        return (group.key, group.drawn_step, 1.0, errors, *[0.0] * (len(SUMS) - 2))
    columns = (group.truncated, group.turns, group.calls, group.tokens)
    averages = [float(np.mean(np.asarray(column, dtype=float)[valid])) for column in columns]
    mean, variance = group.mean, group.variance
    # E[mean (1 - mean)] = mu (1 - mu) - E[variance] / count.
    pairs = [1.0, variance, mean * (1 - mean) + variance / count] if count > 1 else [0.0, 0.0, 0.0]
    return (group.key, group.drawn_step, 1.0, errors, 1.0, mean, *averages, float(count), *pairs)


def _ratio(total: Floats, weight: Floats) -> Floats:
    """`total / weight`, nan where there is no weight."""
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)
