"""Predictions for tasks never rolled out, and a state that survives as JSON."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import spearmanr

from envsched.config import VarianceSettings
from envsched.variance.posterior import combine
from envsched.variance.predictor import Predictor, decode_array, encode_array

MakeWorld = Callable[..., Any]
SETTINGS = VarianceSettings(width=6)


def predictor_of(world: Any, settings: VarianceSettings = SETTINGS, seed: int = 0) -> Predictor:
    predictor = Predictor(settings, seed)
    predictor.place(world.graph)
    predictor.connect(world.across)
    return predictor


@given(
    arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int64]),
        array_shapes(min_dims=0, min_side=0, max_dims=3),
    )
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_arrays_survive_as_json_bit_for_bit(values: np.ndarray) -> None:
    again = decode_array(json.loads(json.dumps(encode_array(values))))
    assert (again.dtype, again.shape, again.tobytes()) == (values.dtype, values.shape, values.tobytes())


def test_state_survives_as_json_bit_for_bit(make_world: MakeWorld) -> None:
    world = make_world()
    table = world.table(range(0, 48, 2))
    trained = predictor_of(world)
    for step in range(3):
        trained.fit(table, world.order, step)
    saved = json.dumps(trained.state_dict())
    resumed = predictor_of(world)
    resumed.load_state_dict(json.loads(saved))
    assert json.dumps(resumed.state_dict()) == saved
    for name in ("alpha", "beta", "ratio"):
        np.testing.assert_array_equal(
            getattr(resumed.posterior(table, world.order), name),
            getattr(trained.posterior(table, world.order), name),
        )
    assert resumed.fit(table, world.order, 3) == trained.fit(table, world.order, 3)
    assert json.dumps(resumed.state_dict()) == json.dumps(trained.state_dict())
    state = json.loads(saved)
    del state["weights"]["leave.bias"]
    with pytest.raises(RuntimeError, match=r"Missing key.*leave\.bias"):
        resumed.load_state_dict(state)


def unseen_correlation(world: Any, shuffled: int | None = None) -> float:
    """Spearman's between predicted and true success rates of nodes never observed."""
    seen = np.arange(0, len(world.rates), 2)
    rates = world.rates.copy()
    if shuffled is not None:
        rates[seen] = np.random.default_rng(shuffled).permutation(rates[seen])
    table = world.table(seen, rates)
    predictor = predictor_of(world)
    for step in range(5):
        predictor.fit(table, world.order, step)
    unseen = np.setdiff1d(np.arange(len(world.rates)), seen)
    return float(spearmanr(predictor.posterior(table, world.order).mean[unseen], world.rates[unseen])[0])


def test_unseen_tasks_are_predicted_from_their_environments(make_world: MakeWorld) -> None:
    world = make_world(environments=20, tasks=8)
    assert unseen_correlation(world) > 0.7


def test_nothing_is_predicted_where_rewards_mean_nothing(make_world: MakeWorld) -> None:
    world = make_world(environments=20, tasks=8)
    found = [unseen_correlation(world, shuffled) for shuffled in range(6)]
    assert abs(np.mean(found)) < 0.25


def test_training_happens_once_a_step(make_world: MakeWorld) -> None:
    world = make_world()
    table = world.table(range(0, 48, 2))
    predictor = predictor_of(world)
    loss = predictor.fit(table, world.order, 4)
    state = predictor.state_dict()
    assert predictor.fit(table, world.order, 4) == loss
    assert predictor.state_dict() == state
    resumed = predictor_of(world)
    resumed.load_state_dict(state)
    resumed.fit(table, world.order, 4)
    assert resumed.state_dict() == state
    predictor.fit(table, world.order, 5)
    assert predictor.state_dict()["weights"] != state["weights"]


def test_looking_trains_nothing(make_world: MakeWorld) -> None:
    world = make_world()
    predictor = predictor_of(world)
    weights = json.dumps(predictor.state_dict())
    predictor.known(world.table(range(9)), world.order)
    predictor.posterior(world.table(range(9)), world.order)
    assert json.dumps(predictor.state_dict()) == weights


def test_posterior_adds_a_nodes_own_record_to_its_prior(make_world: MakeWorld) -> None:
    world = make_world()
    table = world.table(range(0, 48, 3))
    predictor = predictor_of(world)
    predictor.fit(table, world.order, 0)
    known, found = predictor.known(table, world.order), predictor.posterior(table, world.order)
    evidence = known.evidence
    expected = combine(known.mean, known.strength, evidence.successes, evidence.trials, evidence.ratio)
    np.testing.assert_array_equal(found.alpha, expected.alpha)
    np.testing.assert_array_equal(found.beta, expected.beta)
    np.testing.assert_allclose(found.mean[~evidence.seen], known.mean[~evidence.seen], rtol=1e-12)
    without = predictor_of(world, SETTINGS.model_copy(update={"own_evidence": False}))
    np.testing.assert_allclose(
        without.posterior(table, world.order).mean, without.known(table, world.order).mean, rtol=1e-6
    )


def test_predictions_follow_new_tables_weights_and_edges(make_world: MakeWorld) -> None:
    world = make_world()
    first, second = world.table(range(0, 48, 2)), world.table(range(1, 48, 2))
    predictor = predictor_of(world)
    before = predictor.known(first, world.order).mean
    other = predictor.known(second, world.order).mean
    assert not np.array_equal(before, other)
    np.testing.assert_array_equal(predictor.known(first, world.order).mean, before)
    predictor.fit(first, world.order, 0)
    trained = predictor.known(first, world.order).mean
    assert not np.array_equal(trained, before)
    predictor.connect(world.graph.within)
    assert not np.array_equal(predictor.known(first, world.order).mean, trained)


def test_another_graph_keeps_what_was_learnt(make_world: MakeWorld) -> None:
    world, larger = make_world(), make_world(environments=9)
    predictor = predictor_of(world)
    predictor.fit(world.table(range(48)), world.order, 0)
    state = predictor.state_dict()
    predictor.place(larger.graph)
    assert predictor.posterior(larger.table(range(9)), larger.order).mean.shape == (72,)
    predictor.connect(larger.across)
    assert predictor.state_dict() == state
    assert predictor.posterior(larger.table(range(9)), larger.order).mean.shape == (72,)
