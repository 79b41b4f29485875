"""One play of a tau-bench task, with or without a simulated user, judged as the benchmark judges it.

The reward is 1 if the database equals that after the task's reference actions and each output the task asks
for is in something the agent said. An episode ends when the user says `###STOP###`, when the agent hands over
to a human, and, where there is no user, when the agent speaks.

Calls go straight to the checkout's tool classes, whose names are the only ones that can be called. Episodes
are stricter than the benchmark in three points: `calculate`, which evaluates its expression, is not given
powers or long expressions, as one could take hours (`9**9**9`); arguments nested deeper than any tool
uses are refused; and a tool that returns no text is an error, where the benchmark would stop.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from envsched.environments.episode import Action, Heard, Observation, ToolCall
from envsched.environments.sources.overlay import Overlay
from envsched.environments.sources.tau_checkout import TERMINATE_TOOLS, open_domain
from envsched.environments.spec import EnvironmentSpec, OperationKind, TaskSpec

STOP = "###STOP###"
"""In what the user says, it ends the conversation."""
RESPOND = "respond"
"""The name under which the benchmark lists what is said to the user among a task's actions."""
EXPRESSION_CHARS = 200
NESTING = 16
"""Levels of lists and objects in a call's arguments; the tools use four."""

Changes = dict[str, dict[str, str | None]]
"""By table: what differs from the checkout's data."""


class TauEpisode:
    """A database that starts as the checkout's files are, and what the agent has said."""

    def __init__(self, environment: EnvironmentSpec, task: TaskSpec) -> None:
        program = environment.program
        self.origin: tuple[str, str, str] = (program["checkout"], program["domain"], program["digest"])
        self.domain = open_domain(*self.origin)
        self.kinds: dict[str, OperationKind] = {tool.name: tool.kind for tool in environment.tools}
        self.task = task
        self.user: Mapping[str, str] | None = task.program.get("user")
        self.database: dict[str, Overlay] = {}
        self.said: list[str] = []
        self.failed_tool = ""

    def reset(self) -> Observation:
        """The greeting for the user to reply to; without a user, the task's instruction."""
        self.database, self.said, self.failed_tool = self.domain.database(), [], ""
        if self.user is None:
            return Observation(self.task.instruction, role="user")
        return Observation(self.user["greeting"], role="user", awaits_user=True)

    def act(self, action: Action) -> Observation:
        """Call a tool, say something to the user, or hear the user's reply."""
        if isinstance(action, ToolCall):
            return self._call(action)
        if isinstance(action, Heard):
            if STOP in action.text:
                return self._end(action.text, "user")
            return Observation(action.text, role="user", kind="communicate")
        self.said.append(action.text)
        if self.user is None:
            return self._end("", "user")
        return Observation(action.text, role="user", awaits_user=True, kind="communicate")

    def verify(self) -> float:
        """1 if the database and what the agent said are as the task asks, otherwise 0."""
        actions = self.task.program["actions"]
        if changes(self.database) != _reference_changes(*self.origin, json.dumps(actions)):
            return 0.0
        # The benchmark counts what is said among the reference actions as said.
        said = self.said + [action["kwargs"]["content"] for action in actions if action["name"] == RESPOND]
        plain = [text.lower().replace(",", "") for text in said]
        outputs = self.task.program["outputs"]
        return float(all(any(output.lower() in text for text in plain) for output in outputs))

    def _call(self, call: ToolCall) -> Observation:
        tool = self.domain.tools.get(call.name)
        if tool is None:
            self.failed_tool = call.name
            return Observation(f"Unknown action {call.name}", kind="error")
        text = invoke(call.name, tool, self.database, call.arguments)
        if call.name in TERMINATE_TOOLS:
            return self._end(text, "tool")
        failed = text.startswith("Error")
        kind = "error" if failed else "retry" if self.failed_tool == call.name else self.kinds[call.name]
        self.failed_tool = call.name if failed else ""
        return Observation(text, kind=kind)

    def _end(self, text: str, role: str) -> Observation:
        return Observation(text, role, self.verify(), terminated=True, kind="finish")


def invoke(name: str, tool: Any, database: Mapping[str, Overlay], arguments: Mapping[str, Any]) -> str:
    """What a tool class answers; `Error: ...` if it refuses or fails, as the benchmark writes it."""
    if not _nests_within(arguments, NESTING):
        return f"Error: arguments nested deeper than {NESTING} levels"
    expression = arguments.get("expression")
    if name == "calculate" and isinstance(expression, str):
        if len(expression) > EXPRESSION_CHARS:
            return f"Error: expression of more than {EXPRESSION_CHARS} characters"
        if "**" in expression:
            return "Error: powers are not supported"
    try:
        # Copied because tools keep what they are given, and change it later.
        text = tool.invoke(data=database, **deepcopy(dict(arguments)))
    except Exception as error:  # the boundary to foreign code: the agent is shown whatever a tool raises
        return f"Error: {error}"
    return text if isinstance(text, str) else "Error: the tool returned no text"


def changes(database: Mapping[str, Overlay]) -> Changes:
    """What differs from the checkout's data. Equal exactly where the benchmark's hashes of a database are."""
    return {name: table.changes(_pairs) for name, table in database.items()}


def _pairs(value: Any) -> Any:
    """Objects as sorted lists of pairs: the benchmark's hash does not tell one from the other."""
    if isinstance(value, dict):
        return [[key, _pairs(part)] for key, part in sorted(value.items())]
    if isinstance(value, list):
        return [_pairs(part) for part in value]
    return value


def _nests_within(value: Any, levels: int) -> bool:
    """Whether lists and objects in `value` nest no deeper; deeper ones would overflow the stack later."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return levels > 0 and all(_nests_within(part, levels - 1) for part in value)


@lru_cache(maxsize=4096)
def _reference_changes(checkout: str, domain: str, expected: str, actions: str) -> Changes:
    """The changes that a task's reference actions, as JSON, make to a fresh database."""
    opened = open_domain(checkout, domain, expected)
    database = opened.database()
    for action in json.loads(actions):
        name = action["name"]
        if name in opened.tools and name not in TERMINATE_TOOLS:
            invoke(name, opened.tools[name], database, action["kwargs"])
    return changes(database)
