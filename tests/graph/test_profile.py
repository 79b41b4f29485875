"""What is read from a node's words, worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec
from envsched.graph.profile import NodeProfile, profile, profiles, words

NAMES = ("get_order", "get_invoice", "cancel_order", "list_all_orders", "send", "x1")
SHOP = NodeProfile(
    key="shop/refund#1",
    text="Cancel the order of Ann, then get her invoice",
    tools=("get_order", "get_invoice", "cancel_order", "cancel_trip"),
    kinds=("read", "search", "delete", "update"),
    state=("orders", "invoices", "customers"),
    checks=("order 17 is cancelled", "customer Ann was told"),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("createUserAccount", ["create", "user", "account"]),
        ("get_order_items(42)", ["get", "order", "item", "42"]),
        ("Its gas; the boss's ADDRESSES", ["its", "gas", "the", "boss", "s", "addresse"]),
        ("", []),
    ],
)
def test_words_of_names_and_sentences(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_tools_are_mentioned_where_their_rarest_words_are() -> None:
    # `cancel_trip` shares `cancel` with another tool (weight 1/2 of 3/2) and `trip` is not said.
    assert SHOP.mentioned == ("cancel_order", "get_order", "get_invoice")
    assert SHOP.expected == ("delete", "read", "search")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where is the order", ("get_order",)),  # `order` is one tool's own, `get` is shared by two
        ("get it", ()),
        ("send it", ()),  # half a name is not enough
        ("send it by mail", ("send_mail",)),
    ],
)
def test_more_than_half_of_a_name_in_weight_is_a_mention(text: str, expected: tuple[str, ...]) -> None:
    node = NodeProfile(
        "e/t", text, ("get_order", "get_invoice", "send_mail"), ("read", "read", "communicate")
    )
    assert node.mentioned == expected


def test_what_a_task_touches() -> None:
    assert SHOP.touched == {
        *("tool:cancel_order", "tool:get_order", "tool:get_invoice"),
        *("state:orders", "state:invoices", "state:customers"),
        *("check:order", "check:is", "check:cancelled", "check:customer", "check:ann", "check:was"),
        "check:told",
    }


def test_without_a_mention_all_tools_are_expected() -> None:
    node = NodeProfile("shop/x", text="do it", tools=("get_order", "drop_order"), kinds=("read", "delete"))
    assert node.mentioned == ()
    assert node.expected == ("read", "delete")
    assert node.touched == frozenset()


@given(st.lists(st.sampled_from(NAMES), unique=True), st.lists(st.sampled_from(" ".join(NAMES).split("_"))))
@settings(deadline=None, derandomize=True)
def test_mentions_follow_the_order_of_first_words(names: list[str], said: list[str]) -> None:
    node = NodeProfile("e/t", " ".join(said), tuple(names), ("read",) * len(names))
    text = words(node.text)
    assert set(node.mentioned) <= set(names)
    firsts = [min(text.index(word) for word in words(name) if word in text) for name in node.mentioned]
    assert firsts == sorted(firsts)
    for name in names:
        if set(words(name)) <= set(text):
            assert name in node.mentioned
        if not set(words(name)) & set(text):
            assert name not in node.mentioned


@pytest.mark.parametrize(
    ("key", "environment"), [("shop/a", "shop"), ("shop/a#ff", "shop"), ("eu/shop/a#ff", "eu/shop")]
)
def test_environment_is_read_from_the_key(key: str, environment: str) -> None:
    assert NodeProfile(key).environment == environment


def test_every_tool_needs_a_kind() -> None:
    with pytest.raises(ValueError, match="shop/a: found 2 tools and 1 kinds; expected one each"):
        NodeProfile("shop/a", tools=("x", "y"), kinds=("read",))


def test_profiles_show_the_tools_on_offer_in_the_order_of_the_nodes() -> None:
    tools = tuple(ToolSpec(name, "", {}, kind) for name, kind in (("get", "read"), ("put", "create")))
    shop = EnvironmentSpec("envscaler", "shop", "", tools, state=("order",))
    tasks = [
        TaskSpec("shop", "b", "put it", checks=("it is there",)),
        TaskSpec("shop", "a", "get it", tools=("put",)),
    ]
    nodes = [Node(shop, task) for task in tasks]
    found = profiles(nodes, graded=True)
    assert found == [profile(node, graded=True) for node in nodes]
    assert [node.key for node in found] == [node.key for node in nodes]
    assert found[0] == NodeProfile(
        nodes[0].key, "put it", ("get", "put"), ("read", "create"), ("order",), ("it is there",), True
    )
    assert (found[1].tools, found[1].kinds) == (("put",), ("create",))
    assert not profile(nodes[0]).graded
