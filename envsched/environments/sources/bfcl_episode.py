"""One play of a BFCL multi-turn entry with its scripted user.

An agent that speaks ends its turn. The turn is then judged as the benchmark judges it: the public state
must equal that of a twin on which the ground truth was carried out, and what the ground truth returned must
be among what the agent has seen so far. The first turn that is wrong ends the episode, as does one with too
many calls. The graded reward is the share of judged turns that were right; the binary one asks for all.

As in the benchmark, a withheld tool works for an agent that calls it unasked: one entry's ground truth does.

Calls go straight to the method; nothing the agent writes is evaluated as code. The benchmark evaluates calls
as Python text, so it differs where that text means more than a call of a tool, and is then the more lenient:
it runs Python's own functions (`str(object='…')` can write a response that is asked for), and it refuses
what is no Python literal (`NaN`, lists 200 deep) where a tool here is given the value.
"""

import json
from copy import deepcopy
from typing import Any

from envsched.environments.episode import Action, Observation, ToolCall
from envsched.environments.sources.bfcl import DOCUMENTS
from envsched.environments.sources.bfcl_package import import_part
from envsched.environments.spec import EnvironmentSpec, OperationKind, TaskSpec, ToolSpec

CALLS_PER_TURN = 20
"""The benchmark's limit on messages with calls; a ground truth of more calls raises it, as we count calls."""


class BfclEpisode:
    """Two instances of every API class: the agent's, and a twin that follows the ground truth."""

    def __init__(self, environment: EnvironmentSpec, task: TaskSpec, reward: str) -> None:
        self.environment = environment
        self.program = task.program
        self.binary = reward == "binary"
        self.tools: dict[str, ToolSpec] = {tool.name: tool for tool in environment.tools}
        self.instances: dict[str, Any] = {}
        self.twins: dict[str, Any] = {}
        self.seen: list[str] = []
        self.turn = 0
        self.calls = 0
        self.passed = 0
        self.failed_tool = ""

    def reset(self) -> Observation:
        """The first user message."""
        self.instances, self.twins = self._instances(), self._instances()
        return Observation(self.program["turns"][0], role="user")

    def act(self, action: Action) -> Observation:
        """Call a tool, or end the turn by speaking."""
        if not isinstance(action, ToolCall):
            return self._end_turn()
        self.calls += 1
        limit = max(CALLS_PER_TURN, len(self.program["ground_truth"][self.turn]))
        if self.calls > limit:
            return self._end(f"more than {limit} calls in a turn")
        if action.name not in self.tools:
            self.failed_tool = action.name
            return Observation(f"Error during execution: no tool {action.name!r}", kind="error")
        text, failed = _call(self.instances, action)
        self.seen.append(text)
        kind: OperationKind = self.tools[action.name].kind
        if failed:
            kind = "error"
        elif self.failed_tool == action.name:
            kind = "retry"
        self.failed_tool = action.name if failed else ""
        return Observation(text, kind=kind)

    def verify(self) -> float:
        """Share of judged turns that were right so far; when the reward is binary, whether all were."""
        if not self.program.get("solvable", True):
            return 0.0
        judged = sum(bool(calls) for calls in self.program["ground_truth"])
        return float(self.passed == judged) if self.binary else round(self.passed / judged, 4)

    def _end_turn(self) -> Observation:
        truth = self.program["ground_truth"][self.turn]
        expected = [_call(self.twins, ToolCall(call["name"], call["arguments"]))[0] for call in truth]
        if truth:
            wrong = self._judge(expected)
            if wrong:
                return self._end(wrong)
            self.passed += 1
        self.turn += 1
        self.calls = 0
        if self.turn == len(self.program["turns"]):
            return self._end("")
        new = tuple(self.environment.tool(name) for name in self.program["new_tools"][self.turn])
        return Observation(self.program["turns"][self.turn], "user", kind="communicate", new_tools=new)

    def _judge(self, expected: list[str]) -> str:
        """Why the turn is wrong; empty if it is right."""
        if not self.calls:
            return "no calls"
        checker = import_part(self.environment.program, "multi_turn_checker")
        try:
            verdicts = (
                checker.state_checker(self.instances, self.twins),
                checker.response_checker(self.seen, expected, self.turn),
            )
        except Exception as error:  # the agent chose the values that the package's classes compare
            return f"the state cannot be compared: {type(error).__name__}"
        return next((str(verdict["error_message"]) for verdict in verdicts if not verdict["valid"]), "")

    def _end(self, why: str) -> Observation:
        info = {"failed_turn": self.turn, "why": why} if why else {}
        return Observation("", "user", self.verify(), terminated=True, kind="finish", info=info)

    def _instances(self) -> dict[str, Any]:
        made = {}
        for name in self.program["classes"]:
            module = import_part(self.environment.program, f"func_source_code.{DOCUMENTS[name]}")
            instance = getattr(module, name)()
            if hasattr(instance, "_load_scenario"):
                config = deepcopy(self.program["initial_config"].get(name, {}))
                instance._load_scenario(config, long_context=self.program["long_context"])
            made[name] = instance
        return made


def _call(instances: dict[str, Any], call: ToolCall) -> tuple[str, bool]:
    """What the call returns, as the benchmark writes it, and whether it failed."""
    method = next(
        getattr(instance, call.name) for instance in instances.values() if hasattr(instance, call.name)
    )
    try:
        # Classes keep the lists they are given and change them later: those of a task must not change.
        result = method(**deepcopy(dict(call.arguments)))
        return _written(result), isinstance(result, dict) and "error" in result
    except Exception as error:  # the benchmark shows the agent whatever its classes raise
        return f"Error during execution: {error}", True


def _written(result: Any) -> str:
    """A result the way the benchmark writes it."""
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError, RecursionError):
            pass
    return str(result)
