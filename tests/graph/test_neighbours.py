"""Nearest rows against brute force; the index against the exact search."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from envsched.graph import neighbours
from envsched.graph.neighbours import nearest, top_columns
from envsched.graph.text import unit_rows

# Small whole numbers: inner products are exact and often equal.
whole = st.integers(-2, 2).map(float)
matrices = st.tuples(st.integers(0, 90), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=whole, fill=st.just(1.0))
)
check = settings(deadline=None, max_examples=60, derandomize=True)


def brute_force(rows: np.ndarray, k: int) -> tuple[list[list[int]], list[list[float]]]:
    columns, values = [], []
    for i, row in enumerate(rows):
        others = [(-float(row @ rows[j]), j) for j in range(len(rows)) if j != i]
        best = sorted(others)[:k]
        columns.append([j for _, j in best])
        values.append([-value for value, _ in best])
    return columns, values


@given(matrices, st.integers(1, 8))
@check
def test_exact_search_equals_brute_force_with_ties(rows: np.ndarray, k: int) -> None:
    columns, values = nearest(rows, k)
    slow_columns, slow_values = brute_force(rows, k)
    width = max(0, min(k, len(rows) - 1))
    assert columns.shape == values.shape == (len(rows), width)
    assert columns.tolist() == slow_columns
    assert values.tolist() == slow_values


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(-3, 4, (50, 4)).astype(np.float32)
    whole_columns, whole_values = nearest(rows, 5)
    monkeypatch.setattr(neighbours, "PAIRS_AT_ONCE", 350)
    columns, values = nearest(rows, 5)
    np.testing.assert_array_equal(columns, whole_columns)
    np.testing.assert_array_equal(values, whole_values)


@pytest.mark.parametrize("shape", [(3, 6), (40, 7), (4, 3000)])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_first_of_equal_columns_are_taken(shape: tuple[int, int], k: int) -> None:
    block = np.random.default_rng(k).integers(0, 3, shape).astype(np.float32)
    block[0] = 1
    values, columns = top_columns(torch.from_numpy(block), k)
    expected = np.argsort(-block, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(columns.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(block, expected, 1))


@pytest.fixture(scope="module")
def clustered() -> np.ndarray:
    """4,000 unit rows around 150 centres, a hundred of them repeated."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(150, 24))
    rows = centres[rng.integers(0, 150, 4000)] + 0.5 * rng.normal(size=(4000, 24))
    rows[-100:] = rows[:100]
    return unit_rows(rows.astype(np.float32))


def test_index_finds_nearly_all_neighbours(clustered: np.ndarray) -> None:
    exact, _ = nearest(clustered, 12)
    columns, values = nearest(clustered, 12, exact_below=1000)
    found = np.mean(
        [len(set(a) & set(b)) / 12 for a, b in zip(columns.tolist(), exact.tolist(), strict=True)]
    )
    assert found >= 0.97
    own = np.arange(len(clustered))[:, None]
    proper = columns != own
    assert proper.mean() > 0.99
    inner = np.einsum("nd,nkd->nk", clustered, clustered[columns])
    np.testing.assert_allclose(values, np.where(proper, inner, 0), atol=1e-5)
    assert (np.diff(np.where(proper, values, -1), axis=1) <= 1e-6).all()
    for row in np.where(proper, columns, -1 - np.arange(12)).tolist():
        assert len(set(row)) == 12


def test_index_is_a_function_of_the_rows(clustered: np.ndarray) -> None:
    first, second = (nearest(clustered, 8, exact_below=1000) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_where_the_index_finds_too_few_the_row_itself_fills_up(
    clustered: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "PROBES", 1)
    columns, values = nearest(clustered, 60, exact_below=1000)
    filled = columns == np.arange(len(clustered))[:, None]
    assert filled.any()
    assert (values[filled] == 0).all()
