"""EnvSched: predicted reward variance over the dual-relation graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from envsched.config import GraphSettings, ScheduleSettings, VarianceSettings
from envsched.graph.across import SKETCH, sketch
from envsched.graph.build import Edges
from envsched.graph.neighbours import Matrix
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.alerts import CLEAR, LEAST_TASKS, RAISE, SUSPECT, always_errs, broken_probability
from envsched.scheduling.predictive import Floats, Predictive
from envsched.scheduling.scheduler import Alert, Batch, Prediction
from envsched.variance.drift import Drift
from envsched.variance.posterior import Posterior
from envsched.variance.predictor import Predictor, decode_array, encode_array
from envsched.variance.threads import few_threads

PROBES = 2
"""Groups of a suspect environment in a batch, as far as there is room."""
RECORDED = 0.25
"""Log-odds by which a rollout on record makes a task less telling."""


class EnvSched(Predictive):
    """Statistics travel along both relations to a prior for every node, which its own record then overrules.

    A step is `rebuild_graph`, `fit_variance`, `next_batch`; the last does what of the others was not done.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProfile],
        seed: int,
        group_size: int = 8,
        schedule: ScheduleSettings | None = None,
        graph: GraphSettings | None = None,
        variance: VarianceSettings | None = None,
    ) -> None:
        variance = variance or VarianceSettings()
        self.predictor = Predictor(variance, seed)
        self.sketches: dict[str, Matrix] = {}
        """Execution of each node's newest group, [64]."""
        self.sketched: dict[str, int] = {}
        """Step in which that group was drawn."""
        self.errors: dict[str, tuple[int, str]] = {}
        """Step drawn and error text of each environment's newest group that had one."""
        self.drift = Drift()
        self.alerted: dict[str, Alert] = {}
        """Alerts that stand, by environment."""
        self._rebuilt = -1
        self._suspects: list[int] = []
        super().__init__(nodes, seed, group_size, schedule, graph, variance.half_life)

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; statistics and what the model has learnt stay."""
        super().update(added, removed)
        self.sketches = {key: row for key, row in self.sketches.items() if key in self.nodes}
        self.sketched = {key: step for key, step in self.sketched.items() if key in self.nodes}
        self.drift.keep(self.nodes)
        here = set(self.graph.environments)
        self.errors = {name: error for name, error in self.errors.items() if name in here}
        self.alerted = {name: alert for name, alert in self.alerted.items() if name in here}
        self._row = {key: row for row, key in enumerate(self.keys)}
        self._rebuilt = -1
        self.predictor.place(self.graph)

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, in any order, also late ones."""
        super().observe(groups)
        self.drift.observe(groups)
        self._rebuilt = -1
        for group in groups:
            if group.key not in self._row:
                continue
            if any(group.traces) and group.drawn_step > self.sketched.get(group.key, -1):
                self.sketches[group.key] = sketch(group.traces)
                self.sketched[group.key] = group.drawn_step
            if group.error:
                name = self.nodes[group.key].environment
                self.errors[name] = max(self.errors.get(name, (-1, "")), (group.drawn_step, group.error))

    def rebuild_graph(self, step: int) -> Edges:
        """Bring the cross-environment relation up to date with the executions observed before `step`."""
        if self._rebuilt != step:
            rows = np.zeros((len(self.keys), SKETCH), dtype=np.float32)
            seen = np.zeros(len(self.keys), dtype=np.float32)
            for key, values in self.sketches.items():
                rows[self._row[key]], seen[self._row[key]] = values, 1
            self.predictor.connect(self.graph.across(rows, seen))
            self._rebuilt = step
        return self.predictor.across

    def fit_variance(self, step: int) -> float:
        """Train on the groups observed before `step`; the variance model's loss, in nats a rollout."""
        self.rebuild_graph(step)
        self.drift.learn()
        with few_threads(len(self.keys)):
            return self.predictor.fit(self.table(step), self.order, step)

    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; ScheduleError where that is impossible."""
        self.fit_variance(step)
        with few_threads(len(self.keys)):
            self._look_for_broken(step)
            batch = super().next_batch(size, step)
        self.expect(batch.keys, step)
        return batch

    def expect(self, keys: Sequence[str], step: int) -> None:
        """Remember what is predicted of these nodes, to learn from what comes."""
        mean, counts = self.posterior(step).mean, self.table(step).effective_count[self.order]
        for row in (self._row[key] for key in keys):
            self.drift.expect(self.keys[row], step, float(mean[row]), float(counts[row]))

    def predict(self, step: int) -> Prediction:
        """The next group of every node, from what was observed so far."""
        posterior = self.posterior(step)
        return Prediction(
            posterior.mean,
            posterior.variance,
            posterior.informative(self.group_size),
            posterior.deviation,
            posterior.signal,
        )

    def posterior(self, step: int) -> Posterior:
        """Belief about every node's mean reward, in the order of `keys`."""
        self.rebuild_graph(step)
        table = self.table(step)
        with few_threads(len(self.keys)):
            recorded = self.predictor.posterior(table, self.order)
        recorded_groups = table.effective_count[self.order] * float(self.predictor.settings.own_evidence)
        return self.drift.apply(recorded, recorded_groups)

    def alerts(self) -> list[Alert]:
        """Environments that look broken rather than hard, by name."""
        return [self.alerted[name] for name in sorted(self.alerted)]

    def urgent(self) -> Sequence[int]:
        """Environments under alert, so that a repair shows soon; then suspects, most suspect first."""
        alerted = [self.graph.environments.index(name) for name in sorted(self.alerted)]
        return [*alerted, *(number for number in self._suspects for _ in range(PROBES))]

    def telling(self, step: int) -> Floats:
        """Tasks that other environments let expect to be solved, best with nothing on record."""
        known = self.predictor.known(self.table(step), self.order)
        return known.base.elsewhere - RECORDED * known.evidence.trials

    def metrics(self) -> dict[str, float]:
        """Edges, loss of the variance model as soon as there is one, drift, and how many alerts stand."""
        found = {
            "graph/within_edges": float(self.graph.within.similarity.size),
            "graph/across_edges": float(self.predictor.across.similarity.size),
            "variance/loss": self.predictor.loss,
            "variance/drift": self.drift.shift,
            "schedule/alerts": float(len(self.alerted)),
        }
        return {name: value for name, value in found.items() if np.isfinite(value)}

    def _look_for_broken(self, step: int) -> None:
        """Raise and clear alerts."""
        table = self.table(step)
        known = self.predictor.known(table, self.order)
        environment, names, evidence = self.graph.environment, self.graph.environments, known.evidence
        # Not the environment's own: where all fails, the model learns to expect that of single tasks.
        strength = float(np.median(known.strength)) if names else 1.0
        broken = broken_probability(
            environment,
            known.base.elsewhere,
            strength,
            evidence.successes,
            evidence.trials,
            known.base.environments,
        )
        erring = always_errs(environment, table.error_rate[self.order], table.attempts[self.order])
        limit = np.array([CLEAR if name in self.alerted else RAISE for name in names])
        tried, tasks = np.bincount(environment, evidence.trials > 0), np.bincount(environment)
        broken = np.where(tried >= np.minimum(tasks, LEAST_TASKS), broken, np.minimum(broken, CLEAR))
        suspect = np.flatnonzero((broken >= SUSPECT) & (broken < limit) & ~erring)
        self._suspects = suspect[np.argsort(-broken[suspect], kind="stable")].tolist()
        standing, self.alerted = self.alerted, {}
        for number in np.flatnonzero((broken >= limit) | erring).tolist():
            part, name = environment == number, names[number]
            before = standing.get(name)
            self.alerted[name] = Alert(
                environment=name,
                measured=float(evidence.successes[part].sum() / max(evidence.trials[part].sum(), 1e-9)),
                predicted=float(expit(known.base.elsewhere[part]).mean()),
                since=before.since if before else step,
                error=self.errors.get(name, (-1, ""))[1],
            )

    def state_dict(self) -> dict[str, Any]:
        """Pool, seed, statistics, executions, weights and alerts."""
        return {
            **super().state_dict(),
            "sketches": {key: encode_array(row) for key, row in sorted(self.sketches.items())},
            "sketched": dict(sorted(self.sketched.items())),
            "predictor": self.predictor.state_dict(),
            "drift": self.drift.state_dict(),
            "errors": {name: list(error) for name, error in sorted(self.errors.items())},
            "alerted": {name: vars(alert) for name, alert in sorted(self.alerted.items())},
        }

    def load_fields(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        super().load_fields({"statistics": state["statistics"]})
        self.sketches = {key: decode_array(row) for key, row in state["sketches"].items()}
        self.sketched = dict(state["sketched"])
        self.predictor.seed = self.seed
        self.predictor.load_state_dict(state["predictor"])
        self.drift.load_state_dict(state["drift"])
        self.errors = {name: (step, text) for name, (step, text) in state["errors"].items()}
        self.alerted = {name: Alert(**alert) for name, alert in state["alerted"].items()}
        self._rebuilt = -1
