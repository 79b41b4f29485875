"""tau-bench v1, retail and airline, from a user's checkout of sierra-research/tau-bench.

An environment is a domain and a task is one of its tasks. The test tasks are held out and have a simulated
user, as in the benchmark. The retail tasks for training and development have none: the agent is handed what
the user would have been told, and the episode ends when it says anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Episode
from envsched.environments.sources.operation_kinds import operation_kind
from envsched.environments.sources.source import Loaded
from envsched.environments.sources.tau_checkout import (
    TERMINATE_TOOLS,
    content_digest,
    domain_folder,
    find_checkout,
    import_modules,
    tools_by_name,
)
from envsched.environments.spec import EnvironmentSpec, Node, OperationKind, TaskSpec, ToolSpec

if TYPE_CHECKING:
    from pathlib import Path

    from envsched.config import EnvironmentSettings

TASKS = {
    "retail": {
        "train": ("tasks_train", "TASKS_TRAIN"),
        "dev": ("tasks_dev", "TASKS_DEV"),
        "test": ("tasks_test", "TASKS_TEST"),
    },
    "airline": {"test": ("tasks_test", "TASKS")},
}
"""By domain and the benchmark's name of a split: the module that defines its tasks, and their variable."""
GREETING = "Hi! How can I help you today?"
"""What the simulated user replies to first."""
USER_PROMPT = (
    "You are a user interacting with an agent.\n"
    "\n"
    "Instruction: {instruction}\n"
    "\n"
    "Rules:\n"
    "- Just generate one line at a time to simulate the user's message.\n"
    "- Do not give away all the instruction at once. Only provide the information that is necessary for the "
    "current step.\n"
    "- Do not hallucinate information that is not provided in the instruction. For example, if the agent "
    "asks for the order id but it is not mentioned in the instruction, do not make up an order id, just say "
    "you do not remember or have it.\n"
    "- If the instruction goal is satisified, generate '###STOP###' as a standalone message without anything "
    "else to end the conversation.\n"
    "- Do not repeat the exact instruction in the conversation. Instead, use your own words to convey the "
    "same information.\n"
    "- Try to make the conversation as natural as possible, and stick to the personalities in the "
    "instruction."
)
"""The benchmark's system prompt of its default user, word for word: scores depend on it."""


def load(settings: EnvironmentSettings) -> Loaded:
    """All 685 tasks; ValueError if `settings.path` is not a checkout, ImportError if parts of it are missing.

    The checkout's tools and tasks are Python modules, so this imports them.
    """
    checkout = find_checkout(settings.path, TASKS)
    return Loaded(tuple(node for domain in TASKS for node in _nodes(checkout, domain)))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play. Nothing is random and the reward is 0 or 1: `seed` and `reward` change nothing."""
    from envsched.environments.sources.tau_episode import TauEpisode

    return TauEpisode(environment, task)


def _nodes(checkout: Path, domain: str) -> list[Node]:
    splits = TASKS[domain]
    tools, rules, wiki, *modules = import_modules(
        checkout, domain, ["tools", "rules", "wiki", *(module for module, _ in splits.values())]
    )
    folder = domain_folder(checkout, domain)
    environment = EnvironmentSpec(
        source="tau",
        name=f"tau-{domain}",
        summary=f"Customer service of tau-bench's {domain} company, with its policy and database.",
        tools=tuple(_tool(tool.get_info()["function"]) for tool in tools_by_name(tools).values()),
        rules=(wiki.WIKI, *rules.RULES),
        state=tuple(file.stem for file in sorted(folder.glob("data/*.json"))),
        program={"checkout": str(checkout), "domain": domain, "digest": content_digest(folder)},
    )
    return [
        Node(environment, _task(environment, f"{domain}-{split}-{index}", task, split == "test"))
        for (split, (_, variable)), module in zip(splits.items(), modules, strict=True)
        for index, task in enumerate(getattr(module, variable))
    ]


def _tool(function: dict[str, Any]) -> ToolSpec:
    name = function["name"]
    return ToolSpec(name, function["description"], function["parameters"], _kind(name))


def _kind(name: str) -> OperationKind:
    if name in TERMINATE_TOOLS:
        return "finish"
    return "read" if name == "think" else operation_kind(name)


def _task(environment: EnvironmentSpec, name: str, task: Any, heldout: bool) -> TaskSpec:
    program: dict[str, Any] = {
        "domain": environment.program["domain"],
        "actions": [{"name": action.name, "kwargs": action.kwargs} for action in task.actions],
        "outputs": list(task.outputs),
    }
    if heldout:
        program["user"] = {
            "prompt": USER_PROMPT.format(instruction=task.instruction),
            "greeting": GREETING,
        }
    return TaskSpec(
        environment=environment.name,
        name=name,
        instruction=task.instruction,
        split="heldout" if heldout else "train",
        checks=(
            "the database equals that after the reference actions",
            *(f"the agent tells the user {output!r}" for output in task.outputs),
        ),
        program=program,
    )
