"""The k most similar rows: exact in torch for small pools, an inverted-file index from faiss above."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

Matrix = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

EXACT_BELOW = 30_000
"""Rows up to which all pairs are compared."""
PAIRS_AT_ONCE = 8_000_000
ROWS_AT_ONCE = 20_000
"""Rows that the index is asked for at once."""
PROBES = 16
"""Cells of the index that a query looks into; recall is above 0.97 up to a million rows."""


def nearest(rows: Matrix, k: int, exact_below: int = EXACT_BELOW) -> tuple[Integers, Matrix]:
    """The k other rows with the largest inner products, and these: two arrays [n, min(k, n - 1)], best first.

    `rows` is [n, d]. Of equal similarities the first rows are taken. At `exact_below` rows and more the
    result is approximate, and where the index finds fewer than k, places hold the row itself with
    similarity 0.
    """
    found, similarities = zip(*nearest_blocks(rows, k, exact_below), strict=True)
    return np.concatenate(found), np.concatenate(similarities)


def nearest_blocks(rows: Matrix, k: int, exact_below: int = EXACT_BELOW) -> Iterator[tuple[Integers, Matrix]]:
    """The same for one block of rows after the other, so that k may be large."""
    k = min(k, len(rows) - 1)
    if k < 1:
        return iter([(np.zeros((len(rows), 0), dtype=np.int64), np.zeros((len(rows), 0), dtype=np.float32))])
    return _exact(rows, k) if len(rows) < exact_below else _indexed(rows, k)


def _exact(rows: Matrix, k: int) -> Iterator[tuple[Integers, Matrix]]:
    import torch

    all_rows = torch.from_numpy(np.ascontiguousarray(rows))
    size = max(1, PAIRS_AT_ONCE // len(rows))
    for start in range(0, len(rows), size):
        block = all_rows[start : start + size] @ all_rows.T
        here = torch.arange(len(block))
        block[here, here + start] = -torch.inf
        values, columns = top_columns(block, k)
        yield columns.numpy(), values.numpy()


def top_columns(block: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and columns of the k largest entries of each row, best first, ties by column."""
    import torch

    values, columns = torch.topk(block, min(k + 1, block.shape[1]), dim=1)
    # topk leaves open which of several equal values it takes, and in which order.
    if k < block.shape[1]:
        cut = values[:, k - 1] == values[:, k]
        columns[cut, :k] = _first_columns(block[cut], values[cut, k - 1], k)
    columns, _ = torch.sort(columns[:, :k], dim=1)
    values, order = torch.sort(block.gather(1, columns), dim=1, descending=True, stable=True)
    return values, columns.gather(1, order)


def _first_columns(block: torch.Tensor, last: torch.Tensor, k: int) -> torch.Tensor:
    """Columns of all entries above `last` [n], and of the first that equal it, k in each row."""
    above, equal = block > last[:, None], block == last[:, None]
    kept = above | (equal & (equal.cumsum(1) <= k - above.sum(1, keepdim=True)))
    return kept.nonzero()[:, 1].view(len(block), k)


def _indexed(rows: Matrix, k: int) -> Iterator[tuple[Integers, Matrix]]:
    import faiss

    count, width = rows.shape
    cells = int(4 * count**0.5)
    quantizer = faiss.IndexFlatIP(width)
    index = faiss.IndexIVFFlat(quantizer, width, cells, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = 0
    index.cp.niter = 8
    index.cp.max_points_per_centroid = 64
    rows = np.ascontiguousarray(rows)
    index.train(rows)
    index.add(rows)
    index.nprobe = PROBES
    for start in range(0, count, ROWS_AT_ONCE):
        values, columns = index.search(rows[start : start + ROWS_AT_ONCE], k + 1)
        yield _without_self(columns, values, k, start)


def _without_self(columns: Integers, values: Matrix, k: int, start: int) -> tuple[Integers, Matrix]:
    """Drop each row's own number, from `start` (or the last place, where it was not found), and fill gaps."""
    own = np.arange(start, start + len(columns))[:, None]
    columns = np.where(columns < 0, own, columns)
    order = np.argsort(columns == own, axis=1, kind="stable")[:, :k]
    columns, values = np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)
    return columns, np.where(columns == own, 0, values).astype(np.float32)
