"""Environments behind a server that speaks OpenEnv's protocol, played in workers over loopback.

The server here is the smallest that does; where the package is installed, its own server is tested as well.
"""

import importlib.util
import json
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import load_registry

NUMBER = {"type": "integer"}
SCHEMA = {
    "type": "object",
    "properties": {"number": NUMBER, "metadata": {"type": "object"}},
    "required": ["number"],
}
LONG = "x" * 200_000


def plain_app() -> FastAPI:
    """A guessing game by hand: 0.5 for the second guess of a kind, 1 for the right one."""
    app = FastAPI()

    @app.get("/schema")
    def schema() -> dict[str, Any]:
        return {"action": SCHEMA, "observation": {}, "state": {}}

    @app.get("/metadata")
    def metadata() -> dict[str, Any]:
        return {"name": "Guess / a number", "description": "A game."}

    @app.websocket("/ws")
    async def session(websocket: WebSocket) -> None:
        await websocket.accept()
        number = -1
        try:
            while True:
                message = json.loads(await websocket.receive_text())
                data, kind = message["data"], "observation"
                if message["type"] == "reset":
                    number = random.Random(data["seed"]).randrange(10)
                    answer: dict[str, Any] = {
                        "observation": {"text": "Guess!"},
                        "reward": None,
                        "done": False,
                    }
                elif data.get("number") == 99:
                    await websocket.close()
                    return
                elif not isinstance(data.get("number"), int):
                    kind, answer = (
                        "error",
                        {"message": "number: an integer, please", "code": "VALIDATION_ERROR"},
                    )
                else:
                    right = data["number"] == number
                    text = LONG if data["number"] == 50 else "right" if right else "wrong"
                    answer = {"observation": {"text": text}, "reward": float(right), "done": right}
                await websocket.send_text(json.dumps({"type": kind, "data": answer}))
        except WebSocketDisconnect:
            pass

    return app


def packaged_app() -> Any:
    """The same game on the package's own server."""
    from openenv.core.env_server import create_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action as OpenAction
    from openenv.core.env_server.types import Observation as OpenObservation
    from openenv.core.env_server.types import State
    from pydantic import create_model

    guess = create_model("Guess", __base__=OpenAction, number=(int, ...))
    seen = create_model("Seen", __base__=OpenObservation, text=(str, ""))

    class Game(Environment):  # type: ignore[misc,type-arg]
        SUPPORTS_CONCURRENT_SESSIONS = True

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Any:
            self.number = random.Random(seed).randrange(10)
            return seen(text="Guess!")

        def step(self, action: Any, timeout_s: float | None = None, **_: Any) -> Any:
            right = action.number == self.number
            return seen(text="right" if right else "wrong", reward=float(right), done=right)

        @property
        def state(self) -> State:
            return State()

    return create_app(Game, guess, seen, env_name="guess", max_concurrent_envs=64)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)  # who connects early waits
        port = listening.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(plain_app()) as found:
        yield found


def settings(url: str | None, **changes: Any) -> EnvironmentSettings:
    return EnvironmentSettings.model_validate(
        {"source": "openenv", "path": url, "reward": "graded", "call_seconds": 5.0, **changes}
    )


def play(options: EnvironmentSettings, actions: list[Action]) -> list[Observation]:
    """All observations of the first task, until it ends."""
    node = load_registry(options).nodes[0]
    with EpisodePool(options) as pool:
        [(handle, first)] = pool.reset([(node, 7)])
        seen = [first]
        for action in actions:
            if seen[-1].terminated:
                break
            seen += pool.act([(handle, action)])
    return seen


def guess(number: Any) -> ToolCall:
    return ToolCall("step", {"number": number})


APPS = [
    "plain",
    pytest.param(
        "packaged",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("openenv") is None, reason="openenv-core is not installed"
        ),
    ),
]


@pytest.mark.parametrize("app", APPS)
def test_many_sessions_side_by_side(app: str) -> None:
    with serving(plain_app() if app == "plain" else packaged_app()) as url:
        options = settings(url, workers=2)
        nodes = load_registry(options).nodes[:8]
        assert nodes[0].environment.tools[0].parameters["required"] == ["number"]
        assert "metadata" not in nodes[0].environment.tools[0].parameters["properties"]
        with EpisodePool(options) as pool:
            opened = pool.reset([(node, 0) for node in nodes])
            assert {first.text for _, first in opened} == {'{"text": "Guess!"}'}
            rewards = {handle: 0.0 for handle, _ in opened}
            playing = [handle for handle, _ in opened]
            [refused] = pool.act([(playing[0], guess("x"))])
            assert refused.kind == "error"
            for number in range(10):
                answers = pool.act([(handle, guess(number)) for handle in playing])
                for handle, answer in zip(playing, answers, strict=True):
                    assert not answer.errored, answer.error
                    rewards[handle] = answer.reward
                playing = [h for h, answer in zip(playing, answers, strict=True) if not answer.terminated]
        assert not playing
        assert set(rewards.values()) == {1.0}


def test_what_the_server_is_becomes_the_environment(url: str) -> None:
    registry = load_registry(settings(url))
    [environment] = registry.environments
    assert (environment.name, environment.summary) == ("Guess-a-number", "A game.")
    assert len(registry.nodes) == 100
    assert registry.version == load_registry(settings(url)).version


def test_the_seed_of_the_task_decides(url: str) -> None:
    assert play(settings(url), [guess(n) for n in range(10)]) == play(
        settings(url), [guess(n) for n in range(10)]
    )


def test_words_end_a_play_and_wrong_calls_are_answered(url: str) -> None:
    seen = play(settings(url), [ToolCall("jump", {}), guess("x"), Say("I give up.")])
    assert [answer.kind for answer in seen[1:]] == ["error", "error", "finish"]
    assert "an integer, please" in seen[2].text
    assert (seen[-1].terminated, seen[-1].reward, seen[-1].errored) == (True, 0.0, False)


def test_long_answers_come_whole(url: str) -> None:
    seen = play(settings(url, observation_chars=300_000), [guess(50)])
    assert LONG in seen[-1].text


def test_a_server_that_hangs_up_fails_the_rollout_alone(url: str) -> None:
    seen = play(settings(url), [guess(99)])
    assert seen[-1].errored
    assert "closed the connection" in seen[-1].error


def test_a_server_that_is_gone_is_told(url: str) -> None:
    with pytest.raises(ValueError, match="expected a running OpenEnv server"):
        load_registry(settings("http://127.0.0.1:9"))
    with pytest.raises(ValueError, match=r"environments\.path: found nothing"):
        load_registry(settings(None))


def test_other_sources_have_no_network(url: str, make_node: Any) -> None:
    code = f"""
import socket

class Calls:
    def calls(self):
        return socket.create_connection(("127.0.0.1", {url.rsplit(":", 1)[1]}))
"""
    with EpisodePool(EnvironmentSettings()) as pool:
        [(handle, _)] = pool.reset([(make_node(code), 0)])
        [answer] = pool.act([(handle, ToolCall("calls", {}))])
    assert answer.errored
    assert "is not allowed" in answer.error or "PermissionError" in answer.error
