"""Prioritized level replay on the spread of a group's rewards."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from envsched.graph.profile import NodeProfile
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.sampling import draw_arms, shuffled
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.scheduler import ScheduledTask


class Plr(Stepwise):
    """Replays tasks whose groups spread most or are longest ago, and tries new ones beside them.

    Each place of a batch replays with probability `replay` and else takes an unseen task, uniformly. With
    probability `rho` a replay is drawn by staleness, in proportion to the steps since the task's newest
    group, and else by rank, in proportion to (1 / rank) ^ (1 / `beta`): rank 1 has the largest standard
    deviation of rewards in its newest group, and ties are in random order. Where one of the three has no
    tasks left, the others fill up.

    Source: prioritized level replay (arXiv 2010.03934) with its two constants; its score, an error of the
    critic, has no counterpart without one. The paper's replay probability is the share of tasks seen, which
    hardly replays in a pool larger than the budget; a fixed one, as in JaxUED, uses what was found.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        beta: float = 0.1,
        rho: float = 0.1,
        replay: float = 0.5,
    ) -> None:
        """`beta` above 0; `rho` and `replay` in [0, 1]."""
        self.beta = beta
        self.rho = rho
        self.replay = replay
        self.scores: dict[str, float] = {}
        self.visited: dict[str, int] = {}
        super().__init__(nodes, seed, group_size)

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        """Replayed and unseen tasks, in random order."""
        unseen = [key for key in left if key not in self.scores]
        ranked, stale = self.by_rank(left, rng), self.by_staleness(left, step, rng)
        weights = {
            "unseen": 1 - self.replay,
            "rank": self.replay * (1 - self.rho),
            "staleness": self.replay * self.rho,
        }
        chosen: dict[str, str] = {}
        while len(chosen) < size:
            queues = {"unseen": shuffled(unseen, rng), "rank": ranked, "staleness": stale}
            queues = {name: [key for key in queue if key not in chosen] for name, queue in queues.items()}
            places = draw_arms(min(size - len(chosen), sum(map(len, queues.values()))), queues, weights, rng)
            for name, key in places:
                chosen.setdefault(key, name)
        return [self._scheduled(key, name) for key, name in chosen.items()]

    def by_rank(self, keys: Sequence[str], rng: np.random.Generator) -> list[str]:
        """Seen tasks in an order drawn by rank."""
        seen = [key for key in shuffled(keys, rng) if key in self.scores]
        seen.sort(key=lambda key: -self.scores[key])
        # Clocks on a log scale: (1 / rank) ^ (1 / beta) underflows for large ranks.
        clocks = np.log(rng.exponential(size=len(seen))) + np.log(np.arange(1, len(seen) + 1)) / self.beta
        return [seen[row] for row in np.argsort(clocks, kind="stable")]

    def by_staleness(self, keys: Sequence[str], step: int, rng: np.random.Generator) -> list[str]:
        """Seen tasks in an order drawn by staleness."""
        seen = [key for key in keys if key in self.scores]
        return shuffled(seen, rng, np.array([max(step - self.visited[key], 1) for key in seen], dtype=float))

    def absorb(self, results: Sequence[Result]) -> None:
        """The newest draw of a task counts, also where an older one came in later."""
        scores, visited = dict(self.scores), dict(self.visited)
        for found in results:
            if found.drawn_step >= visited.get(found.key, found.drawn_step):
                scores[found.key], visited[found.key] = found.deviation, found.drawn_step
        self.scores, self.visited = scores, visited

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool between two batches."""
        super().update(added, removed)
        self.scores = {key: score for key, score in self.scores.items() if key in self.nodes}
        self.visited = {key: step for key, step in self.visited.items() if key in self.nodes}

    def metrics(self) -> dict[str, float]:
        """Share of the pool that was seen."""
        return {"schedule/seen": len(self.scores) / len(self.keys)} if self.keys else {}

    def state_dict(self) -> dict[str, Any]:
        """Everything beside the nodes themselves that decides later batches, as JSON data."""
        return super().state_dict() | {"scores": self.scores, "visited": self.visited}

    def _scheduled(self, key: str, drawn_by: str) -> ScheduledTask:
        score = self.scores.get(key, 0.0)
        return ScheduledTask(key, score, parts={"deviation": score}, context={"drawn_by": drawn_by})
