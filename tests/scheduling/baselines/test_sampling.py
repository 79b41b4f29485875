"""Drawing without replacement, by weight and by arm."""

from collections import Counter

import numpy as np
import pytest

from envsched.scheduling.baselines.sampling import by_environment, draw_arms, shuffled, softmax


def test_softmax_by_hand() -> None:
    probabilities = softmax({"a": 1.0, "b": 0.0}, 0.5)
    assert probabilities == pytest.approx({"a": np.e**2 / (1 + np.e**2), "b": 1 / (1 + np.e**2)})
    assert softmax({"a": 1e6, "b": 0.0}, 0.1) == {"a": 1.0, "b": 0.0}
    assert softmax({}, 1.0) == {}


def test_first_of_a_weighted_order_is_drawn_by_weight() -> None:
    rng = np.random.default_rng(0)
    counts = Counter(shuffled(["a", "b", "c"], rng, np.array([1.0, 2.0, 7.0]))[0] for _ in range(4000))
    assert counts["a"] == pytest.approx(400, abs=90)
    assert counts["b"] == pytest.approx(800, abs=115)


def test_environments_are_sorted_and_their_keys_keep_their_order() -> None:
    parts = by_environment(["b/1", "a/2", "b/0"])
    assert list(parts.items()) == [("a", ["a/2"]), ("b", ["b/1", "b/0"])]


def test_arms_are_drawn_by_weight_and_drop_out_when_empty() -> None:
    rng = np.random.default_rng(0)
    queues = {"a": ["a1", "a2"], "b": [f"b{i}" for i in range(2000)], "c": [f"c{i}" for i in range(2000)]}
    chosen = draw_arms(1002, queues, {"a": 1.0, "b": 1.0, "c": 3.0}, rng)
    counts = Counter(arm for arm, _ in chosen)
    assert counts["a"] == 2
    assert counts["c"] == pytest.approx(750, abs=60)
    assert [key for arm, key in chosen if arm == "b"] == queues["b"][: counts["b"]]


def test_arms_without_weight_fill_what_the_others_cannot() -> None:
    chosen = draw_arms(3, {"a": ["a1"], "b": ["b1", "b2"]}, {"a": 1.0, "b": 0.0}, np.random.default_rng(0))
    assert chosen == [("a", "a1"), ("b", "b1"), ("b", "b2")]
