"""The worlds behave as measured on a real small policy; see the README of the room."""

import numpy as np
import pytest

from envsched.benchmarks.simulate import Course, simulate
from envsched.benchmarks.worlds import make_world
from envsched.graph.profile import NodeProfile, words
from envsched.measures import ranks, smooth, spearman
from envsched.scheduling.baselines.oracle import Oracle
from envsched.scheduling.baselines.uniform import Uniform

SEED = 3


@pytest.fixture(scope="module")
def uniform() -> Course:
    world = make_world("mixed", SEED)
    return simulate(world, Uniform(world.nodes, SEED))


@pytest.fixture(scope="module")
def oracle() -> Course:
    world = make_world("mixed", SEED)
    return simulate(world, Oracle(world.nodes, SEED, truth=world.truth))


def test_uniform_climbs_as_in_the_pilot(uniform: Course) -> None:
    assert 0.17 <= uniform.start <= 0.26
    assert 0.34 <= smooth(np.array(uniform.level))[-1] <= 0.46
    assert 0.15 <= np.mean(uniform.informative[:10]) <= 0.35


def test_the_oracle_needs_fewer_steps_but_not_a_fraction_of_them(uniform: Course, oracle: Course) -> None:
    best = smooth(np.array(uniform.level)).max()
    crossing = 1 + int(np.argmax(smooth(np.array(oracle.level)) >= best))
    assert 1.3 <= 120 / crossing <= 2.4
    assert np.mean(oracle.informative) > 0.95


def test_siblings_pass_alike_as_in_real_records() -> None:
    """Each task with its nearest in the environment by tools and words: rank correlation of pass rates."""
    world = make_world("mixed", SEED)
    truth = world.truth()
    homes: dict[str, list[NodeProfile]] = {}
    for node in world.nodes:
        homes.setdefault(node.environment, []).append(node)
    own, near = [], []
    for nodes in homes.values():
        signs = [node.touched | set(words(node.text)) for node in nodes]
        for node, sign in zip(nodes, signs, strict=True):
            shares = [len(sign & other) / len(sign | other) for other in signs]
            shares[nodes.index(node)] = -1
            own.append(truth[node.key][0])
            near.append(truth[nodes[int(np.argmax(shares))].key][0])
    assert 0.45 <= spearman(np.array(own), np.array(near)) <= 0.65


def test_without_structure_environments_tell_nothing() -> None:
    world = make_world("none", SEED)
    truth = world.truth()
    rank = ranks(np.array([truth[node.key][0] for node in world.nodes]))
    environments = np.array([node.environment for node in world.nodes])
    means = [rank[environments == name].mean() for name in set(environments)]
    # Means of about fifty ranks each spread as chance has it.
    assert np.std(means) < 1.5 * rank.std() / np.sqrt(50)
