"""The variance model: relation-typed message passing that infers a node's rewards from its neighbours'."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from envsched.graph.build import Edges

SPREAD = 6.0
"""Largest distance of a predicted logit from the pool's."""
CARRIED = 7
"""Channels of what a node tells: log-odds and their square, and `Inputs.other`."""
SHARPNESS = 6.0
"""How fast the weight of an edge falls with similarity."""


@dataclass(frozen=True)
class Inputs:
    """What the model reads. A node with 0 trials says nothing, whether never rolled out or hidden."""

    base: Tensor
    """[n]: log-odds from static features; of a node with evidence, as if its own had been left out."""
    deviation: Tensor
    """[n]: how far the features leave that open."""
    environment: Tensor
    """int64 [n], sorted."""
    relations: Mapping[str, Tensor]
    """Symmetric weights as sparse CSR matrices [n, n], by relation (`adjacency`)."""
    successes: Tensor
    """[n]"""
    trials: Tensor
    """[n]"""
    other: Tensor
    """[n, 5]"""

    def hide(self, nodes: Tensor) -> Inputs:
        """The same without the statistics of `nodes`, bool [n]."""
        shown = (~nodes).to(self.trials.dtype)
        return Inputs(
            self.base,
            self.deviation,
            self.environment,
            self.relations,
            self.successes * shown,
            self.trials * shown,
            self.other * shown[:, None],
        )

    def around(self, nodes: Tensor) -> tuple[Inputs, Tensor]:
        """The part of the graph within one hop of `nodes` (int64, sorted), and the numbers of its nodes."""
        matrices = {name: _as_scipy(matrix) for name, matrix in self.relations.items()}
        near = [nodes.numpy(), *(matrix[nodes.numpy()].indices for matrix in matrices.values())]
        kept = np.unique(np.concatenate(near))
        rows = torch.from_numpy(kept).long()
        part = Inputs(
            self.base[rows],
            self.deviation[rows],
            self.environment[rows],
            {name: _as_torch(matrix[kept][:, kept]) for name, matrix in matrices.items()},
            self.successes[rows],
            self.trials[rows],
            self.other[rows],
        )
        return part, rows


