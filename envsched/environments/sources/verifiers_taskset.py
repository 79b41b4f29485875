"""Tasksets of `verifiers.v1` (0.4): a task has data, tools as methods of toolsets, and rewards.

The tools are called here in the process of the worker, where verifiers itself would serve them; the toolsets
and the task share one state, as there.
"""

from __future__ import annotations

import inspect
import json
from functools import lru_cache
from itertools import islice
from typing import Any

from envsched.environments.episode import Action, Episode, Observation, Say, ToolCall
from envsched.environments.sources.coroutines import settle
from envsched.environments.sources.operation_kinds import operation_kind
from envsched.environments.sources.plays import as_text, raw_reward
from envsched.environments.sources.source import Loaded, hashed_split
from envsched.environments.spec import EnvironmentSpec, Node, Split, TaskSpec, ToolSpec


def configured(taskset: type) -> Any:
    """A taskset of this class with its default settings."""
    from verifiers.v1.configs.taskset import TasksetConfig
    from verifiers.v1.utils.generic import concrete_type

    return taskset((concrete_type(taskset, TasksetConfig) or TasksetConfig)())


def load_tasks(name: str, taskset: Any, most: int) -> Loaded:
    """Nodes of the first `most` tasks that can be played here."""
    tasks = _tasks(name, taskset, most)
    if not tasks:
        return Loaded((), (f"{name}: no tasks",))
    if reason := _unplayable(tasks[0]):
        return Loaded((), (f"{name}: {reason}",))
    tools = tuple(
        ToolSpec(tool.name, tool.description or "", tool.parameters, operation_kind(tool.name))
        for tool in _tools(_toolsets(tasks[0])).values()
    )
    summary = (inspect.getdoc(type(taskset)) or name).splitlines()[0]
    title = name.replace(":", ".")
    environment = EnvironmentSpec("verifiers", title, summary, tools, program={"object": name})
    nodes: list[Node] = []
    skipped: list[str] = []
    for place, task in enumerate(tasks):
        if reason := _unplayable(task) or ("" if task.data.prompt_text else "no prompt: the user opens"):
            skipped.append(f"{name}: task {place}: {reason}")
        else:
            nodes.append(Node(environment, _spec(title, place, most, task)))
    return Loaded(tuple(nodes), tuple(skipped))


def open_task(name: str, taskset: Any, task: TaskSpec, binary: bool) -> Episode:
    """Start one play."""
    return TasksetEpisode(_tasks(name, taskset, task.program["among"])[task.program["entry"]], binary)


class TasksetEpisode:
    """One play of one task. It ends when the agent writes a message without a tool call, or a stop holds."""

    def __init__(self, task: Any, binary: bool) -> None:
        self.task = task
        self.binary = binary
        self.toolsets = _toolsets(task)
        self.tools = _tools(self.toolsets)
        self.trace = _trace(task)

    def reset(self) -> Observation:
        """The task's prompt. Raises whatever its set-up raises."""
        for toolset in self.toolsets:
            toolset._inert_state = self.trace.state  # what `self.state` is outside a server
            settle(toolset.setup())
            settle(toolset.setup_task(self.task.data))
        settle(self.task.setup(self.trace, None))
        self._note({"role": "user", "content": self.task.data.prompt_text})
        return Observation(_prompt(self.task), role="user")

    def act(self, action: Action) -> Observation:
        """Call a tool, or take the agent's last words."""
        if not isinstance(action, ToolCall):
            spoken = action.text if isinstance(action, Say) else ""
            self._note({"role": "assistant", "content": spoken})
            return self._end("", "communicate")
        number = f"call_{len(self.trace.nodes)}"
        call = {"id": number, "name": action.name, "arguments": json.dumps(dict(action.arguments))}
        self._note({"role": "assistant", "tool_calls": [call]})
        text, failed = self._call(action)
        self._note({"role": "tool", "tool_call_id": number, "content": text, "name": action.name})
        kind = "error" if failed else operation_kind(action.name)
        if self._stopped():
            return self._end(text, kind)
        return Observation(text, kind=kind)

    def verify(self) -> float:
        """Weighted sum of the task's rewards, within [0, 1]; whether it is 1 when the reward is binary."""
        settle(self.task.finalize(self.trace, None))
        total = 0.0
        for reward in self.task.hooks("reward"):
            found = settle(_invoke(reward, self.task.data, self.trace))
            values = found.values() if isinstance(found, dict) else [found]
            total += getattr(reward, "_vf_weight", 1.0) * sum(map(float, values))
        return raw_reward(total, self.binary)

    def _call(self, call: ToolCall) -> tuple[str, bool]:
        """What a tool answers, and whether it failed."""
        from pydantic import ValidationError

        tool = self.tools.get(call.name)
        if tool is None:
            return f"error: no tool {call.name!r}; allowed: {', '.join(self.tools)}", True
        try:
            arguments = tool.fn_metadata.arg_model.model_validate(dict(call.arguments))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            return f"error: {wrong}", True
        try:
            return as_text(settle(tool.fn(**arguments.model_dump_one_level()))), False
        except Exception as error:  # as the server does: the agent reads what its call raised
            return f"error: {type(error).__name__}: {error}", True

    def _stopped(self) -> bool:
        """Whether a stop that looks at the trace holds."""
        stops = self.task.hooks("stop")
        return any(bool(settle(_invoke(stop, self.task.data, self.trace))) for stop in stops)

    def _end(self, text: str, kind: Any) -> Observation:
        return Observation(text, role="user", reward=self.verify(), terminated=True, kind=kind)

    def _note(self, message: dict[str, Any]) -> None:
        from verifiers.v1.graph import MessageNode

        nodes = self.trace.nodes
        parent = len(nodes) - 1 if nodes else None
        sampled = message["role"] == "assistant"
        nodes.append(MessageNode.model_validate({"parent": parent, "message": message, "sampled": sampled}))


