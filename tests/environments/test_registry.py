"""Registries: order, version, limit, tables, differences."""

import random
from collections import Counter
from itertools import pairwise

import pandera.errors
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.config import EnvironmentSettings
from envsched.environments.registry import Changes, Registry, diff, draw_evenly, load_registry
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec
from envsched.environments.tables import ENVIRONMENTS, TASKS

TOOL = ToolSpec("get", "", {"type": "object", "properties": {}})


def nodes_of(sizes: dict[str, int], summary: str = "") -> list[Node]:
    return [
        Node(EnvironmentSpec("envscaler", name, summary, (TOOL,)), TaskSpec(name, f"t{i}", "do it"))
        for name, size in sizes.items()
        for i in range(size)
    ]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), min_size=1),
    st.integers(1, 40),
    st.randoms(use_true_random=False),
)
def test_a_draw_is_even_exact_and_independent_of_order(
    sizes: dict[str, int], count: int, rng: random.Random
) -> None:
    nodes = nodes_of(sizes)
    drawn = draw_evenly(nodes, count)
    assert len(drawn) == min(count, len(nodes))
    assert len({node.key for node in drawn}) == len(drawn)
    taken = Counter(node.environment.name for node in drawn)
    most = max(taken.values())
    assert all(taken[name] >= min(size, most - 1) for name, size in sizes.items())
    rng.shuffle(nodes)
    assert draw_evenly(nodes, count) == drawn


def test_a_larger_draw_holds_the_smaller() -> None:
    nodes = nodes_of({"a": 5, "b": 3, "c": 9})
    keys = [{node.key for node in draw_evenly(nodes, count)} for count in range(1, 18)]
    assert all(small < large for small, large in pairwise(keys))


def test_the_limit_is_for_training_tasks_alone() -> None:
    whole = load_registry(EnvironmentSettings())
    limited = load_registry(EnvironmentSettings(limit=50))
    assert len(limited.train) == 50
    assert max(Counter(node.environment.name for node in limited.train).values()) == 2
    assert limited.heldout == whole.heldout
    assert limited.heldout_environments == whole.heldout_environments
    assert limited.version != whole.version
    assert [node.key for node in whole.nodes] == sorted(node.key for node in whole.nodes)
    assert all(whole.node(node.key) is node for node in whole.nodes[::100])
    environments, tasks = whole.tables()
    assert list(tasks["key"]) == [node.key for node in whole.nodes]
    assert environments["train"].sum() == len(whole.train)
    assert (environments["heldout_environment"] > 0).sum() == 4


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(KeyError, match="no node 'x'"):
        Registry(tuple(nodes_of({"a": 1}))).node("x")


def test_differences() -> None:
    old = Registry(tuple(nodes_of({"a": 2, "b": 1}))).summary()
    new = Registry(tuple(nodes_of({"a": 1, "c": 1}) + nodes_of({"b": 1}, "rebuilt"))).summary()
    assert diff(old, new) == {
        "environments": Changes(added=("c",), removed=(), changed=("b",)),
        "tasks": Changes(added=("c/t0",), removed=("a/t1",), changed=()),
    }
    assert diff(old, old) == {part: Changes((), (), ()) for part in ("environments", "tasks")}


def test_a_table_that_breaks_its_schema_is_refused() -> None:
    environments, tasks = Registry(tuple(nodes_of({"a": 2}))).tables()
    with pytest.raises(pandera.errors.SchemaError, match="greater_than_or_equal_to"):
        ENVIRONMENTS.validate(environments.assign(tools=-1))
    with pytest.raises(pandera.errors.SchemaError, match="split"):
        TASKS.validate(tasks.assign(split="test"))
