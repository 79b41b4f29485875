"""Environments behind an OpenEnv server, over its WebSocket: one session an episode.

`environments.path` has the servers' base URLs, separated by commas. The server says which actions it takes
(`/schema`) and what it is (`/metadata`); every seed is a task. The raw reward is the sum of the rewards,
kept within [0, 1]. https://github.com/huggingface/OpenEnv, as of openenv-core 0.3.
"""

from __future__ import annotations

import json
import re
import urllib.request
from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Action, Episode, Observation, ToolCall
from envsched.environments.sources.plays import TASKS, as_text, raw_reward, seeded_task
from envsched.environments.sources.source import Loaded
from envsched.environments.sources.websocket import Connection
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

STEP = "step"
OWN = ("metadata",)
"""Fields of every action that are the protocol's and not the environment's."""


def load(settings: EnvironmentSettings) -> Loaded:
    """A task for every seed of every server; ValueError without one, or for one that does not answer."""
    if not settings.path:
        raise ValueError("environments.path: found nothing; expected URLs such as http://127.0.0.1:8000")
    nodes: list[Node] = []
    for url in (part.strip().rstrip("/") for part in settings.path.split(",")):
        schema, about = _get(f"{url}/schema")["action"], _get(f"{url}/metadata")
        name = re.sub(r"[^\w.-]+", "-", str(about["name"])).strip("-") or "openenv"
        tool = ToolSpec(STEP, "Take the next action.", _parameters(schema), kind="update")
        environment = EnvironmentSpec(
            "openenv", name, str(about.get("description", "")), (tool,), program={"url": url}
        )
        nodes += [
            Node(environment, seeded_task(name, seed)) for seed in range(max(TASKS, settings.limit or 0))
        ]
    return Loaded(tuple(nodes))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play in a session of its own."""
    return OpenEnvEpisode(environment, task.program["seed"], reward == "binary")


class OpenEnvEpisode:
    """One session."""

    def __init__(self, environment: EnvironmentSpec, seed: int, binary: bool) -> None:
        self.tool = environment.tool(STEP)
        self.seed = seed
        self.binary = binary
        self.total = 0.0
        self.connection = Connection(environment.program["url"].replace("http", "ws", 1) + "/ws")

    def reset(self) -> Observation:
        """What the environment shows first."""
        kind, data = self._ask("reset", {"seed": self.seed})
        if kind == "error":
            raise RuntimeError(f"OpenEnv: {data.get('message')}")
        return Observation(as_text(data["observation"]), role="user")

    def act(self, action: Action) -> Observation:
        """One step. An action that the server does not take is answered, words end the episode."""
        if not isinstance(action, ToolCall):
            return self._end("", "finish")
        if action.name != STEP:
            return Observation(f"error: no tool {action.name!r}", kind="error")
        kind, data = self._ask("step", dict(action.arguments))
        if kind == "error":
            return Observation(f"error: {data.get('message')}", kind="error")
        self.total += float(data.get("reward") or 0.0)
        if data.get("done"):
            return self._end(as_text(data["observation"]), "update")
        return Observation(as_text(data["observation"]), kind="update")

    def verify(self) -> float:
        """Sum of the rewards so far, within [0, 1]; whether it is 1 when the reward is binary."""
        return raw_reward(self.total, self.binary)

    def _end(self, text: str, kind: Any) -> Observation:
        self.connection.close()
        return Observation(text, reward=self.verify(), terminated=True, kind=kind)

    def _ask(self, kind: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        answer = json.loads(self.connection.ask(json.dumps({"type": kind, "data": data})))
        return str(answer["type"]), dict(answer["data"])


def _parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an action without the protocol's own fields."""
    properties = {name: part for name, part in schema.get("properties", {}).items() if name not in OWN}
    required = [name for name in schema.get("required", []) if name not in OWN]
    kept = {"type": "object", "properties": properties, "required": required}
    return {**kept, **({"$defs": schema["$defs"]} if "$defs" in schema else {})}


def _get(url: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return dict(json.loads(answer.read()))
    except (OSError, ValueError) as error:
        raise ValueError(f"environments.path: {url}: {error}; expected a running OpenEnv server") from None
