"""Training lowers a likelihood that knows how many rollouts there were."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import betabinom

from envsched.config import VarianceSettings
from envsched.variance.fit import beta_binomial_loss, fit
from envsched.variance.model import Inputs, VarianceModel, adjacency

MakeWorld = Callable[..., Any]
SETTINGS = VarianceSettings(width=6, fit_steps=5, learning_rate=0.01)
counts = st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
priors = st.tuples(st.floats(0.02, 0.98), st.floats(0.5, 60.0))


def new_model(seed: int = 0) -> VarianceModel:
    return VarianceModel(SETTINGS.width, SETTINGS.rounds, SETTINGS.relations, seed)


def inputs_of(world: Any, seen: np.ndarray) -> Inputs:
    """Five rollouts of each of `seen`, rewarded at their rates; static features say nothing."""
    count = len(world.rates)
    trials = np.where(seen, 5.0, 0.0)
    edges = {"within": world.graph.within, "across": world.across}
    return Inputs(
        base=torch.zeros(count),
        deviation=torch.ones(count),
        environment=torch.from_numpy(world.graph.environment),
        relations={name: adjacency(edge, count) for name, edge in edges.items()},
        successes=torch.from_numpy(np.round(trials * world.rates)).float(),
        trials=torch.from_numpy(trials).float(),
        other=torch.zeros(count, 5),
    )


@given(st.lists(st.tuples(priors, counts), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_loss_is_the_beta_binomial_but_for_the_coefficient(
    rows: list[tuple[tuple[float, float], tuple[int, int]]],
) -> None:
    expected = 0.0
    for (mean, strength), (successes, trials) in rows:
        coefficient = gammaln(trials + 1) - gammaln(successes + 1) - gammaln(trials - successes + 1)
        expected += betabinom.logpmf(successes, trials, strength * mean, strength * (1 - mean)) - coefficient
    columns = np.array([(m, s, k, n) for (m, s), (k, n) in rows]).T
    found = beta_binomial_loss(*(torch.from_numpy(column) for column in columns))
    assert found.item() == pytest.approx(-expected / columns[3].sum(), rel=1e-6, abs=1e-9)


def test_loss_of_parts_of_a_rollout_lies_between() -> None:
    mean, strength = torch.tensor([0.3]), torch.tensor([5.0])
    losses = [
        (n * beta_binomial_loss(mean, strength, torch.tensor([n * 0.5]), torch.tensor([n]))).item()
        for n in (2.0, 2.5, 3.0, 3.5, 4.0)
    ]
    assert losses == sorted(losses)


def test_training_lowers_the_loss_and_separates_environments(make_world: MakeWorld) -> None:
    world = make_world(environments=8, tasks=6)
    inputs, model = inputs_of(world, np.arange(48) % 2 == 0), new_model()
    losses = [fit(model, inputs, SETTINGS, seed) for seed in range(40)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.02
    with torch.no_grad():
        mean = model(inputs)[0].numpy()
    unseen = np.arange(48) % 2 == 1
    assert np.corrcoef(mean[unseen], world.rates[unseen])[0, 1] > 0.7


def test_training_is_a_function_of_weights_history_and_seed(make_world: MakeWorld) -> None:
    inputs = inputs_of(make_world(), np.arange(48) % 3 == 0)
    models = [new_model() for _ in range(3)]
    losses = []
    for model, seed in zip(models, (7, 7, 8), strict=True):
        torch.manual_seed(seed * 31)  # the global generator plays no part
        losses.append(fit(model, inputs, SETTINGS, seed))
    first, second, third = (model.state_dict() for model in models)
    assert losses[0] == losses[1] != losses[2]
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], third[name]) for name in first)


def test_nothing_is_learnt_from_nothing(make_world: MakeWorld) -> None:
    model = new_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for seen in (np.zeros(48, dtype=bool), np.arange(48) == 5):
        assert np.isnan(fit(model, inputs_of(make_world(), seen), SETTINGS, 0))
    none = SETTINGS.model_copy(update={"fit_steps": 0})
    assert np.isnan(fit(model, inputs_of(make_world(), np.arange(48) > 5), none, 0))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("share", [0.01, 0.4, 0.99])
def test_every_step_hides_some_node_however_few_there_are(make_world: MakeWorld, share: float) -> None:
    settings_ = SETTINGS.model_copy(update={"masked_share": share})
    inputs = inputs_of(make_world(), np.arange(48) < 2)
    for seed in range(20):
        model = new_model()
        before = model.leave.bias.clone()
        assert np.isfinite(fit(model, inputs, settings_, seed))
        # Weight decay alone leaves a bias of zero where it is.
        assert not torch.equal(model.leave.bias, before)
        assert all(torch.isfinite(value).all() for value in model.state_dict().values())
