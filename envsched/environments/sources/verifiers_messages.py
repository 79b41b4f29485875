"""The older interface of verifiers (up to 0.3), known by its methods alone.

An environment has rows (`get_dataset()`, or `dataset`) with `prompt` or `question`, `answer` and `info`; an
`env_response(messages, state)` that answers the agent; a `rubric` that scores. `setup_state(state)`,
`is_completed(state)`, `tool_defs` and `system_prompt` are used where they are there.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from envsched.environments.episode import Action, Episode, Observation, ToolCall
from envsched.environments.sources.coroutines import settle
from envsched.environments.sources.operation_kinds import operation_kind
from envsched.environments.sources.plays import as_text, raw_reward
from envsched.environments.sources.source import Loaded, hashed_split
from envsched.environments.spec import EnvironmentSpec, Node, Split, TaskSpec, ToolSpec, digest


class Fields(dict[str, Any]):
    """A mapping whose items can be read as attributes too: environments expect messages of either kind."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def load_rows(name: str, environment: Any, most: int) -> Loaded:
    """Nodes of the first `most` rows."""
    title = name.replace(":", ".")
    summary = (inspect.getdoc(type(environment)) or name).splitlines()[0]
    spec = EnvironmentSpec("verifiers", title, summary, _tools(environment), program={"object": name})
    nodes: list[Node] = []
    for place in range(min(most, len(rows(environment)))):
        row = _row(environment, place)
        split: Split = "heldout" if hashed_split(f"{title} {place}") else "train"
        content = digest(json.loads(json.dumps(row, default=str)))
        program = {"entry": place, "data": content}
        nodes.append(Node(spec, TaskSpec(title, f"row-{place}", _text(_prompt(row)), split, program=program)))
    return Loaded(tuple(nodes), () if nodes else (f"{name}: no rows",))


def open_dialogue(name: str, environment: Any, task: TaskSpec, binary: bool) -> Episode:
    """Start one play."""
    return Dialogue(environment, _row(environment, task.program["entry"]), binary)


class Dialogue:
    """One play of one row."""

    def __init__(self, environment: Any, row: Mapping[str, Any], binary: bool) -> None:
        self.environment = environment
        self.binary = binary
        self.prompt = _prompt(row)
        self.messages = list(self.prompt)
        self.state: dict[str, Any] = _state(row, self.prompt)

    def reset(self) -> Observation:
        """The prompt. Raises whatever `setup_state` raises."""
        if hasattr(self.environment, "setup_state"):
            self.state = settle(self.environment.setup_state(self.state)) or self.state
        return Observation(_text(self.prompt), role="user")

    def act(self, action: Action) -> Observation:
        """Hand the agent's message to the environment."""
        message = _assistant(action, len(self.messages))
        step = Fields(prompt=list(self.messages), completion=[message], response=None, extras={})
        self.messages.append(message)
        self.state["trajectory"].append(step)
        self.state["turn"] += 1
        kind = operation_kind(action.name) if isinstance(action, ToolCall) else "communicate"
        if self._completed():
            return self._end("", kind)
        answer = settle(self.environment.env_response(self.messages, self.state))
        answer = answer[0] if isinstance(answer, tuple) else answer  # with the state, long ago
        replies = [_message(reply) for reply in ([answer] if isinstance(answer, str | Mapping) else answer)]
        self.messages += replies
        text = _text(replies)
        if self.state.get("final_env_response") is not None or self._completed():
            return self._end(text, kind)
        role = "tool" if replies and replies[0].role == "tool" else "user"
        return Observation(text, role=role, kind=kind)

    def verify(self) -> float:
        """The rubric's score, within [0, 1]; whether it is 1 when the reward is binary."""
        self.state["completion"] = self.messages[len(self.prompt) :]
        rubric = self.environment.rubric
        if hasattr(rubric, "score_rollout"):
            settle(rubric.score_rollout(self.state))
            return raw_reward(float(self.state["reward"]), self.binary)
        weights = getattr(rubric, "weights", None) or [1.0] * len(rubric.funcs)
        scores = [float(settle(_call(function, self.state))) for function in rubric.funcs]
        return raw_reward(sum(w * s for w, s in zip(weights, scores, strict=True)), self.binary)

    def _completed(self) -> bool:
        if not hasattr(self.environment, "is_completed"):
            return bool(self.state.get("is_completed"))
        return bool(settle(_call(self.environment.is_completed, self.state, messages=self.messages)))

    def _end(self, text: str, kind: Any) -> Observation:
        return Observation(text, role="user", reward=self.verify(), terminated=True, kind=kind)


def _state(row: Mapping[str, Any], prompt: list[Fields]) -> dict[str, Any]:
    """What a rollout begins with, as far as environments and rubrics look at it."""
    empty: dict[str, Any] = {
        "completion": [], "trajectory": [], "responses": [], "turn": 0, "is_completed": False, "reward": None,
        "metrics": None, "error": None, "final_env_response": None, "answer": "", "task": "default",
    }  # fmt: skip
    info = row.get("info") or {}
    return Fields(
        empty | dict(row) | {"prompt": prompt, "info": json.loads(info) if isinstance(info, str) else info}
    )


def _assistant(action: Action, number: int) -> Fields:
    """The agent's message as environments expect it."""
    if not isinstance(action, ToolCall):
        return Fields(role="assistant", content=action.text, tool_calls=None)
    arguments = json.dumps(dict(action.arguments))
    call = Fields(
        id=f"call_{number}",
        type="function",
        name=action.name,
        arguments=arguments,
        function=Fields(name=action.name, arguments=arguments),
    )
    return Fields(role="assistant", content="", tool_calls=[call])


def _call(function: Any, state: Mapping[str, Any], **more: Any) -> Any:
    """Call with what the function asks for by name."""
    known = {name: state.get(name) for name in ("prompt", "completion", "answer", "info", "task")}
    available = {**known, "state": state, **more}
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return function(**available)
    return function(**{p.name: available[p.name] for p in parameters if p.name in available})


def _tools(environment: Any) -> tuple[ToolSpec, ...]:
    """Tool definitions, in the flat form or that of OpenAI."""
    specs: list[ToolSpec] = []
    for found in getattr(environment, "tool_defs", None) or getattr(environment, "oai_tools", None) or ():
        tool = found if isinstance(found, Mapping) else found.model_dump()
        tool = tool.get("function", tool)
        name = tool["name"]
        specs.append(ToolSpec(name, tool.get("description") or "", tool["parameters"], operation_kind(name)))
    return tuple(specs)


def rows(environment: Any) -> Any:
    """The rows of an environment, by place."""
    return environment.get_dataset() if hasattr(environment, "get_dataset") else environment.dataset


def _row(environment: Any, place: int) -> Mapping[str, Any]:
    row = dict(rows(environment)[place])
    if not row.get("prompt"):
        system = getattr(environment, "system_prompt", None)
        opening = [{"role": "system", "content": system}] if system else []
        row["prompt"] = [*opening, {"role": "user", "content": row["question"]}]
    return row


def _prompt(row: Mapping[str, Any]) -> list[Fields]:
    prompt = row["prompt"]
    if isinstance(prompt, str):
        return [Fields(role="user", content=prompt)]
    return [_message(message) for message in prompt]


def _message(message: Any) -> Fields:
    if isinstance(message, str):
        return Fields(role="user", content=message)
    return Fields(message if isinstance(message, Mapping) else message.model_dump())


def _text(messages: list[Fields]) -> str:
    return "\n\n".join(as_text(message["content"]) for message in messages if message.get("content"))
