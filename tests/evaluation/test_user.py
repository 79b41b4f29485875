"""A simulated user over a loopback endpoint: what it is asked, retries, what is kept and paid."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from envsched.config import UserSettings
from envsched.evaluation.user import EndpointUser
from envsched.rollouts.users import Turn, UserError

TURNS = (Turn("agent", "Hi!"), Turn("user", "I want a refund."), Turn("agent", "Why?"))


class Endpoint:
    """Answers requests with what is next in `answers`: a text, or a status to fail with."""

    def __init__(self, answers: list[str | int]) -> None:
        self.answers = answers
        self.questions: list[dict[str, Any]] = []
        self.url = ""


@contextmanager
def endpoint(*answers: str | int) -> Iterator[Endpoint]:
    state = Endpoint(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.questions.append({**question, "path": self.path, "key": self.headers["Authorization"]})
            answer = state.answers.pop(0)
            text = answer if isinstance(answer, str) else ""
            message = {"role": "assistant", "content": text}
            body = json.dumps(
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
                }
            ).encode()
            self.send_response(answer if isinstance(answer, int) else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield state
        finally:
            server.shutdown()


def settings(url: str, **changes: Any) -> UserSettings:
    return UserSettings(
        **{"endpoint": url, "model": "m", "retries": 2, "seconds": 20.0, "cache": None} | changes
    )


def test_the_user_is_asked_as_the_one_who_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    with endpoint("It broke.") as server:
        with EndpointUser(settings(server.url, key_variable="MY_KEY", temperature=0.5)) as user:
            assert user.reply("You are Ada.", TURNS, seed=7) == "It broke."
        [question] = server.questions
    assert question["messages"] == [
        {"role": "system", "content": "You are Ada."},
        {"role": "user", "content": "Hi!"},
        {"role": "assistant", "content": "I want a refund."},
        {"role": "user", "content": "Why?"},
    ]
    assert (question["model"], question["temperature"], question["seed"]) == ("m", 0.5, 7)
    assert (question["path"], question["key"]) == ("/v1/chat/completions", "Bearer secret")


def test_what_fails_is_tried_again() -> None:
    with endpoint(500, 429, "Yes.") as server, EndpointUser(settings(server.url)) as user:
        assert user.reply("", TURNS, seed=0) == "Yes."
        assert len(server.questions) == 3


def test_a_dead_endpoint_is_an_error_that_names_it() -> None:
    with endpoint(500, 500, 500) as server, EndpointUser(settings(server.url)) as user:
        with pytest.raises(UserError, match=f"{server.url}: InternalServerError"):
            user.reply("", TURNS, seed=0)
        assert user.cost == 0


def test_an_empty_reply_is_an_error() -> None:
    with (
        endpoint("") as server,
        EndpointUser(settings(server.url)) as user,
        pytest.raises(UserError, match="empty reply"),
    ):
        user.reply("", TURNS, seed=0)


def test_no_question_is_paid_twice(tmp_path: Path) -> None:
    cache = str(tmp_path / "new" / "cache.sqlite")
    with endpoint("Yes.", "No.") as server:
        options = settings(server.url, cache=cache, prompt_price=2.0, reply_price=8.0)
        with EndpointUser(options) as user:
            assert [user.reply("p", TURNS, 0) for _ in range(2)] == ["Yes.", "Yes."]
            assert user.reply("p", TURNS, 1) == "No."
            cost = pytest.approx((2000 * 2 + 20 * 8) / 1e6)
            spent = {"replies": 2, "prompt_tokens": 2000, "reply_tokens": 20, "cost": cost}
            assert user.spent() == spent
        with EndpointUser(options) as again:
            assert again.reply("p", TURNS, 0) == "Yes."
            assert (again.asked, again.cost) == (0, 0)
        assert len(server.questions) == 2
