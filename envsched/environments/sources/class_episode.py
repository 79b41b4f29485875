"""One play in an environment that is the source code of a Python class (EnvScaler's format).

The environment's program holds `class_name` and `class_code`; the task's holds `state` (the attributes at
reset) and `checks` (sources of functions `check_func(final_state) -> bool`, which may read a global
`initial_state`). The raw reward is the share of checks that return True; a check that raises or returns
anything but a bool has not passed. An agent that speaks ends the episode.
"""

import inspect
import sys
from copy import deepcopy
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

from envsched.environments.determinism import episode_builtins
from envsched.environments.episode import Action, Observation, ToolCall
from envsched.environments.sources.arguments import schema_violation
from envsched.environments.spec import EnvironmentSpec, TaskSpec, ToolSpec

TRUE = "true"
MODULE = "environment"
"""Name of the module in which the class finds itself."""


class ClassEpisode:
    """An instance of the class, in a module of its own, so that nothing leaks from one episode to another."""

    def __init__(self, environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> None:
        self.environment = environment
        self.task = task
        self.reward = reward
        self.builtins = episode_builtins(seed)
        offered = environment.tools if task.tools is None else map(environment.tool, task.tools)
        self.tools: dict[str, ToolSpec] = {tool.name: tool for tool in offered}
        self.failed_tool = ""
        self.instance: Any = None
        self.initial_state: dict[str, Any] = {}
        self.checked: list[str] = []
        """`true`, `false` or the error of each check, as `verify` last found them."""
        self.open_checks: list[str] = []
        """Checks that did not pass at reset, where only these count."""

    def reset(self) -> Observation:
        """Build the instance. Raises whatever the class raises."""
        program = self.environment.program
        cls = self._load_class(program["class_code"], program["class_name"])
        state = deepcopy(self.task.program["state"])
        try:
            self.instance = cls(state)
        except TypeError:
            self.instance = cls()
        for name, value in state.items():
            setattr(self.instance, name, value)
        self.initial_state = self._state()
        if self.reward == "progress":
            checks = self.task.program["checks"]
            self.open_checks = [check for check in checks if self._check(check, self.initial_state) != TRUE]
        return Observation(self.task.instruction, role="user")

    def act(self, action: Action) -> Observation:
        """Call a tool, or end the episode by speaking. Raises whatever a properly called tool raises."""
        if not isinstance(action, ToolCall):
            return Observation("", "user", self.verify(), terminated=True, kind="finish")
        tool = self.tools.get(action.name)
        if tool is None:
            return self._refuse(action, f"no tool {action.name!r}")
        method = getattr(self.instance, tool.name)
        try:
            _signature(self.environment.program["class_code"], tool.name, method).bind(**action.arguments)
        except TypeError as error:
            return self._refuse(action, str(error))
        try:
            result = method(**action.arguments)
        except Exception:
            # Arguments of the wrong type are the agent's mistake, not a failure of the environment.
            violation = schema_violation(tool.parameters, action.arguments)
            if violation is None:
                raise
            return self._refuse(action, violation)
        return self._answer(tool, result)

    def verify(self) -> float:
        """Share of checks that pass, of all or of those that were open; 1 or 0 when the reward is binary."""
        final_state = self._state()
        checks = self.open_checks or self.task.program["checks"]
        self.checked = [self._check(check, final_state) for check in checks]
        passed = self.checked.count(TRUE)
        if self.reward == "binary":
            return float(passed == len(checks))
        return round(passed / len(checks), 4)

    def _load_class(self, code: str, name: str) -> Any:
        module = ModuleType(MODULE)
        vars(module)["__builtins__"] = self.builtins
        sys.modules[MODULE] = module  # dataclasses look their module up here
        exec(_compile(code, "environment"), vars(module))
        return getattr(module, name)

    def _state(self) -> dict[str, Any]:
        return deepcopy({name: value for name, value in vars(self.instance).items() if name[:2] != "__"})

    def _check(self, check: str, final_state: dict[str, Any]) -> str:
        scope: dict[str, Any] = {"__builtins__": self.builtins}
        if "initial_state" in check:
            scope["initial_state"] = deepcopy(self.initial_state)
        try:
            exec(_compile(check, "check"), scope)
            result = scope["check_func"](deepcopy(final_state))  # it may change what it is given
        except (Exception, SystemExit) as error:  # foreign code: whatever it raises, it has not passed
            return _told(error)
        if isinstance(result, bool):
            return str(result).lower()
        return f"returned {type(result).__name__}"

    def _refuse(self, action: ToolCall, why: str) -> Observation:
        self.failed_tool = action.name
        return Observation(f"error: {why}", kind="error")

    def _answer(self, tool: ToolSpec, result: Any) -> Observation:
        """A call that failed before and is made again is a retry, whatever it does."""
        failed = _says_no(result)
        retried = self.failed_tool == tool.name
        self.failed_tool = tool.name if failed else ""
        kind = "error" if failed else "retry" if retried else tool.kind
        return Observation(str(result), kind=kind)


def _told(error: BaseException) -> str:
    """An error in one short line, whatever its text does."""
    try:
        text = " ".join(str(error).split())[:80]
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}"


def _says_no(result: Any) -> bool:
    """Whether a tool's result means that it refused, by the conventions of EnvScaler's classes."""
    if isinstance(result, dict):
        return result.get("success") is False
    return isinstance(result, str) and result[:5].lower() == "error"


@lru_cache(maxsize=16384)
def _compile(code: str, name: str) -> CodeType:
    return compile(code, f"<{name}>", "exec", dont_inherit=True)


_signatures: dict[tuple[str, str], inspect.Signature] = {}
"""By class source and method name: all episodes of one class share them."""


def _signature(code: str, name: str, method: Any) -> inspect.Signature:
    if (code, name) not in _signatures:
        _signatures[code, name] = inspect.signature(method)
    return _signatures[code, name]
