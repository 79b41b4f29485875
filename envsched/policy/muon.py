"""Muon for matrices, in single precision and many matrices at once.

`torch.optim.Muon` orthogonalises one matrix after the other in bfloat16, which processors without bfloat16
units emulate at a tenth of their speed.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic Newton-Schulz iteration: https://kellerjordan.github.io/posts/muon."""
ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised; the rate is scaled by sqrt(max(1, rows / columns)).

    Without weight decay, equal to `torch.optim.Muon` up to that one's rounding.
    """

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, momentum: float = 0.95, workers: Executor | None = None
    ) -> None:
        """`workers` share out the matrices, by shape."""
        super().__init__(list(matrices), {"lr": lr, "momentum": momentum})
        self._workers = workers

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            shapes: defaultdict[torch.Size, list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes[matrix.shape].append(matrix)
            # Twins of one shape are split once more, so that every worker has its share.
            shares = [part for same in shapes.values() for part in (same[0::2], same[1::2]) if part]
            move = partial(self._move, group=group)
            list(self._workers.map(move, shares) if self._workers else map(move, shares))

    def _move(self, matrices: list[Tensor], group: Mapping[str, Any]) -> None:
        rows, columns = matrices[0].shape
        momentum = group["momentum"]
        directions = []
        with torch.no_grad():
            for matrix in matrices:
                assert matrix.grad is not None
                buffer = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
                buffer.lerp_(matrix.grad, 1 - momentum)
                directions.append(matrix.grad.lerp(buffer, momentum))
            rate = group["lr"] * math.sqrt(max(1, rows / columns))
            for matrix, direction in zip(matrices, orthogonalize(torch.stack(directions)), strict=True):
                matrix.sub_(direction, alpha=rate)


def orthogonalize(matrices: Tensor) -> Tensor:
    """Each of [n, rows, columns] with its singular values moved to about 1 (0.7 to 1.2)."""
    a, b, c = COEFFICIENTS
    turned = matrices.mT if matrices.shape[1] > matrices.shape[2] else matrices
    x = turned / matrices.flatten(1).norm(dim=1).clamp(min=1e-7)[:, None, None]
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    result: Tensor = x.mT if turned is not matrices else x
    return result
