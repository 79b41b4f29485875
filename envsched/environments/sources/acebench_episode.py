"""One play of an ACEBench-Agent record, judged as the benchmark judges it.

`multi_step` has no user: an agent that speaks gets a stock reply. `multi_turn` has a simulated one, who first
hears a greeting. Either way the episode ends when somebody says "finish conversation", or at the benchmark's
limit of messages. The binary reward is its end-to-end accuracy: every judged attribute of every class equals
the target (of a dict, the target's keys). The graded one is its process accuracy: the milestones reached in
their order, up to the first that is missed, over all of them; of alternatives the best; 1 with the former.

Where this differs from the benchmark:
- Milestones are compared by name and arguments and not as text, so order and quotes do not matter; several
  calls of one milestone may be made one after the other, as an action here is one call.
- An episode without any call is judged by its state; the benchmark fails it.
- "finish conversation" ends from the first message on; the benchmark overhears it in the first two.
- Only tools on offer can be called. Where the classes lack one (`search_reminders`), and where a call of
  multi_turn fails, the benchmark shows the agent a mistake of its own; here it is told what failed.

Calls go straight to the methods; nothing the agent writes is evaluated as code.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from envsched.environments.acebench.classes import JUDGED, new_instances
from envsched.environments.acebench.prompts import STOCK_REPLY, STOP
from envsched.environments.episode import Action, Heard, Observation, Say, ToolCall
from envsched.environments.spec import EnvironmentSpec, OperationKind, TaskSpec, ToolSpec

MOST_MESSAGES = 40
"""The benchmark's limit on messages of all roles after the first one: 20 of an agent without a user."""


class AceBenchEpisode:
    """An instance of every class of the record, and the calls made so far."""

    def __init__(self, environment: EnvironmentSpec, task: TaskSpec, reward: str) -> None:
        self.task = task
        self.program = task.program
        self.binary = reward == "binary"
        self.user: Mapping[str, str] | None = task.program.get("user")
        offered = environment.tools if task.tools is None else map(environment.tool, task.tools)
        self.tools: dict[str, ToolSpec] = {tool.name: tool for tool in offered}
        self.instances: dict[str, Any] = {}
        self.made: list[str] = []
        self.messages = 0
        self.failed_tool = ""

    def reset(self) -> Observation:
        """The greeting, for the user; the task where there is none."""
        self.instances = new_instances(self.program["classes"], self.program["config"])
        if self.user is None:
            return Observation(self.task.instruction, role="user")
        self.messages = -1  # what the user wants is not counted
        return Observation(self.user["greeting"], role="user", awaits_user=True)

    def act(self, action: Action) -> Observation:
        """Call a tool, speak, or hear the user's reply."""
        if isinstance(action, ToolCall):
            return self._call(action)
        self.messages += 1
        if STOP in action.text:
            return self._end(Observation(action.text, "user", kind="finish"))
        if isinstance(action, Heard):
            return self._limited(Observation(action.text, "user", kind="communicate"))
        return self._say(action)

    def verify(self) -> float:
        """End-to-end accuracy, 1 or 0, when the reward is binary; else process accuracy."""
        return float(self._end_to_end()) if self.binary else self._process()

    def _say(self, said: Say) -> Observation:
        if self.user is not None:
            return self._limited(Observation(said.text, "user", kind="communicate", awaits_user=True))
        self.messages += 1
        return self._limited(Observation(STOCK_REPLY, "user", kind="communicate"))

    def _call(self, call: ToolCall) -> Observation:
        self.messages += 2  # the call and its result
        if self.messages > MOST_MESSAGES:
            # The last message allowed was the call itself.
            return self._end(Observation("", "user", kind="finish"))
        self.made.append(_canonical(call.name, call.arguments))
        text, failed = self._carry_out(call)
        kind: OperationKind = "error" if failed else self.tools[call.name].kind
        if not failed and self.failed_tool == call.name:
            kind = "retry"
        self.failed_tool = call.name if failed else ""
        return self._limited(Observation(text, kind=kind))

    def _carry_out(self, call: ToolCall) -> tuple[str, bool]:
        """What the call returns, as the benchmark's agent reads it, and whether it failed."""
        methods = [
            getattr(instance, call.name)
            for instance in self.instances.values()
            if call.name in self.tools and hasattr(instance, call.name)
        ]
        if not methods:
            return f"Error during execution: no tool {call.name!r}", True
        result: Any = None
        try:
            for method in methods:
                result = method(**call.arguments)
        except Exception as error:  # the benchmark shows the agent whatever its classes raise
            return f"Error during execution: {error}", True
        if not isinstance(result, dict):
            return str(result), False
        return json.dumps(result, ensure_ascii=False), result.get("status") in (False, "error")

    def _limited(self, observation: Observation) -> Observation:
        return self._end(observation) if self.messages >= MOST_MESSAGES else observation

    def _end(self, last: Observation) -> Observation:
        info = {"end_to_end": self._end_to_end(), "process": self._process()}
        return replace(last, reward=self.verify(), terminated=True, awaits_user=False, info=info)

    def _end_to_end(self) -> bool:
        return all(
            _reaches(target[attribute], _as_json(getattr(self.instances[name], attribute)))
            for name, target in self.program["targets"].items()
            for attribute in JUDGED[name]
        )

    def _process(self) -> float:
        if self._end_to_end():
            return 1.0
        ways = [
            [[_canonical(call["name"], call["arguments"]) for call in calls] for calls in way]
            for way in self.program["milestones"]
        ]
        return round(max(_reached(way, self.made) / len(way) for way in ways), 3)


def _reached(milestones: Sequence[list[str]], made: list[str]) -> int:
    """How many milestones, from the first on, are found in `made` in their order."""
    start = 0
    for count, calls in enumerate(milestones):
        places = range(start, len(made) - len(calls) + 1)
        place = next((i for i in places if made[i : i + len(calls)] == calls), None)
        if place is None:
            return count
        start = place + len(calls)
    return len(milestones)


def _reaches(target: Any, value: Any) -> bool:
    """Whether a judged value is right: equal, or with the target's entries where that is a dict."""
    if isinstance(target, dict):
        return all(key in value and value[key] == wanted for key, wanted in target.items())
    return bool(target == value)


def _as_json(value: Any) -> Any:
    """As the benchmark compares it, once written to a file and read: keys are text."""
    return json.loads(json.dumps(value))


def _canonical(name: str, arguments: Mapping[str, Any]) -> str:
    """Equal for calls that differ in nothing but the order of arguments."""
    return json.dumps([name, arguments], sort_keys=True)
