"""The shape of EnvScaler's records, and the nodes they make. Nothing here runs a record's code."""

import json
import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)

from envsched.environments.records import Problem, shown
from envsched.environments.sources.code_checks import class_problem, function_problem
from envsched.environments.sources.operation_kinds import operation_kind
from envsched.environments.spec import EnvironmentSpec, OperationKind, Split, TaskSpec, ToolSpec


def _decode(value: Any) -> Any:
    """JSON text where the published files hold it instead of the data itself."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("JSON") from None


def _name(value: str) -> str:
    if not re.fullmatch(r"[^\s/#]+", value):
        raise ValueError("a name without spaces, / and #")
    return value


def _tool_name(value: str) -> str:
    if not value.isidentifier() or value.startswith("_"):
        raise ValueError("the name of a public method")
    return value


def _unwrap(value: Any) -> Any:
    """`{"type": "function", "function": {…}}` around a tool is optional."""
    return value["function"] if isinstance(value, dict) and "function" in value else value


def _schema(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("type") != "object" or not isinstance(value.get("properties", {}), dict):
        raise ValueError("a JSON schema of type object")
    if not all(isinstance(schema, dict) for schema in value.get("properties", {}).values()):
        raise ValueError("a JSON schema for every property")
    if not isinstance(value.get("required", []), list):
        raise ValueError("a list of required properties")
    return value


Name = Annotated[str, AfterValidator(_name)]
Data = Annotated[dict[str, JsonValue], BeforeValidator(_decode)]


class Record(BaseModel):
    """Fields that are used; others may be there."""

    model_config = ConfigDict(strict=True, frozen=True)


class Tool(Record):
    """One tool as a JSON schema."""

    name: Annotated[str, AfterValidator(_tool_name)]
    description: str = ""
    parameters: Annotated[dict[str, JsonValue], AfterValidator(_schema)] = Field(
        default={"type": "object", "properties": {}}
    )


def _differ(tools: list[Tool]) -> list[Tool]:
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"different names, but {', '.join(twice)} comes twice")
    return tools


Tools = Annotated[
    list[Annotated[Tool, BeforeValidator(_unwrap)]], BeforeValidator(_decode), AfterValidator(_differ)
]


class Operation(Record):
    """What a tool does to the state."""

    operation_name: str
    operation_type: str | None = None
    operation_kind: OperationKind | None = None


class StateEntity(Record):
    """One part of the state."""

    entity: str


class EnvironmentRecord(Record):
    """An environment: a class, its tools, its rules."""

    env_id: Name
    env_class_name: str
    env_class_code: str
    environment_summary: str = ""
    environment_introduction: str = ""
    tools: Tools
    operation_list: Annotated[list[Operation], BeforeValidator(_decode)] = []
    state_space_definition: Annotated[list[StateEntity], BeforeValidator(_decode)] = []
    constraints_rules: Annotated[list[str], BeforeValidator(_decode)] = []

    def problem(self) -> tuple[str, str, str] | None:
        """Field, found, expected where the class cannot serve the tools."""
        return class_problem(self.env_class_code, self.env_class_name, [tool.name for tool in self.tools])

    def spec(self, source: str) -> EnvironmentSpec:
        """The environment, to be run by `source`."""
        operations = {operation.operation_name: operation for operation in self.operation_list}
        return EnvironmentSpec(
            source=source,
            name=self.env_id,
            summary=self.environment_introduction or self.environment_summary,
            tools=tuple(_tool_spec(tool, operations.get(tool.name)) for tool in self.tools),
            rules=tuple(self.constraints_rules),
            state=tuple(entity.entity for entity in self.state_space_definition),
            program={"class_name": self.env_class_name, "class_code": self.env_class_code},
        )


class Check(Record):
    """One check of the final state."""

    check_item: str = ""
    check_func: str


class Call(Record):
    """One step of a scripted expert."""

    name: str
    arguments: dict[str, JsonValue]


class ScenarioRecord(Record):
    """A task: an initial state, an instruction, checks. SFT scenarios have no checks."""

    env_id: Name
    env_class_name: str | None = None
    task_id: Name
    task: str
    init_config: Data
    checklist_with_func: Annotated[list[Check] | None, BeforeValidator(_decode)] = None
    split: Split | None = None
    expert: list[Call] | None = None
    """Calls that solve the task, where they are known."""

    def problem(self, environment: EnvironmentRecord) -> tuple[str, str, str] | None:
        """Field, found, expected where it does not fit its environment or a check is no function."""
        if self.env_class_name not in (None, environment.env_class_name):
            return "env_class_name", shown(self.env_class_name), shown(environment.env_class_name)
        for index, check in enumerate(self.checklist_with_func or ()):
            wrong = function_problem(check.check_func, "check_func")
            if wrong:
                return f"checklist_with_func.{index}.check_func", *wrong
        return None

    def spec(self, split: Split) -> TaskSpec:
        """The task; `split` counts where the record does not name one."""
        checks = self.checklist_with_func or []
        program: dict[str, Any] = {
            "state": self.init_config,
            "checks": [check.check_func for check in checks],
        }
        if self.expert is not None:
            program["expert"] = [call.model_dump() for call in self.expert]
        return TaskSpec(
            environment=self.env_id,
            name=self.task_id,
            instruction=self.task,
            split=self.split or split,
            checks=tuple(check.check_item for check in checks),
            program=program,
        )


def _tool_spec(tool: Tool, operation: Operation | None) -> ToolSpec:
    kind = operation.operation_kind if operation else None
    if kind is None:
        types: dict[str | None, bool] = {"query": False, "state_change": True}
        kind = operation_kind(tool.name, types.get(operation.operation_type) if operation else None)
    return ToolSpec(tool.name, tool.description, tool.parameters, kind)


def validation_problems(error: ValidationError, file: str, record: str) -> list[Problem]:
    """One problem for each field that pydantic refused."""
    problems = []
    for item in error.errors():
        field = ".".join(str(part) for part in item["loc"])
        found = "nothing" if item["type"] == "missing" else shown(item["input"])
        expected = item["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        problems.append(Problem(file, record, field, found, expected))
    return problems
