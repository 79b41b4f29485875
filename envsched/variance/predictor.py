"""The variance model at work on a graph: fits online, and gives every node a belief about its rewards."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from envsched.config import VarianceSettings
from envsched.graph.build import Edges, Graph
from envsched.history.statistics import NodeTable
from envsched.variance.evidence import Evidence, gather
from envsched.variance.fit import fit
from envsched.variance.model import Inputs, VarianceModel, adjacency
from envsched.variance.posterior import Posterior, combine
from envsched.variance.readout import Base, read_out

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

HALF_TRUSTED = 4.0
"""Rollouts after which a node counts half of full evidence in the readout."""


@dataclass(frozen=True)
class Known:
    """What a prediction rests on; arrays over nodes [n]."""

    evidence: Evidence
    base: Base
    mean: Floats
    """Of the prior."""
    strength: Floats
    """Rollouts that the prior is worth."""


class Predictor:
    """Readout, graph network and posterior as one; its state is weights, and the step of their last fit."""

    def __init__(self, settings: VarianceSettings, seed: int) -> None:
        self.settings = settings
        self.seed = seed
        self.loss = float("nan")
        """Of the last fit, in nats a rollout."""
        self.model = VarianceModel(settings.width, settings.rounds, settings.relations, seed)
        self.graph: Graph
        self.across: Edges
        self._within: torch.Tensor
        self._across: torch.Tensor
        self._fitted = -1
        self._table: NodeTable | None = None
        self._evidence: Evidence
        self._read: Base
        self._known: Known | None = None

    def place(self, graph: Graph) -> None:
        """Take another graph, without a cross relation for now; what was learnt stays."""
        self.graph = graph
        self._within = adjacency(graph.within, len(graph.nodes))
        self.connect(Edges(np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.float32)))
        self._table, self._known = None, None

    def connect(self, across: Edges) -> None:
        """Take the cross relation as of now."""
        self.across = across
        self._across = adjacency(across, len(self.graph.nodes))
        self._known = None

    def fit(self, table: NodeTable, order: Integers, step: int) -> float:
        """Train on all that `table` holds, once a step; the loss, in nats a rollout."""
        if self._fitted != step:
            self._look_at(table, order)
            self.loss = fit(self.model, self._inputs(), self.settings, self.seed * 1_000_003 + step)
            self._fitted, self._known = step, None
        return self.loss

    def known(self, table: NodeTable, order: Integers) -> Known:
        """Evidence, readout and prior of every node."""
        self._look_at(table, order)
        if self._known is None:
            with torch.no_grad():
                mean, strength = self.model(self._inputs())
            self._known = Known(self._evidence, self._read, mean.double().numpy(), strength.double().numpy())
        return self._known

    def posterior(self, table: NodeTable, order: Integers) -> Posterior:
        """The graph's prediction as a prior, combined with each node's own record."""
        known = self.known(table, order)
        own = float(self.settings.own_evidence)
        evidence = known.evidence
        return combine(
            known.mean, known.strength, own * evidence.successes, own * evidence.trials, evidence.ratio
        )

    def _look_at(self, table: NodeTable, order: Integers) -> None:
        """Gather and read out, once for each table."""
        if self._table is table:
            return
        evidence = gather(table, order, self.graph.environment)
        odds = np.log((evidence.successes + 0.5) / (evidence.trials - evidence.successes + 0.5))
        weight = evidence.trials / (evidence.trials + HALF_TRUSTED)
        self._table, self._evidence, self._known = table, evidence, None
        self._read = read_out(self.graph.environment, self.graph.features, odds, weight)

    def _inputs(self) -> Inputs:
        evidence, base = self._evidence, self._read
        return Inputs(
            base=torch.from_numpy(base.odds).float(),
            deviation=torch.from_numpy(base.deviation).float(),
            environment=torch.from_numpy(self.graph.environment),
            relations={"within": self._within, "across": self._across},
            successes=torch.from_numpy(evidence.successes).float(),
            trials=torch.from_numpy(evidence.trials).float(),
            other=torch.from_numpy(evidence.other).float(),
        )

    def state_dict(self) -> dict[str, Any]:
        """Weights, and the step of their last fit, as JSON data."""
        weights = {name: encode_array(value.numpy()) for name, value in self.model.state_dict().items()}
        return {"fitted": self._fitted, "weights": weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`; RuntimeError names weights that do not fit."""
        weights = {name: torch.from_numpy(decode_array(row)) for name, row in state["weights"].items()}
        self.model.load_state_dict(weights)
        self._fitted, self._known = state["fitted"], None


def encode_array(values: npt.NDArray[Any]) -> list[Any]:
    """An array as JSON data, bit for bit."""
    return [values.dtype.str, list(values.shape), base64.b64encode(values.tobytes()).decode()]


def decode_array(data: list[Any]) -> npt.NDArray[Any]:
    """What `encode_array` was given."""
    kind, shape, text = data
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(kind)).reshape(shape).copy()
