"""What a node's prior may depend on, and on what it may not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.graph.build import Edges
from envsched.graph.within import symmetric
from envsched.variance.model import (
    SHARPNESS,
    EnvironmentSum,
    EvidenceSum,
    Inputs,
    SymmetricProduct,
    VarianceModel,
    adjacency,
    log_odds,
)

RELATIONS = ("environment", "within", "across")
SIZES = (4, 1, 6, 3)
NODES = sum(SIZES)
ENVIRONMENT = np.repeat(np.arange(len(SIZES)), SIZES)
check = settings(deadline=None, max_examples=20, derandomize=True)
seeds = st.integers(0, 999)


def random_edges(rng: np.random.Generator, allowed: np.ndarray) -> Edges:
    """A third of the pairs that are allowed, [n, n]."""
    source, target = np.nonzero(np.triu(allowed & (rng.random(allowed.shape) < 0.33), 1))
    return Edges(*symmetric(source, target, rng.random(len(source), dtype=np.float32), len(allowed)))


def random_relations(rng: np.random.Generator) -> dict[str, Edges]:
    same = ENVIRONMENT[:, None] == ENVIRONMENT
    return {"within": random_edges(rng, same), "across": random_edges(rng, ~same)}


def random_inputs(seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    trials = np.where(rng.random(NODES) < 0.6, rng.uniform(0.5, 60, NODES), 0).astype(np.float32)
    return Inputs(
        base=torch.from_numpy(rng.normal(size=NODES).astype(np.float32)),
        deviation=torch.from_numpy(rng.uniform(0.5, 2, NODES).astype(np.float32)),
        environment=torch.from_numpy(ENVIRONMENT),
        relations={name: adjacency(edges, NODES) for name, edges in random_relations(rng).items()},
        successes=torch.from_numpy(trials * rng.random(NODES, dtype=np.float32)),
        trials=torch.from_numpy(trials),
        other=torch.from_numpy(rng.random((NODES, 5), dtype=np.float32) * (trials[:, None] > 0)),
    )


def random_model(seed: int, rounds: int = 2, relations: tuple[str, ...] = RELATIONS) -> VarianceModel:
    """With weights far from where they start."""
    model = VarianceModel(6, rounds, relations, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model


def outputs(model: VarianceModel, inputs: Inputs) -> np.ndarray:
    with torch.no_grad():
        return torch.stack(model(inputs)).numpy()


def perturbed(inputs: Inputs, nodes: np.ndarray, seed: int) -> Inputs:
    """Other statistics of some nodes."""
    rng = np.random.default_rng(seed)
    chosen = torch.from_numpy(nodes)
    trials = torch.from_numpy(rng.uniform(1, 90, NODES).astype(np.float32))
    share = torch.from_numpy(rng.random(NODES, dtype=np.float32))
    other = torch.from_numpy(rng.random((NODES, 5), dtype=np.float32))
    return replace(
        inputs,
        successes=torch.where(chosen, share * trials, inputs.successes),
        trials=torch.where(chosen, trials, inputs.trials),
        other=torch.where(chosen[:, None], other, inputs.other),
    )


@given(seeds)
@check
def test_statistics_of_hidden_nodes_change_nothing(seed: int) -> None:
    inputs, model = random_inputs(seed), random_model(seed)
    hidden = np.random.default_rng(seed).random(NODES) < 0.4
    mask = torch.from_numpy(hidden)
    np.testing.assert_array_equal(
        outputs(model, perturbed(inputs, hidden, seed).hide(mask)), outputs(model, inputs.hide(mask))
    )


@given(seeds, st.integers(0, NODES - 1))
@check
def test_in_one_round_nobody_hears_of_their_own_record(seed: int, node: int) -> None:
    inputs, model = random_inputs(seed), random_model(seed, rounds=1)
    mine = np.arange(NODES) == node
    before, after = outputs(model, inputs), outputs(model, perturbed(inputs, mine, seed))
    np.testing.assert_allclose(after[:, node], before[:, node], rtol=2e-4, atol=1e-5)
    if SIZES[ENVIRONMENT[node]] > 1:
        assert np.abs(after - before)[:, ~mine].max() > 1e-4


@given(seeds, st.randoms(use_true_random=False))
@check
def test_numbering_of_nodes_and_environments_changes_nothing(seed: int, rng: Any) -> None:
    inputs, model = random_inputs(seed), random_model(seed)
    relations = random_relations(np.random.default_rng(seed + 1))
    inputs = replace(inputs, relations={n: adjacency(e, NODES) for n, e in relations.items()})
    blocks = [rng.sample(np.flatnonzero(e == ENVIRONMENT).tolist(), size) for e, size in enumerate(SIZES)]
    rng.shuffle(blocks)
    old = np.concatenate(blocks)  # number before, by number after
    new = np.argsort(old)
    renamed = {
        name: Edges(*symmetric(new[edges.index[0]], new[edges.index[1]], edges.similarity, NODES))
        for name, edges in relations.items()
    }
    moved = Inputs(
        inputs.base[old],
        inputs.deviation[old],
        torch.from_numpy(np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])),
        {name: adjacency(edges, NODES) for name, edges in renamed.items()},
        inputs.successes[old],
        inputs.trials[old],
        inputs.other[old],
    )
    np.testing.assert_allclose(outputs(model, moved), outputs(model, inputs)[:, old], rtol=2e-4, atol=1e-5)


@given(seeds)
@check
def test_gradient_of_the_symmetric_product_is_that_of_a_dense_one(seed: int) -> None:
    matrix = random_inputs(seed).relations["within"]
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, 3, generator=generator, requires_grad=True)
    again = x.detach().clone().requires_grad_()
    weight = torch.randn(NODES, 3, generator=generator)
    sparse, dense = SymmetricProduct.apply(matrix, x), matrix.to_dense() @ again
    torch.testing.assert_close(sparse, dense)
    (sparse.sin() * weight).sum().backward()
    (dense.sin() * weight).sum().backward()
    torch.testing.assert_close(x.grad, again.grad)


def test_weights_of_edges_fall_with_similarity() -> None:
    edges = random_edges(np.random.default_rng(0), np.ones((NODES, NODES), dtype=bool))
    expected = np.zeros((NODES, NODES), dtype=np.float32)
    for (source, target), similarity in zip(edges.index.T, edges.similarity, strict=True):
        expected[target, source] = np.exp(SHARPNESS * (similarity - 1))
    np.testing.assert_allclose(adjacency(edges, NODES).to_dense().numpy(), expected, rtol=1e-5)


@given(seeds)
@check
def test_sums_equal_slow_references(seed: int) -> None:
    inputs = random_inputs(seed)
    told = torch.cat([inputs.other, inputs.trials[:, None]], dim=1)
    dense = inputs.relations["across"].to_dense()
    pooled = (ENVIRONMENT[:, None] == ENVIRONMENT) & ~np.eye(NODES, dtype=bool)
    for total, matrix in (
        (EvidenceSum()(told, inputs.relations["across"]), dense),
        (EnvironmentSum()(told, inputs.environment), torch.from_numpy(pooled).float()),
    ):
        torch.testing.assert_close(total, matrix @ told, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_each_round_carries_news_one_edge_further(rounds: int) -> None:
    chain = np.arange(NODES - 1)
    edges = Edges(*symmetric(chain, chain + 1, np.full(NODES - 1, 0.9, dtype=np.float32), NODES))
    inputs = replace(random_inputs(0), relations={"within": adjacency(edges, NODES)})
    inputs = inputs.hide(torch.ones(NODES, dtype=torch.bool))
    model = random_model(1, rounds, ("within",))
    first = np.arange(NODES) == 0
    changed = np.abs(outputs(model, perturbed(inputs, first, 0)) - outputs(model, inputs)).max(0) > 0
    assert np.flatnonzero(changed).max() == rounds


@given(seeds)
@check
def test_what_lies_around_the_evidence_is_all_that_one_round_needs(seed: int) -> None:
    inputs, model = random_inputs(seed), random_model(seed, rounds=1)
    seen = torch.nonzero(inputs.trials)[:, 0]
    part, kept = inputs.around(seen)
    place = torch.searchsorted(kept, seen)
    torch.testing.assert_close(kept[place], seen)
    whole, within = outputs(model, inputs)[:, seen], outputs(model, part)[:, place]
    np.testing.assert_allclose(within, whole, rtol=1e-4, atol=1e-5)
    joined = sum(matrix.to_dense()[seen].sum(0) for matrix in inputs.relations.values())
    joined[seen] = 1
    torch.testing.assert_close(kept, torch.nonzero(joined)[:, 0])


@pytest.mark.parametrize("left_out", ["within", "across", "environment"])
def test_relations_that_are_left_out_carry_nothing(left_out: str) -> None:
    inputs = random_inputs(3)
    nothing = adjacency(Edges(np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.float32)), NODES)
    other = replace(inputs, relations={**inputs.relations, left_out: nothing})
    if left_out == "environment":
        other = replace(inputs, environment=torch.arange(NODES))
    fewer = tuple(name for name in RELATIONS if name != left_out)
    np.testing.assert_array_equal(
        outputs(random_model(0, relations=fewer), other), outputs(random_model(0, relations=fewer), inputs)
    )
    assert not np.array_equal(outputs(random_model(0), other), outputs(random_model(0), inputs))


@given(seeds, st.floats(-60, 60), st.floats(0, 1e5))
@check
def test_priors_stay_in_range(seed: int, base: float, trials: float) -> None:
    inputs = random_inputs(seed)
    extreme = replace(
        inputs,
        base=inputs.base + base,
        trials=inputs.trials + trials,
        successes=inputs.successes + (trials if seed % 2 else 0.0),
    )
    mean, strength = outputs(random_model(seed), extreme)
    assert ((mean > 0) & (mean < 1)).all()
    assert ((strength >= 0.1) & (strength <= 404)).all()


def test_weights_are_a_function_of_the_seed_and_disturb_no_other_generator() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second, third = (VarianceModel(4, 2, RELATIONS, seed).state_dict() for seed in (1, 1, 2))
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], third[name]) for name in first)


def test_log_odds_by_hand() -> None:
    found: Callable[[float, float], float] = lambda s, n: log_odds(torch.tensor(s), torch.tensor(n)).item()  # noqa: E731
    assert found(0.0, 0.0) == 0.0
    assert found(3.0, 4.0) == pytest.approx(np.log(3.5 / 1.5))
    assert found(0.0, 8.0) == pytest.approx(np.log(0.5 / 8.5))
