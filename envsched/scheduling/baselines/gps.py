"""In the manner of GPS: one small network for all tasks, and distance from what was trained on lately."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor, nn

from envsched.graph.profile import NodeProfile
from envsched.history.statistics import NodeTable
from envsched.scheduling.baselines.inferred import (
    Inferred,
    best_known,
    environment_mean,
    fitted_strength,
    with_record,
)
from envsched.scheduling.scheduler import Batch, Floats, Prediction
from envsched.variance.evidence import Evidence
from envsched.variance.posterior import Posterior
from envsched.variance.predictor import decode_array, encode_array

MEMBERS = 3
"""Networks; each leaves out a third of the tasks, of which it is then asked."""
WIDTH = 24
MOST_KNOWN = 1000
"""Most tasks that are trained on."""
FIRST_STEPS, STEPS = 60, 15
"""Optimiser steps for a new pool, and before each further batch."""
RATE, DECAY = 0.003, 1.0
"""Of AdamW."""
LATELY = 4.0
"""Steps after which a visit is half forgotten by the diversity term."""
DIVERSITY = 0.1
HALF_WEIGHT = 8.0
"""Rollouts at which a task has half its full weight in training."""
TRUSTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of what the network adds, of which the one that explains left-out records best is used."""


class Gps(Inferred):
    """A task's prior comes from a network that reads the task, its environment and how the pool fares.

    The network is trained online on the shared history; a known task's prior is that of the member which was
    not trained on its record. Selection takes off how similar the text is to that of tasks rolled out lately.
    After GPS (arXiv 2602.01970), whose code is not public: instead of a latent variable, the present mean of
    the environment tells the network how far training is, and what the network says is relative to that.
    """

    def __init__(self, nodes: Sequence[NodeProfile], seed: int, group_size: int = 8, **options: Any) -> None:
        """`options` are those of `Predictive`."""
        self.weights: list[Any] = []
        self.trained_on = ""
        self.fitted_step = -1
        super().__init__(nodes, seed, group_size, **options)

    def update(self, added: Sequence[NodeProfile] = (), removed: Sequence[str] = ()) -> None:
        """Change the pool; statistics stay, the network is trained afresh unless the old pool comes back."""
        super().update(added, removed)
        one_hot = np.eye(len(self.graph.environments))[self.graph.environment]
        self.static = np.hstack([self.graph.text, self.graph.outline, one_hot])
        self.member = np.array([crc32(key.encode()) % MEMBERS for key in self.keys], dtype=np.int64)

    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; trains first, once a step."""
        if self.fitted_step != step:
            self._fit(self.evidence(step), step)
            self.fitted_step = step
        return super().next_batch(size, step)

    def posterior(self, evidence: Evidence) -> Posterior:
        """The belief about every node, by the network as it is."""
        inputs, odds = self._inputs(evidence)
        if self.trained_on != self._pool():
            return with_record(expit(odds), np.full_like(odds, 2.0), evidence)
        with torch.no_grad():
            found = self._network()(inputs).double().numpy()
        seen = np.flatnonzero(evidence.seen)
        said = found.mean(axis=0)
        said[seen] = found[self.member[seen], seen]
        trust = min(TRUSTS, key=lambda share: log_loss(odds + share * said, evidence))
        mean = expit(odds + trust * said)
        return with_record(mean, np.full_like(mean, fitted_strength(mean, evidence)), evidence)

    def values(self, prediction: Prediction, table: NodeTable) -> dict[str, Floats]:
        """The usual terms, and distance from what was rolled out lately."""
        waited = table.since_visit[self.order]
        lately = np.flatnonzero(waited < 3 * LATELY)
        cosine = np.maximum(self.graph.text @ self.graph.text[lately].T, 0) * np.exp2(
            -waited[lately] / LATELY
        )
        nearest = cosine.max(axis=1, initial=0.0).astype(np.float64)
        parts = super().values(prediction, table)
        lost = 1 - np.exp(-DIVERSITY * nearest)
        return parts | {"diversity": -lost * np.sum(list(parts.values()), axis=0)}

    def state_dict(self) -> dict[str, Any]:
        """Pool, seed, statistics and the networks."""
        names = ("weights", "trained_on", "fitted_step")
        return super().state_dict() | {name: getattr(self, name) for name in names}

    def _fit(self, evidence: Evidence, step: int) -> None:
        """Some optimiser steps on all records, starting from the present weights where these fit the pool."""
        known = best_known(evidence, MOST_KNOWN)
        if len(known) < 2:
            return
        fresh = self.trained_on != self._pool()
        if fresh:
            self.weights, self.trained_on = [], self._pool()
        network = self._network()
        every, present = self._inputs(evidence)
        inputs, odds = every[known], torch.from_numpy(present[known]).float()
        trials = evidence.trials[known]
        rate = torch.from_numpy(evidence.successes[known] / trials).float()
        others = self.member[known] != np.arange(MEMBERS)[:, None]
        weight = torch.from_numpy(others * trials / (trials + HALF_WEIGHT)).float()
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
        for _ in range(FIRST_STEPS if fresh else STEPS):
            optimizer.zero_grad()
            said = odds + network(inputs)
            losses = nn.functional.binary_cross_entropy_with_logits(
                said, rate.expand_as(said), reduction="none"
            )
            ((losses * weight).sum() / weight.sum()).backward()
            optimizer.step()
        weights = nn.utils.parameters_to_vector(network.parameters())
        self.weights = encode_array(weights.detach().numpy())

    def _network(self) -> Network:
        network = Network(self.static.shape[1] + 2, self.seed)
        if self.weights:
            weights = torch.from_numpy(decode_array(self.weights))
            nn.utils.vector_to_parameters(weights, network.parameters())
        return network

    def _inputs(self, evidence: Evidence) -> tuple[Tensor, Floats]:
        """What the network reads [n, d], and the log-odds of success that it starts from [n]."""
        environment = self.graph.environment
        odds = logit(environment_mean(environment, evidence))
        trials = np.bincount(environment, evidence.trials)[environment] - evidence.trials
        columns = np.stack([odds, np.log1p(np.maximum(trials, 0)) / 4], axis=1)
        return torch.from_numpy(np.hstack([self.static, columns])).float(), odds

    def _pool(self) -> str:
        return hashlib.sha256("\n".join(self.keys).encode()).hexdigest()


class Network(nn.Module):
    """Several perceptrons side by side, each with two hidden layers. They begin by adding nothing."""

    def __init__(self, inputs: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def layer(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(MEMBERS, rows, columns, generator=generator) / rows**0.5)

        self.enter, self.middle = layer(inputs, WIDTH), layer(WIDTH, WIDTH)
        self.leave = nn.Parameter(torch.zeros(MEMBERS, WIDTH, 1))
        self.biases = nn.Parameter(torch.zeros(2, MEMBERS, 1, WIDTH))

    def forward(self, inputs: Tensor) -> Tensor:
        """What to add to the log-odds of success [members, n], from `inputs` [n, d]."""
        hidden = nn.functional.silu(inputs @ self.enter + self.biases[0])
        hidden = hidden + nn.functional.silu(hidden @ self.middle + self.biases[1])
        return (hidden @ self.leave)[..., 0]


def log_loss(odds: Floats, evidence: Evidence) -> float:
    """Negative log-likelihood of all records under log-odds [n]."""
    lost = np.maximum(evidence.trials - evidence.successes, 0)
    return float(evidence.successes @ np.logaddexp(0, -odds) + lost @ np.logaddexp(0, odds))
