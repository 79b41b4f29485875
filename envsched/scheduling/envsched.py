"""EnvSched: predicted reward variance over the dual-relation graph."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from envsched.config import GraphSettings, ScheduleSettings, VarianceSettings
from envsched.graph.across import SKETCH, sketch
from envsched.graph.build import Edges
from envsched.graph.neighbours import Matrix
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.predictive import Predictive
from envsched.scheduling.scheduler import Prediction
from envsched.variance.evidence import Evidence, gather
from envsched.variance.fit import fit
from envsched.variance.model import Inputs, VarianceModel, adjacency
from envsched.variance.posterior import Posterior, combine


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
        self.variance_settings = variance or VarianceSettings()
        self.model: VarianceModel | None = None
        self.sketches: dict[str, Matrix] = {}
        """Mean execution of each node rolled out so far."""
        self.rebuilt = self.fitted = -1
        """Steps for which the graph was rebuilt and the model trained."""
        self.loss = float("nan")
        super().__init__(nodes, seed, group_size, schedule, graph, self.variance_settings.half_life)

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; statistics and what the model has learnt stay."""
        super().update(added, removed)
        self.sketches = {key: row for key, row in self.sketches.items() if key in self.nodes}
        self.row = {key: row for row, key in enumerate(self.keys)}
        self.within_adjacency = adjacency(self.graph.within, len(self.keys))
        self.rebuilt = self.fitted = -1
        self._rebuild()

    def observe(self, groups: Sequence[GroupOutcome]) -> None:
        """Take in finished groups, in any order, also late ones."""
        super().observe(groups)
        for group in sorted(groups, key=lambda group: (group.key, group.drawn_step)):
            if group.key in self.row and any(group.traces):
                new = sketch(group.traces)
                old = self.sketches.get(group.key)
                self.sketches[group.key] = (new if old is None else (old + new) / 2).astype(np.float16)

    def rebuild_graph(self, step: int) -> Edges:
        """Bring the cross-environment relation up to date with the executions observed before `step`."""
        if self.rebuilt != step:
            self._rebuild()
            self.rebuilt = step
        return self.across

    def fit_variance(self, step: int) -> float:
        """Train the variance model on the groups observed before `step`; its loss, in nats a rollout."""
        if self.fitted != step:
            inputs = self.inputs(self.evidence(step))
            self.loss = fit(self._model(inputs), inputs, self.variance_settings, self.seed * 1_000_003 + step)
            self.fitted = step
        return self.loss

    def next_batch(self, size, step):  # type: ignore[no-untyped-def]
        """Exactly `size` distinct nodes; ScheduleError where that is impossible."""
        self.rebuild_graph(step)
        self.fit_variance(step)
        return super().next_batch(size, step)

    def predict(self, step: int) -> Prediction:
        """The next group of every node, from what was observed so far."""
        posterior = self.posterior(step)
        return Prediction(posterior.mean, posterior.variance, posterior.informative(self.group_size))

    def posterior(self, step: int) -> Posterior:
        """The graph's prediction as a prior, combined with each node's own record."""
        evidence = self.evidence(step)
        mean, strength = self.prior(evidence)
        own = float(self.variance_settings.own_evidence)
        return combine(mean, strength, own * evidence.successes, own * evidence.trials, evidence.ratio)

    def prior(self, evidence: Evidence):  # type: ignore[no-untyped-def]
        inputs = self.inputs(evidence)
        with torch.no_grad():
            mean, strength = self._model(inputs)(inputs)
        return mean.double().numpy(), strength.double().numpy()

    def evidence(self, step: int) -> Evidence:
        """What is known of every node, as of `step`."""
        return gather(self.statistics.table(step), self.order, self.graph.environment, self.group_size)

    def inputs(self, evidence: Evidence) -> Inputs:
        """The graph and the evidence as tensors."""
        return Inputs(
            features=torch.from_numpy(self.graph.features),
            environment=torch.from_numpy(self.graph.environment),
            relations={"within": self.within_adjacency, "across": self.across_adjacency},
            successes=torch.from_numpy(evidence.successes).float(),
            trials=torch.from_numpy(evidence.trials).float(),
            other=torch.from_numpy(evidence.other).float(),
        )

    def _rebuild(self) -> None:
        rows = np.zeros((len(self.keys), SKETCH), dtype=np.float32)
        seen = np.zeros(len(self.keys), dtype=np.float32)
        for key, values in self.sketches.items():
            rows[self.row[key]], seen[self.row[key]] = values, 1
        self.across = self.graph.across(rows, seen)
        self.across_adjacency = adjacency(self.across, len(self.keys))

    def _model(self, inputs: Inputs) -> VarianceModel:
        if self.model is None or self.model.enter[0].in_features != inputs.features.shape[1]:
            v = self.variance_settings
            self.model = VarianceModel(inputs.features.shape[1], v.width, v.rounds, v.relations, self.seed)
        return self.model

    def state_dict(self) -> dict[str, Any]:
        weights = {}
        if self.model is not None:
            weights = {name: _encode(value.numpy()) for name, value in self.model.state_dict().items()}
        return {**super().state_dict(), "weights": weights}

    def load_fields(self, state: Mapping[str, Any]) -> None:
        raise NotImplementedError


def _encode(values: np.ndarray) -> list[Any]:  # type: ignore[type-arg]
    return [values.dtype.str, list(values.shape), base64.b64encode(values.tobytes()).decode()]
