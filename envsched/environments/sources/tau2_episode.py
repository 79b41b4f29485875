"""One play of a tau2-bench task, judged as the benchmark judges it.

The reward is the product over the task's reward basis: databases equal to those after the reference
actions, assertions that hold, reference actions made, facts said. It is 0 where the play ended otherwise than
by the user's or the agent's own stop. The benchmark loads and hashes whole databases for every verdict; here
they are loaded once a process, an episode copies the records it touches, and verdicts compare those.

Calls go to the benchmark's own tools, by name and only to those on offer.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from loguru import logger

from envsched.environments.episode import Action, Heard, Observation, Say, ToolCall
from envsched.environments.sources.overlay import Overlay
from envsched.environments.sources.tau2 import DONE, SOLO
from envsched.environments.spec import EnvironmentSpec, OperationKind, TaskSpec

STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""What the simulated user says to end the conversation."""
MOST_ERRORS = 10
MOST_STEPS = 100
"""The benchmark's limits; a step is one message from one role to another."""
MOST_EXPRESSION = 200
"""Characters of a sum given to the benchmark's calculator, which evaluates it as Python; a limit of ours."""

_TASKS: dict[str, Any] = {}
_REFERENCES: dict[str, Any] = {}
"""By the digest of a task."""

logger.disable("tau2")


class Tau2Episode:
    """An instance of the benchmark's environment, over shared databases."""

    def __init__(self, environment: EnvironmentSpec, task: TaskSpec) -> None:
        self.domain: str = environment.program["domain"]
        self.tools = {tool.name: tool for tool in environment.tools}
        self.spec = task
        self.user: dict[str, str] | None = task.program.get("user")
        self.upstream: Any = None
        self.said: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.errors = 0
        self.steps = 0
        self.failed_tool = ""

    @property
    def task(self) -> Any:
        """The benchmark's own record of the task."""
        return _task(self.spec)

    def reset(self) -> Observation:
        """The agent's greeting, for the user; the ticket where there is none."""
        self.upstream = new_environment(self.domain, self.task)
        if self.user is None:
            return Observation(self.spec.instruction, role="user")
        return Observation(self.user["greeting"], role="user", awaits_user=True)

    def act(self, action: Action) -> Observation:
        """Call a tool, speak to the user, or hear the reply."""
        if isinstance(action, Heard):
            return self._hear(action.text)
        if isinstance(action, Say):
            return self._say(action.text)
        if self.domain in SOLO and action.name == DONE.name:
            return self._stop("")
        return self._call(action)

    def verify(self) -> float:
        """1 if everything in the task's reward basis holds, else 0."""
        basis = {part.value for part in self.task.evaluation_criteria.reward_basis}
        judges = {
            "DB": self._same_databases,
            "ENV_ASSERTION": self._assertions_hold,
            "ACTION": self._acted,
            "COMMUNICATE": self._communicated,
        }
        if unknown := basis - set(judges):
            raise ValueError(
                f"{self.spec.name}: reward_basis: found {sorted(unknown)}; known {sorted(judges)}"
            )
        return float(all(judges[part]() for part in sorted(basis)))

    def _hear(self, reply: str) -> Observation:
        self.steps += 1
        if any(stop in reply for stop in STOPS):
            return self._stop(reply)
        return self._limited(Observation(reply, role="user", kind="communicate"))

    def _say(self, text: str) -> Observation:
        self.steps += 1
        if self.user is None:
            self.errors += 1
            wanted = f"error: nobody listens; call a tool, and {DONE.name} at the end"
            return self._limited(Observation(wanted, kind="error"))
        self.said.append(text)
        return self._limited(Observation(text, role="user", kind="communicate", awaits_user=True))

    def _call(self, call: ToolCall) -> Observation:
        self.steps += 2  # to the environment and back
        text, failed = self._carry_out(call)
        kind: OperationKind = self.tools[call.name].kind if call.name in self.tools else "error"
        if failed:
            kind = "error"
        elif self.failed_tool == call.name:
            kind = "retry"
        self.failed_tool = call.name if failed else ""
        self.errors += failed
        return self._limited(Observation(text, kind=kind))

    def _carry_out(self, call: ToolCall) -> tuple[str, bool]:
        """What the benchmark returns, and whether it is an error."""
        from tau2.data_model.message import ToolCall as UpstreamCall

        arguments = dict(call.arguments)
        self.calls.append((call.name, arguments))
        if call.name not in self.tools:
            return f"Error: Tool '{call.name}' not found.", True
        expression = arguments.get("expression")
        if isinstance(expression, str) and ("**" in expression or len(expression) > MOST_EXPRESSION):
            return "Error: Invalid characters in expression", True
        message = self.upstream.get_response(UpstreamCall(id="", name=call.name, arguments=arguments))
        return str(message.content), bool(message.error)

    def _limited(self, observation: Observation) -> Observation:
        if self.errors >= MOST_ERRORS:
            return self._end(f"{MOST_ERRORS} errors")
        if self.steps >= MOST_STEPS:
            return self._end(f"{MOST_STEPS} steps")
        return observation

    def _end(self, why: str) -> Observation:
        """An end that earns nothing."""
        return Observation("", "user", 0.0, terminated=True, kind="finish", info={"why": why})

    def _stop(self, last: str) -> Observation:
        return Observation(last, "user", self.verify(), terminated=True, kind="finish")

    def _same_databases(self) -> bool:
        return bool(changes(self.upstream) == _reference(self.domain, self.spec))

    def _assertions_hold(self) -> bool:
        checks = self.task.evaluation_criteria.env_assertions or []
        return all(self.upstream.run_env_assertion(c, raise_assertion_error=False) for c in checks)

    def _acted(self) -> bool:
        from tau2.data_model.message import ToolCall as UpstreamCall

        made = [UpstreamCall(id="", name=name, arguments=arguments) for name, arguments in self.calls]
        wanted = self.task.evaluation_criteria.actions or []
        return all(any(action.compare_with_tool_call(call) for call in made) for action in wanted)

    def _communicated(self) -> bool:
        said = [text.lower().replace(",", "") for text in self.said]
        facts = self.task.evaluation_criteria.communicate_info or []
        return all(any(fact.lower() in text for text in said) for fact in facts)


