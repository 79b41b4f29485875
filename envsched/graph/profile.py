"""What a scheduler knows about a node before anything was rolled out."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from envsched.environments.spec import Node, OperationKind, key_environment


@dataclass(frozen=True)
class NodeProfile:
    """A node as data: no code, no state, nothing that a rollout would tell.

    Only `key` is needed; a trainer that knows no more of its tasks gives no more.
    """

    key: str
    """Stable and unique, `environment/task` or `environment/task#hash`."""
    text: str = ""
    """What the agent is asked."""
    tools: tuple[str, ...] = ()
    """Names of the tools on offer."""
    kinds: tuple[OperationKind, ...] = ()
    """What each of `tools` does, in a vocabulary shared by all environments."""
    state: tuple[str, ...] = ()
    """Names of the environment's state entities or fields."""
    checks: tuple[str, ...] = ()
    """One line a check of the verifier, as prose."""
    graded: bool = False
    """Whether the reward is the share of checks that pass, not all or nothing."""

    def __post_init__(self) -> None:
        if len(self.tools) != len(self.kinds):
            raise ValueError(
                f"{self.key}: found {len(self.tools)} tools and {len(self.kinds)} kinds; expected one each"
            )

    @cached_property
    def environment(self) -> str:
        """Name of its environment, read from the key."""
        return key_environment(self.key)

    @cached_property
    def touched(self) -> frozenset[str]:
        """Tools and state entities that the task's words point at, as `tool:name` and `state:name`, and the words
        of its checks, as `check:word`."""
        asked = set(words(self.text)) | {word for check in self.checks for word in words(check)}
        tools = {f"tool:{name}" for name in self.tools if asked & set(words(name))}
        state = {f"state:{name}" for name in self.state if asked & set(words(name))}
        checks = {f"check:{word}" for check in self.checks for word in words(check) if not word.isdigit()}
        return frozenset(tools | state | checks)


def profile(node: Node, graded: bool = False) -> NodeProfile:
    """The profile of a registered node."""
    offered = node.environment.tools
    if node.task.tools is not None:
        offered = tuple(node.environment.tool(name) for name in node.task.tools)
    return NodeProfile(
        key=node.key,
        text=node.task.instruction,
        tools=tuple(tool.name for tool in offered),
        kinds=tuple(tool.kind for tool in offered),
        state=node.environment.state,
        checks=node.task.checks,
        graded=graded,
    )


def profiles(nodes: Iterable[Node], graded: bool = False) -> list[NodeProfile]:
    """The profiles of registered nodes, in their order."""
    return [profile(node, graded) for node in nodes]


def words(text: str) -> list[str]:
    """Lower-case words and numbers of a text; `snake_case` and `camelCase` names fall apart, plurals lose their s."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    found = re.findall(r"[a-z]+|[0-9]+", parted.lower())
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in found
    ]
