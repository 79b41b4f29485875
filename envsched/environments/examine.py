"""What tasks show before anybody plays them: whether they start, what doing nothing earns, what is odd."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from envsched.config import EnvironmentSettings
from envsched.environments.collection import Examined
from envsched.environments.episode import Observation
from envsched.environments.pool import EpisodePool
from envsched.environments.sources.code_checks import signature_problems
from envsched.environments.spec import EnvironmentSpec, Node, digest

AT_ONCE = 128
SEED = 0
CHANGING = {"create", "update", "delete", "communicate"}
"""Kinds of operations that leave a trace in the state."""
TRUE = "true"


def examine(
    nodes: Sequence[Node],
    settings: EnvironmentSettings,
    advance: Callable[[int], object] = lambda done: None,
) -> dict[str, Examined]:
    """Start every task in a worker and score it untouched; findings by key."""
    found: dict[str, Examined] = {}
    environments = {node.environment.name: node.environment for node in nodes}
    odd = {name: _mismatches(environment) for name, environment in environments.items()}
    with EpisodePool(settings) as pool:
        for start in range(0, len(nodes), AT_ONCE):
            part = nodes[start : start + AT_ONCE]
            opened = pool.reset([(node, SEED) for node in part])
            verdicts = pool.verdicts([handle for handle, _ in opened])
            pool.close([handle for handle, _ in opened])
            for node, (_, first), last in zip(part, opened, verdicts, strict=True):
                flags = odd[node.environment.name]
                found[node.key] = _examined(node, first, last, flags)
            advance(len(part))
    return found


def _mismatches(environment: EnvironmentSpec) -> dict[str, str]:
    """A flag where the schema of a tool and the method behind it differ."""
    if "class_code" not in environment.program:
        return {}
    schemas = {tool.name: tool.parameters for tool in environment.tools}
    found = signature_problems(environment.program["class_code"], environment.program["class_name"], schemas)
    return {"schema mismatch": "; ".join(found.values())} if found else {}


def _examined(node: Node, first: Observation, last: Observation, odd: Mapping[str, str]) -> Examined:
    flags = dict(odd)
    if first.errored or last.errored:
        return Examined(flags={**flags, "cannot start": first.error or last.error})
    results: Sequence[str] = last.info.get("checks", ())
    raised = {f"check {place}": text for place, text in enumerate(results, 1) if text not in (TRUE, "false")}
    if raised:
        flags["check raises"] = "; ".join(f"{name}: {text}" for name, text in raised.items())
    share = sum(text == TRUE for text in results) / len(results) if results else None
    if last.reward >= 1 or share == 1:
        flags["solved at reset"] = "doing nothing earns the whole reward"
    if not CHANGING & {tool.kind for tool in node.environment.tools}:
        flags["never changes"] = "no tool changes the state"
    return Examined(last.reward, share, flags)


def duplicates(nodes: Iterable[Node]) -> dict[str, str]:
    """Environments, by name, that have the same content as one before them, and its name."""
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    environments: dict[str, EnvironmentSpec] = {}
    tasks: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        environments[node.environment.name] = node.environment
        tasks[node.environment.name].append(_task_content(node))
    for name, environment in sorted(environments.items()):
        content = digest([environment.source, environment.tools, environment.program, sorted(tasks[name])])
        if content in first:
            found[name] = first[content]
        first.setdefault(content, name)
    return found


def with_duplicates(nodes: Iterable[Node], examined: Mapping[str, Examined]) -> dict[str, Examined]:
    """The findings, with a flag for tasks that have the content of an earlier one of their environment."""
    first: dict[tuple[str, str], str] = {}
    found = dict(examined)
    for node in nodes:
        name = first.setdefault((node.environment.name, _task_content(node)), node.task.name)
        one = examined[node.key]
        # What it was a duplicate of when it was registered may be gone.
        flags = {flag: text for flag, text in one.flags.items() if flag != "duplicate"}
        twin = {} if name == node.task.name else {"duplicate": f"the same as {name}"}
        found[node.key] = replace(one, flags=flags | twin)
    return found


def flag_counts(examined: Mapping[str, Examined]) -> dict[str, int]:
    """How many tasks have each flag."""
    counts: dict[str, int] = defaultdict(int)
    for one in examined.values():
        for flag in one.flags:
            counts[flag] += 1
    return dict(sorted(counts.items()))


def _task_content(node: Node) -> str:
    task = node.task
    return digest([task.instruction, task.tools, task.checks, task.program])
