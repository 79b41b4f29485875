"""Made-up environments and tasks hang together."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.benchmarks.suite import (
    KINDS,
    LEAST_TASKS,
    MOST_CALLS,
    THEMES,
    TOPICS,
    Suite,
    make_suite,
    spread,
)


def small(seed: int) -> Suite:
    return make_suite(np.random.default_rng(seed), (15, 25, 10))


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000))
def test_tasks_call_the_tools_of_their_environment(seed: int) -> None:
    suite = small(seed)
    assert np.bincount(suite.environment).tolist() == [15, 25, 10]
    for row, number in enumerate(suite.environment):
        environment = suite.environments[number]
        own = suite.tools[row] - environment.first_tool
        assert own.min() >= 0
        assert [environment.tools[tool].kind for tool in own] == suite.kinds[row].tolist()
        assert suite.topic[row] in environment.topics
    assert suite.lengths.min() >= 1
    assert suite.lengths.max() <= MOST_CALLS
    assert suite.tool_count == sum(len(environment.tools) for environment in suite.environments)


def test_bigrams_name_the_pair_of_kinds() -> None:
    suite = small(3)
    kinds, bigrams = suite.kinds[7].tolist(), suite.bigrams[7].tolist()
    assert bigrams[0] == kinds[0]
    for place in range(1, MOST_CALLS):
        assert bigrams[place] == (1 + kinds[place - 1]) * len(KINDS) + kinds[place]


def test_five_topics_make_a_theme() -> None:
    suite = small(0)
    assert (suite.theme == suite.topic // 5).all()
    assert TOPICS == 5 * THEMES


def test_many_topics_and_chains_occur_in_several_environments() -> None:
    suite = make_suite(np.random.default_rng(0), (50,) * 40)
    homes: dict[int, set[int]] = {}
    for topic, environment in zip(suite.topic.tolist(), suite.environment.tolist(), strict=True):
        homes.setdefault(topic, set()).add(environment)
    assert np.median([len(found) for found in homes.values()]) >= 3


@settings(derandomize=True, deadline=None)
@given(seed=st.integers(0, 1000), environments=st.integers(1, 30))
def test_spread_adds_up(seed: int, environments: int) -> None:
    sizes = spread(np.random.default_rng(seed), 400, environments)
    assert len(sizes) == environments
    assert sum(sizes) == 400
    assert min(sizes) >= LEAST_TASKS
