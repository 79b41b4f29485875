"""What a scheduler knows about a node before anything was rolled out."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from envsched.environments.spec import Node, OperationKind, key_environment

CAMEL, WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])"), re.compile(r"[a-z]+|[0-9]+")
MENTION = 0.5
"""Share of a tool's name, in weight, that an instruction must have."""


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
    def mentioned(self) -> tuple[str, ...]:
        """Tools that the instruction points at, in the order in which it does.

        A tool is pointed at where the instruction has its name's rarest words: those that few tools share.
        """
        position: dict[str, int] = {}
        for place, word in enumerate(words(self.text)):
            position.setdefault(word, place)
        found = []
        for name, weights in zip(self.tools, _rarities(self.tools), strict=True):
            met = [word for word in weights if word in position]
            if sum(weights[word] for word in met) > MENTION * sum(weights.values()):
                found.append((min(position[word] for word in met), name))
        return tuple(name for _, name in sorted(found))

    @cached_property
    def expected(self) -> tuple[OperationKind, ...]:
        """Operation kinds of the mentioned tools, in that order; of all tools where none is mentioned."""
        kind = dict(zip(self.tools, self.kinds, strict=True))
        return tuple(kind[name] for name in self.mentioned or self.tools)

    @cached_property
    def touched(self) -> frozenset[str]:
        """Mentioned tools, state entities that instruction or checks name, and the words of the checks, as
        `tool:name`, `state:name` and `check:word`."""
        checked = {word for check in self.checks for word in words(check) if not word.isdigit()}
        asked = checked | set(words(self.text))
        tools = {f"tool:{name}" for name in self.mentioned}
        state = {f"state:{name}" for name in self.state if asked & set(words(name))}
        return frozenset(tools | state | {f"check:{word}" for word in checked})


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


@lru_cache(maxsize=1024)
def _rarities(tools: tuple[str, ...]) -> tuple[dict[str, float], ...]:
    """Weights of the words of each tool's name: 1 over how many tools have the word."""
    named = [words(name) for name in tools]
    sharing = Counter(word for name in named for word in set(name))
    return tuple({word: 1 / sharing[word] for word in name} for name in named)


def words(text: str) -> list[str]:
    """Lower-case words and numbers; `snake_case` and `camelCase` names fall apart, plurals lose their s."""
    found = WORD.findall(CAMEL.sub(" ", text).lower())
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in found
    ]