@lru_cache(maxsize=64)
def _tasks(name: str, taskset: Any, most: int) -> list[Any]:
    return list(islice(taskset, most))


def _spec(environment: str, place: int, most: int, task: Any) -> TaskSpec:
    label = task.data.name or task.data.id or f"task-{place}"
    split: Split = "heldout" if hashed_split(f"{environment} {label}") else "train"
    rewards = tuple(reward.__name__.replace("_", " ") for reward in task.hooks("reward"))
    program = {"entry": place, "among": most, "data": task.hash}
    return TaskSpec(environment, str(label), _prompt(task), split, checks=rewards, program=program)


def _prompt(task: Any) -> str:
    """System prompt and prompt, as one message."""
    return "\n\n".join(part for part in (task.data.system_prompt, task.data.prompt_text) if part)


def _unplayable(task: Any) -> str:
    """Why a task cannot be played in a worker; empty if it can."""
    if task.NEEDS_CONTAINER or task.data.image:
        return "needs a container"
    if task.plugged_judges():
        return "is scored by a judge"
    for hook in (*task.hooks("reward"), *task.hooks("stop")):
        needed = [
            parameter.name
            for parameter in inspect.signature(hook).parameters.values()
            if parameter.default is parameter.empty and parameter.name not in ("task", "trace")
        ]
        if needed:
            return f"{hook.__name__} needs {', '.join(needed)}"
    return "" if task.hooks("reward") else "has no reward"


def _toolsets(task: Any) -> list[Any]:
    return list(type(task).toolsets(task.config))


def _tools(toolsets: list[Any]) -> dict[str, Any]:
    """The tools by the name under which the agent knows them."""
    from mcp.server.mcpserver.tools import Tool
    from verifiers.v1.utils.decorators import discover_decorated

    found: dict[str, Any] = {}
    for toolset in toolsets:
        for method in discover_decorated(toolset, "tool"):
            own = getattr(method, "tool_name", None) or method.__name__
            name = f"{toolset.server_name}_{own}" if toolset.server_name else own
            description = (method.__doc__ or "").strip()
            found[name] = Tool.from_function(method, name=name, description=description)
    return found


def _trace(task: Any) -> Any:
    """An empty record of a play, such as the task's hooks read."""
    from verifiers.v1.configs.agent import AgentConfig
    from verifiers.v1.state import state_cls
    from verifiers.v1.trace import AgentInfo, Trace, TraceTask

    return Trace(
        task=TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        state=state_cls(type(task))(),
        agent=AgentInfo(config=AgentConfig()),
    )


def _invoke(hook: Any, data: Any, trace: Any) -> Any:
    """Call a hook with what it asks for by name."""
    available = {"task": data, "trace": trace}
    names = inspect.signature(hook).parameters
    return hook(**{name: value for name, value in available.items() if name in names})
