"""The conversation as tokens: how tools are shown, how replies are read, how observations are appended.

    system (tools) + user ─▶ prompt ids ─▶ generated ids ─▶ parse ─▶ observation ids ─▶ generated ids …

What the model generated is never tokenised again: the conversation grows by its own ids and by the
observation's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from envsched.environments.episode import Action, Observation, Say, ToolCall
from envsched.environments.spec import Node, ToolSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
)

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Of the models made from a config; plain ChatML."""

ToolFormat = Literal["json", "compact"]

JSON_INSTRUCTIONS = """# Tools

You may call functions to fulfil the user's request. The functions are:
<tools>
{tools}
</tools>

For each call, return a JSON object with the function's name and arguments within <tool_call></tool_call>:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>
Call one function at a time. When the task is completed, reply with a short message and no call."""

MARK = "@@message@@"
"""Stands for an assistant message when a template is asked what follows one."""

MOST_DEPTH = 64
"""Levels of nesting in a call's arguments; what is deeper would overflow whoever writes it as JSON again."""

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)


@dataclass(frozen=True)
class Malformed:
    """A tool call that cannot be read; `reason` is what the agent is told."""

    reason: str


def compact_signature(tool: ToolSpec) -> str:
    """The tool as `name(first, second)`; an optional argument carries a question mark."""
    required = set(tool.parameters.get("required", ()))
    names = [n if n in required else f"{n}?" for n in tool.parameters.get("properties", {})]
    return f"{tool.name}({', '.join(names)})"


def render_tools(tools: Sequence[ToolSpec], tool_format: ToolFormat) -> str:
    """The tools as the agent reads them, one a line."""
    if tool_format == "compact":
        return "\n".join(compact_signature(tool) for tool in tools)
    return "\n".join(json.dumps(_function(tool), ensure_ascii=False) for tool in tools)


def _function(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def system_message(node: Node, tool_format: ToolFormat) -> str:
    """What the agent is told before the task: tools, and in the long form also the setting and its rules."""
    offered = node.task.tools
    tools = [t for t in node.environment.tools if offered is None or t.name in offered]
    rendered = render_tools(tools, tool_format)
    if tool_format == "compact":
        return rendered
    parts = [node.environment.summary]
    if node.environment.rules:
        parts.append("Rules:\n" + "\n".join(f"- {rule}" for rule in node.environment.rules))
    parts.append(JSON_INSTRUCTIONS.format(tools=rendered))
    return "\n\n".join(part for part in parts if part)


def render_call(call: ToolCall) -> str:
    """A tool call the way agents are taught to write it."""
    written = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
    # In JSON this sign stands only inside strings; escaped, it cannot begin a tag there.
    return "<tool_call>" + written.replace("<", r"\u003c") + "</tool_call>"


def parse_reply(text: str) -> Action | Malformed:
    """What the agent did: the first tool call of its message, or what it said."""
    text = _THOUGHT.sub("", text)
    match = _CALL.search(text)
    if match is None:
        return Say(text.strip())
    try:
        call = json.loads(match.group(1))
    except (ValueError, RecursionError):
        return Malformed("error: the tool call is not valid JSON")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return Malformed("error: a tool call needs a name")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        return Malformed("error: arguments must be a JSON object")
    if _deeper(arguments, MOST_DEPTH):
        return Malformed(f"error: arguments are nested deeper than {MOST_DEPTH} levels")
    return ToolCall(call["name"], arguments)


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects in `value` are nested more than `levels` deep."""
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(part, levels - 1) for part in parts)


class Chat:
    """Builds conversations for one tokenizer and one way to show tools."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, tool_format: ToolFormat) -> None:
        self.tokenizer = tokenizer
        self.tool_format = tool_format
        self._encoded: dict[tuple[str, str, bool], list[int]] = {}

    @cached_property
    def stop(self) -> tuple[int, ...]:
        """Token ids that end an assistant message."""
        ends = {self.tokenizer.eos_token_id, self.tokenizer.convert_tokens_to_ids("<|im_end|>")}
        return tuple(sorted(i for i in ends if isinstance(i, int) and i != self.tokenizer.unk_token_id))

    def start(self, node: Node, observation: Observation) -> list[int]:
        """Token ids of the prompt of an episode's first turn."""
        messages = [
            {"role": "system", "content": system_message(node, self.tool_format)},
            {"role": "user", "content": observation.text},
        ]
        return self._encode(self._render(messages))

    def follow(self, observation: Observation, finished: bool) -> list[int]:
        """Token ids from the end of an assistant message to the beginning of the next.

        `finished` says whether the message ended with its stop token; if not, the token is added here.
        """
        text = observation.text
        if observation.new_tools:
            text = "\n".join([text, render_tools(observation.new_tools, self.tool_format)])
        cached = (observation.role, text, finished)
        if cached not in self._encoded:
            if len(self._encoded) > 20_000:
                self._encoded.clear()
            self._encoded[cached] = self._encode(self._between(observation.role, text, finished))
        return self._encoded[cached]

    def text(self, token_ids: Sequence[int]) -> str:
        """An assistant message as text, without what ends it."""
        ids = [i for i in token_ids if i not in self.stop]
        return str(self.tokenizer.decode(ids, skip_special_tokens=False))

    def action(self, token_ids: Sequence[int]) -> Action | Malformed:
        """Read an assistant message."""
        return parse_reply(self.text(token_ids))

    def demonstration(
        self, node: Node, first: Observation, turns: Sequence[tuple[str, Observation | None]]
    ) -> tuple[list[int], list[bool]]:
        """A whole conversation as token ids, and which of them the agent wrote."""
        ids = self.start(node, first)
        mask = [False] * len(ids)
        for message, observation in turns:
            written = self._encode(message + "<|im_end|>")
            between = self.follow(observation, finished=True) if observation else []
            ids += written + between
            mask += [True] * len(written) + [False] * len(between)
        return ids, mask

    def _between(self, role: str, text: str, finished: bool) -> str:
        """What the template puts between two assistant messages."""
        messages = [("user", "u"), ("assistant", MARK), (role, text)]
        rendered = self._render([{"role": role, "content": content} for role, content in messages])
        between = rendered[rendered.index(MARK) + len(MARK) :]
        ends = [str(self.tokenizer.decode([token])) for token in self.stop]
        end = next((end for end in ends if between.startswith(end)), "")
        return between[len(end) :] if finished else between

    def _render(self, messages: list[dict[str, str]], generation: bool = True) -> str:
        return str(
            self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=generation)
        )

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))
