"""A worker process: runs episodes of code nobody vouches for, and answers over a pipe.

Commands (`wire.Command`) come in frames of many; each of the last five kinds is answered by one observation:

    environment DIGEST DATA, task DIGEST DATA, forget DIGEST, drop EPISODE,
    reset EPISODE ENVIRONMENT TASK SEED, call EPISODE TOOL ARGUMENTS, say EPISODE TEXT, hear EPISODE TEXT,
    verify EPISODE
"""

import builtins
import copy
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from envsched.environments import determinism, episode, spec, wire
from envsched.environments.episode import Episode, Observation
from envsched.environments.isolation import integrity, limits
from envsched.environments.sources import class_episode
from envsched.environments.sources.class_episode import ClassEpisode
from envsched.environments.sources.source import source
from envsched.environments.spec import EnvironmentSpec, TaskSpec

CHUNK = 1 << 20
TAMPERED = 86
"""Exit status of a worker in which foreign code replaced what scores and reports episodes."""


class TimeLimit(BaseException):
    """The call took too long. Not an Exception, so that foreign code does not catch it by accident."""


class Worker:
    """The specs and episodes that live in this process."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.reward: str = options["reward"]
        self.seconds: float = options["call_seconds"]
        self.memory_mb: int = options["memory_mb"]
        self.observation_chars: int = options["observation_chars"]
        modules = (builtins, copy, json, class_episode, determinism, episode, integrity, spec, wire)
        self.integrity = integrity.Integrity([*modules, sys.modules[__name__]])
        self.environments: dict[str, EnvironmentSpec] = {}
        self.tasks: dict[str, TaskSpec] = {}
        self.episodes: dict[int, Episode] = {}

    def carry_out(self, command: wire.Command) -> Observation | None:
        """Do what one command says; an observation where it asks for one."""
        verb, operand = command[0], command[1]
        if verb == "environment":
            spec = self.environments[operand] = wire.decode_environment(command[2])
            source(spec.source)  # import it here, outside the time limit of a call
        elif verb == "task":
            self.tasks[operand] = wire.decode_task(command[2])
        elif verb == "forget":
            self.environments.pop(operand, None)
            self.tasks.pop(operand, None)
        elif verb == "drop":
            self.episodes.pop(operand, None)
        else:
            return self._answer(command)
        return None

    def _answer(self, command: wire.Command) -> Observation:
        verb, number = command[0], command[1]
        episode = self.episodes.get(number)
        if verb == "reset":
            observation = self._guard(lambda: self._reset(*command[1:]))
        elif episode is None:
            observation = failure("the episode was lost when its worker was replaced")
        elif verb == "verify":
            observation = self._guard(lambda: _verify(episode))
        else:
            observation = self._guard(lambda: episode.act(wire.command_action(command)))
        if self.integrity.broken():
            os._exit(TAMPERED)  # nothing that this process says can be believed any more
        if observation.terminated:
            self.episodes.pop(number, None)
        return observation

    def _reset(self, number: int, environment: str, task: str, seed: int) -> Observation:
        spec = self.environments[environment]
        episode = source(spec.source).open_episode(spec, self.tasks[task], seed, self.reward)
        self.episodes[number] = episode
        return episode.reset()

    def _guard(self, step: Callable[[], Observation]) -> Observation:
        """What `step` returns, cut to size; a failed episode's observation whatever else happens in it."""
        try:
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
            try:
                return _cut(step(), self.observation_chars)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except TimeLimit:
            return failure(f"time limit of {self.seconds} s")
        except MemoryError:
            return failure(f"memory limit of {self.memory_mb} MiB")
        except BaseException as error:  # the boundary to foreign code: SystemExit and the like end here too
            return failure(_describe(error))


def _verify(episode: Episode) -> Observation:
    reward = episode.verify()
    info = {"checks": episode.checked} if isinstance(episode, ClassEpisode) else {}
    return Observation("", "user", reward, terminated=True, kind="finish", info=info)


def failure(error: str) -> Observation:
    """The last observation of an episode that failed for a technical reason."""
    return Observation(f"error: {error}", terminated=True, kind="error", errored=True, error=error)


def _describe(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = " ".join(str(error).split())[:300]
    except Exception:  # a foreign exception's __str__ can do anything
        text = ""
    return _encodable(f"{name}: {text}" if text else name)


def _encodable(text: str) -> str:
    """Without halves of surrogate pairs, which no tokenizer takes."""
    return text.encode(errors="replace").decode()


def _cut(observation: Observation, chars: int) -> Observation:
    text = observation.text
    if len(text) > chars:
        text = f"{text[:chars]} [cut: {len(text)} characters in all]"
    text = _encodable(text)
    if text == observation.text:
        return observation
    return Observation(**{**vars(observation), "text": text})


def _raise_time_limit(*_: object) -> NoReturn:
    raise TimeLimit


def serve(worker: Worker, source_fd: int, sink_fd: int) -> None:
    """Answer commands until the other end closes the pipe."""
    process = os.getpid()
    buffer = bytearray()
    while chunk := os.read(source_fd, CHUNK):
        buffer += chunk
        for frame in wire.unpack(buffer):
            for command in frame:
                observation = worker.carry_out(command)
                if os.getpid() != process:
                    os._exit(0)  # a tool forked and this is its child
                if observation is not None:
                    _write(sink_fd, wire.pack(wire.encode_observation(observation)))


def _write(sink_fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink_fd, data) :]


def _prepare(options: dict[str, Any]) -> None:
    """Load what has to be loaded before the worker is confined."""
    for module in options["preload"]:
        import_module(module)
    if options["prepare"]:
        name, path = options["prepare"]
        prepared: Any = source(name)
        prepared.prepare(path)


def main() -> None:
    """Entry point: the limits are the first argument, as JSON."""
    options = json.loads(sys.argv[1])
    limits.leave_with_parent(options["parent"])
    signal.signal(signal.SIGALRM, _raise_time_limit)
    source_fd, sink_fd = limits.take_pipes()
    try:
        _prepare(options)
    except Exception as error:  # of packages and environments: the parent says what it was
        _write(sink_fd, wire.pack({"failed": _describe(error)}))
        return
    enforced = limits.confine(options["memory_mb"], options["readable"], options["network"])
    _write(sink_fd, wire.pack(vars(enforced)))
    serve(Worker(options), source_fd, sink_fd)


if __name__ == "__main__":
    main()