def adjacency(edges: Edges, nodes: int) -> Tensor:
    """Sparse CSR [nodes, nodes] with exp(SHARPNESS x (similarity - 1)) for every edge."""
    source, target = torch.from_numpy(edges.index)
    weight = torch.exp(SHARPNESS * (torch.from_numpy(edges.similarity) - 1))
    starts = torch.zeros(nodes + 1, dtype=torch.long)
    starts[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
    return _sparse(starts, source, weight, nodes)


def _sparse(starts: Tensor, columns: Tensor, weight: Tensor, nodes: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        return torch.sparse_csr_tensor(starts, columns, weight, (nodes, nodes), check_invariants=False)


def _as_scipy(matrix: Tensor) -> csr_matrix:
    parts = (matrix.values().numpy(), matrix.col_indices().numpy(), matrix.crow_indices().numpy())
    return csr_matrix(parts, shape=tuple(matrix.shape))


def _as_torch(matrix: csr_matrix) -> Tensor:
    starts, columns = torch.from_numpy(matrix.indptr).long(), torch.from_numpy(matrix.indices).long()
    return _sparse(starts, columns, torch.from_numpy(matrix.data), matrix.shape[0])


class SymmetricProduct(torch.autograd.Function):
    """adjacency @ x. The adjacency is symmetric, so that the gradient needs no transposed copy of it."""

    @staticmethod
    def forward(ctx: Any, adjacency: Tensor, x: Tensor) -> Tensor:
        ctx.adjacency = adjacency
        return adjacency @ x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.adjacency @ gradient


class EvidenceSum(MessagePassing):  # type: ignore[misc]
    """Sums what neighbours tell, weighted by similarity."""

    def __init__(self) -> None:
        super().__init__(aggr="sum")

    def forward(self, told: Tensor, adjacency: Tensor) -> Tensor:
        """Weighted sums over neighbours, [n, c] in and out."""
        total: Tensor = self.propagate(adjacency, x=told)
        return total

    def message_and_aggregate(self, edge_index: Tensor, x: Tensor) -> Tensor:
        product: Tensor = SymmetricProduct.apply(edge_index, x)  # type: ignore[no-untyped-call]
        return product


class EnvironmentSum(nn.Module):
    """The same over all other nodes of a node's environment, through one pooled row each."""

    def forward(self, told: Tensor, environment: Tensor) -> Tensor:
        """As `EvidenceSum`, with weight 1; a node's own part is taken out again."""
        pooled = told.new_zeros(int(environment[-1]) + 1, told.shape[1]).index_add(0, environment, told)
        return pooled[environment] - told


class Round(nn.Module):
    """Gathers along every relation by itself and mixes what comes back through a gate each."""

    def __init__(self, width: int, relations: Sequence[str], neighbours: EvidenceSum) -> None:
        super().__init__()
        count, read = len(relations), CARRIED + 2
        self.gather = nn.ModuleDict(
            {name: EnvironmentSum() if name == "environment" else neighbours for name in relations}
        )
        self.gate = nn.Linear(width, count)
        self.amount = nn.Parameter(torch.zeros(count))
        self.shrink = nn.Parameter(torch.full((count,), 0.5))
        self.trust = nn.Parameter(torch.full((count,), 0.2))
        self.read = nn.Linear(count * read, width, bias=False)
        # As if every relation had a layer of its own.
        nn.init.uniform_(self.read.weight, -(read**-0.5), read**-0.5)

    def forward(
        self, values: Tensor, evidence: Tensor, hidden: Tensor, inputs: Inputs
    ) -> tuple[Tensor, Tensor]:
        """What to add to the log-odds [n] and to the hidden state [n, width].

        Each relation gives the mean of its neighbours' `values` [n, c], weighted by similarity and `evidence`
        [n], shrunk towards 0 where there is little.
        """
        told = torch.cat([values * evidence[:, None], evidence[:, None]], dim=1)
        found = [
            gather(told, inputs.environment if name == "environment" else inputs.relations[name])
            for name, gather in self.gather.items()
        ]
        total = torch.stack(found, dim=1)  # [n, relations, c + 1]
        weight = total[..., -1].clamp(min=0)
        mean = total[..., :-1] / (weight + nn.functional.softplus(self.shrink))[..., None]
        amount = torch.log1p(weight)
        gate = torch.sigmoid(self.gate(hidden) + self.amount * amount)
        odds = (self.trust * gate * mean[..., 0]).sum(1)
        message = torch.cat([mean, amount[..., None], torch.ones_like(amount)[..., None]], dim=2)
        return odds, nn.functional.silu(self.read((gate[..., None] * message).flatten(1)))


class VarianceModel(nn.Module):
    """Mean and certainty of every node's rewards.

    Log-odds start from the readout of static features. Round 1 adds by how much neighbours' records differ
    from theirs, later rounds what was inferred of them, so that a node two hops from any evidence still
    hears of it.
    """

    def __init__(self, width: int, rounds: int, relations: Sequence[str], seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            neighbours = EvidenceSum()  # without parameters, so one serves all
            self.enter = nn.Linear(3, width)
            self.rounds = nn.ModuleList(Round(width, relations, neighbours) for _ in range(rounds))
            self.leave = nn.Linear(width, 2)
            self.scale = nn.Parameter(torch.tensor(1.0))
            self.enough = nn.Parameter(torch.tensor(4.0))
            self.strength = nn.Parameter(torch.tensor(0.7))
            nn.init.normal_(self.leave.weight, std=0.02)
            nn.init.zeros_(self.leave.bias)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Prior mean in (0, 1) and the rollouts that it is worth, in [0.1, 400]; each [n]."""
        base = inputs.base
        own = log_odds(inputs.successes, inputs.trials) - base
        evidence = inputs.trials / (inputs.trials + nn.functional.softplus(self.enough))
        hidden = torch.tanh(self.enter(torch.stack([base, base**2 / 4, inputs.deviation], dim=1) / 2))
        shift = torch.zeros_like(base)
        for number, step in enumerate(self.rounds):
            # Later rounds speak for every node: by its record as far as it goes, by inference for the rest.
            told = own if number == 0 else evidence * own + (1 - evidence) * shift
            values = torch.cat([told[:, None], told[:, None] ** 2, inputs.other], dim=1)
            more, state = step(values, evidence if number == 0 else torch.ones_like(evidence), hidden, inputs)
            shift, hidden = shift + more, hidden + state
        last = self.leave(hidden)
        odds = self.scale * base + (shift + last[:, 0]).clamp(-SPREAD, SPREAD)
        strength = torch.exp((self.strength + last[:, 1]).clamp(-2.3, 6.0))
        return torch.sigmoid(odds.clamp(-9, 9)), strength


def log_odds(successes: Tensor, trials: Tensor) -> Tensor:
    """Of the mean reward, half a rollout added to either side."""
    return torch.log((successes + 0.5) / (trials - successes + 0.5))