def new_environment(domain: str, task: Any) -> Any:
    """The benchmark's environment in the task's initial state, at the cost of what is touched."""
    module = import_module(f"tau2.domains.{domain}.environment")
    base = _databases(domain)
    if domain in SOLO:
        database, user_database = (part.model_copy(deep=True) for part in base)
        upstream = module.get_environment(db=database, user_db=user_database, solo_mode=True)
    else:
        (database,) = base
        tables = {name: Overlay(getattr(database, name)) for name in type(database).model_fields}
        upstream = module.get_environment(db=type(database).model_construct(**tables))
    initial = task.initial_state
    if initial is not None:
        history = initial.message_history or []
        upstream.set_state(initial.initialization_data, initial.initialization_actions, history)
    return upstream


def changes(upstream: Any) -> Any:
    """Equal for two environments of one domain exactly if their databases are."""
    if upstream.user_tools is not None:
        return upstream.get_db_hash(), upstream.get_user_db_hash()
    database = upstream.tools.db
    return {
        name: getattr(database, name).changes(lambda record: record.model_dump())
        for name in type(database).model_fields
    }


@lru_cache
def _databases(domain: str) -> tuple[Any, ...]:
    """The agent's database, and the user's where there is one; never written."""
    upstream = import_module(f"tau2.domains.{domain}.environment").get_environment()
    return tuple(kit.db for kit in (upstream.tools, upstream.user_tools) if kit is not None)


def _task(spec: TaskSpec) -> Any:
    from tau2.data_model.tasks import Task

    if spec.digest not in _TASKS:
        _TASKS[spec.digest] = Task.model_validate(spec.program["task"])
    return _TASKS[spec.digest]


def _reference(domain: str, spec: TaskSpec) -> Any:
    """The databases' changes after the task's reference actions, found out once a process."""
    if spec.digest not in _REFERENCES:
        _REFERENCES[spec.digest] = _carry_out_reference(domain, _task(spec))
    return _REFERENCES[spec.digest]


def _carry_out_reference(domain: str, task: Any) -> Any:
    upstream = new_environment(domain, task)
    for action in task.evaluation_criteria.actions or []:
        requestor = "assistant" if domain in SOLO else action.requestor
        try:
            upstream.make_tool_call(action.name, requestor=requestor, **action.arguments)
        except Exception:  # the benchmark goes on with the next one, whatever its tools raise
            continue
    return changes(upstream)
