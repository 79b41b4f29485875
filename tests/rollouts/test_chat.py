import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from envsched.environments.episode import Observation, Say, ToolCall
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec
from envsched.rollouts.chat import (
    CHAT_TEMPLATE,
    Chat,
    Malformed,
    compact_signature,
    parse_reply,
    render_call,
    system_message,
)

CHATML = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nBe helpful.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""As of SmolLM2 and Qwen: a line break follows each message."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
TAGS = st.sampled_from(["</tool_call>", "<tool_call>", "<think>", "</think>", "<|im_end|>", '"}}'])
TOOL = ToolSpec(
    "open_door",
    "Opens a door.",
    {
        "type": "object",
        "properties": {"door": {"type": "string"}, "slowly": {"type": "boolean"}},
        "required": ["door"],
    },
)


@pytest.fixture
def chat(tokenizer: PreTrainedTokenizerFast) -> Chat:
    return Chat(tokenizer, "compact")


@pytest.fixture(params=[CHAT_TEMPLATE, CHATML], ids=["ours", "chatml"])
def any_chat(
    request: pytest.FixtureRequest, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> Chat:
    monkeypatch.setattr(tokenizer, "chat_template", request.param)
    return Chat(tokenizer, "compact")


@given(name=st.text() | TAGS, arguments=st.dictionaries(st.text() | TAGS, JSON | TAGS, max_size=4))
def test_calls_are_read_as_they_were_written(name: str, arguments: dict[str, Any]) -> None:
    call = ToolCall(name, arguments)
    assert parse_reply(render_call(call)) == call
    assert parse_reply(f"I will do it.\n{render_call(call)} and {render_call(ToolCall('b', {}))}") == call


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<tool_call>{"name": "a", "arguments": {</tool_call>', "not valid JSON"),
        ("<tool_call></tool_call>", "not valid JSON"),
        ("<tool_call>" + "[" * 100_000, "not valid JSON"),
        ("<tool_call>[1]</tool_call>", "needs a name"),
        ('<tool_call>{"name": 3}</tool_call>', "needs a name"),
        ('<tool_call>{"arguments": {}}</tool_call>', "needs a name"),
        ('<tool_call>{"name": "a", "arguments": [1]}</tool_call>', "must be a JSON object"),
    ],
)
def test_malformed_calls_are_explained(text: str, reason: str) -> None:
    reply = parse_reply(text)
    assert isinstance(reply, Malformed)
    assert reason in reply.reason


def test_calls_may_lack_arguments_and_the_closing_tag() -> None:
    assert parse_reply('<tool_call>{"name": "a"}</tool_call>') == ToolCall("a", {})
    assert parse_reply('<tool_call>\n{"name": "a", "arguments": {"b": 1}}\n') == ToolCall("a", {"b": 1})


def test_thoughts_are_not_acted_upon() -> None:
    hidden = render_call(ToolCall("hidden", {}))
    assert parse_reply(f"<think>{hidden}</think>done") == Say("done")
    assert parse_reply(f"<think>a</think>{render_call(ToolCall('b', {}))}") == ToolCall("b", {})
    assert parse_reply(f"<think>never ends {hidden}") == Say("")


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(parse_reply(text), Say | ToolCall | Malformed)


def test_optional_arguments_carry_a_question_mark() -> None:
    assert compact_signature(TOOL) == "open_door(door, slowly?)"
    assert compact_signature(replace(TOOL, parameters={"type": "object"})) == "open_door()"


def test_only_offered_tools_are_shown() -> None:
    other = replace(TOOL, name="shut_door")
    environment = EnvironmentSpec("envscaler", "House", "A house.", (TOOL, other), rules=("No noise.",))
    every = Node(environment, TaskSpec("House", "one", "go"))
    assert system_message(every, "compact") == "open_door(door, slowly?)\nshut_door(door, slowly?)"
    some = Node(environment, TaskSpec("House", "two", "go", tools=("shut_door",)))
    assert system_message(some, "compact") == "shut_door(door, slowly?)"
    long = system_message(some, "json")
    assert long.startswith("A house.\n\nRules:\n- No noise.\n\n# Tools")
    [line] = long.split("<tools>\n")[1].split("\n</tools>")[0].split("\n")
    function = {"name": "shut_door", "description": "Opens a door.", "parameters": TOOL.parameters}
    assert json.loads(line) == {"type": "function", "function": function}


@pytest.mark.parametrize("finished", [True, False])
def test_conversations_read_as_the_template_renders_them(
    any_chat: Chat, nodes: list[Node], finished: bool
) -> None:
    tokenizer, node = any_chat.tokenizer, nodes[0]
    messages = [
        {"role": "system", "content": system_message(node, "compact")},
        {"role": "user", "content": node.task.instruction},
    ]
    ids = any_chat.start(node, Observation(node.task.instruction, role="user"))
    for written, role, answer in [
        ("one two", "tool", "error: no"),
        ("", "user", "@ go on\n"),
        ("x", "tool", ""),
    ]:
        ids = ids + tokenizer.encode(written, add_special_tokens=False)
        ids += tokenizer.encode("<|im_end|>") if finished else []
        ids += any_chat.follow(Observation(answer, role=role), finished)
        messages += [{"role": "assistant", "content": written}, {"role": role, "content": answer}]
        rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert tokenizer.decode(ids) == rendered


def test_new_tools_follow_the_observation(chat: Chat) -> None:
    plain = chat.follow(Observation("opened"), finished=True)
    more = chat.follow(Observation("opened", new_tools=(TOOL,)), finished=True)
    assert plain != more
    assert "opened\nopen_door(door, slowly?)<|im_end|>" in chat.tokenizer.decode(more)


def test_messages_are_read_without_their_stop_token(chat: Chat) -> None:
    text = render_call(ToolCall("give", {"to": "ann"}))
    ids = chat.tokenizer.encode(text, add_special_tokens=False)
    assert chat.action([*ids, *chat.stop]) == chat.action(ids) == ToolCall("give", {"to": "ann"})
    assert chat.stop == (chat.tokenizer.convert_tokens_to_ids("<|im_end|>"),)


def test_demonstrations_are_made_of_the_same_pieces_as_rollouts(chat: Chat, nodes: list[Node]) -> None:
    node, call = nodes[0], render_call(ToolCall("give", {"to": "ann"}))
    first, answer = Observation(node.task.instruction, role="user"), Observation("ok")
    ids, mask = chat.demonstration(node, first, [(call, answer), ("done", None)])
    written = [
        chat.tokenizer.encode(text + "<|im_end|>", add_special_tokens=False) for text in (call, "done")
    ]
    pieces = [
        (chat.start(node, first), False),
        (written[0], True),
        (chat.follow(answer, finished=True), False),
        (written[1], True),
    ]
    assert ids == [token for piece, _ in pieces for token in piece]
    assert mask == [by_agent for piece, by_agent in pieces for _ in piece]


@pytest.mark.parametrize("depth", [2, 64, 65, 500, 990, 5000, 100_000])
def test_deep_arguments_are_malformed(depth: int) -> None:
    nested = "[" * (depth - 1) + "]" * (depth - 1)
    action = parse_reply('<tool_call>{"name": "get", "arguments": {"a": ' + nested + "}}</tool_call>")
    assert isinstance(action, ToolCall if depth <= 64 else Malformed)
