"""Many episodes at once: each takes its next turn as soon as its last one is generated.

    queue ─▶ reset ─▶ prompt ─▶ engine ─▶ message ─▶ environment ─▶ observation ─┐
                        ▲                                                       │
                        └────────────── not over: the conversation grows ◀──────┘
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from envsched.environments.episode import Action, Observation
from envsched.environments.pool import EpisodeHandle, EpisodePool
from envsched.environments.spec import Node
from envsched.rollouts.chat import Chat, Malformed
from envsched.rollouts.engine import Completion, Engine, Sampling
from envsched.rollouts.rollout import Group, Rollout


@dataclass(frozen=True)
class Limits:
    """When an episode is cut, and how many run at once."""

    max_turns: int
    context_tokens: int
    concurrency: int


@dataclass
class Timings:
    """Where the seconds of a collection went."""

    generation: float = 0.0
    environment: float = 0.0
    other: float = 0.0
    """Parsing, tokenising, bookkeeping."""

    def metrics(self) -> dict[str, float]:
        """The seconds under `seconds/…`."""
        return {f"seconds/{name}": value for name, value in asdict(self).items()}

    @contextmanager
    def spend(self, name: str) -> Iterator[None]:
        """Add the time inside to `name`."""
        start = time.perf_counter()
        yield
        setattr(self, name, getattr(self, name) + time.perf_counter() - start)


@dataclass
class _Live:
    """An episode under way."""

    handle: EpisodeHandle
    rollout: Rollout
    started: float


def derive_seed(*parts: str | int) -> int:
    """A 31-bit seed that depends on every part and on nothing else."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


class Collector:
    """Plays tasks with one engine in one pool of environments."""

    def __init__(self, engine: Engine, chat: Chat, pool: EpisodePool, limits: Limits) -> None:
        self.engine = engine
        self.chat = chat
        self.pool = pool
        self.limits = limits
        self.timings = Timings()

    def collect(
        self,
        nodes: Sequence[Node],
        group_size: int,
        sampling: Sampling,
        seed: int,
        step: int,
        progress: Callable[[int], object] = lambda done: None,
    ) -> list[Group]:
        """`group_size` rollouts of every node, in the order of `nodes`.

        Everything random follows from (`seed`, `step`, key, sample, turn). `progress` is told how many
        rollouts have ended since it was last called.
        """
        self.timings = Timings()
        queue = deque((node, sample) for node in nodes for sample in range(group_size))
        live: dict[int, _Live] = {}
        rollouts: dict[tuple[str, int], Rollout] = {}
        begun = time.perf_counter()
        while queue or live:
            self._start(queue, live, rollouts, sampling, seed, step)
            with self.timings.spend("generation"):
                completions = self.engine.step() if live else []
            ended = self._advance(completions, live, sampling, seed, step)
            if ended:
                progress(ended)
        spent = self.timings
        spent.other = time.perf_counter() - begun - spent.generation - spent.environment
        return [Group(n.key, [rollouts[n.key, s] for s in range(group_size)]) for n in nodes]

    def _start(
        self,
        queue: deque[tuple[Node, int]],
        live: dict[int, _Live],
        rollouts: dict[tuple[str, int], Rollout],
        sampling: Sampling,
        seed: int,
        step: int,
    ) -> None:
        """Fill the free places with new episodes."""
        free = min(self.limits.concurrency - len(live), len(queue))
        if free <= 0:
            return
        begun = [queue.popleft() for _ in range(free)]
        with self.timings.spend("environment"):
            # All rollouts of a group play the same instance of the task.
            opened = self.pool.reset([(node, derive_seed(seed, step, node.key)) for node, _ in begun])
        for (node, sample), (handle, observation) in zip(begun, opened, strict=True):
            rollout = Rollout(node.key, sample, policy_step=self.engine.version)
            rollouts[node.key, sample] = rollout
            request = len(rollouts) - 1
            live[request] = _Live(handle, rollout, time.perf_counter())
            if observation.terminated:
                self._end(request, live, observation)
                continue
            _append(rollout, self.chat.start(node, observation))
            self._submit(request, live, sampling, seed, step)

    def _advance(
        self,
        completions: Sequence[tuple[int, Completion]],
        live: dict[int, _Live],
        sampling: Sampling,
        seed: int,
        step: int,
    ) -> int:
        """Carry finished messages into their environments; how many episodes ended."""
        before = len(live)
        observations: list[tuple[int, bool, Observation]] = []
        actions: list[tuple[int, bool, Action]] = []
        for request, completion in completions:
            rollout = live[request].rollout
            _append(rollout, completion.token_ids, completion.logprobs)
            rollout.turns += 1
            action = self.chat.action(completion.token_ids)
            if isinstance(action, Malformed):
                refused = Observation(action.reason, kind="error")
                observations.append((request, completion.finished, refused))
            else:
                actions.append((request, completion.finished, action))
        if actions:
            with self.timings.spend("environment"):
                answers = self.pool.act([(live[request].handle, action) for request, _, action in actions])
            observations += [
                (request, finished, answer)
                for (request, finished, _), answer in zip(actions, answers, strict=True)
            ]
        for request, finished, observation in observations:
            self._observe(request, finished, observation, live, sampling, seed, step)
        return before - len(live)

    def _observe(
        self,
        request: int,
        finished: bool,
        observation: Observation,
        live: dict[int, _Live],
        sampling: Sampling,
        seed: int,
        step: int,
    ) -> None:
        """Take in what the environment answered and go on, or end the episode."""
        rollout = live[request].rollout
        rollout.trace.append(observation.kind)
        rollout.calls += observation.role == "tool"
        if observation.terminated:
            self._end(request, live, observation)
            return
        follow = self.chat.follow(observation, finished)
        room = self.limits.context_tokens - len(rollout.token_ids) - len(follow)
        if rollout.turns >= self.limits.max_turns or room < 1:
            rollout.truncated = True
            self._end(request, live, observation)
            return
        _append(rollout, follow)
        self._submit(request, live, sampling, seed, step)

    def _submit(
        self, request: int, live: dict[int, _Live], sampling: Sampling, seed: int, step: int
    ) -> None:
        rollout = live[request].rollout
        room = self.limits.context_tokens - len(rollout.token_ids)
        if room < 1:
            rollout.truncated = True
            too_long = f"the prompt has {len(rollout.token_ids)} tokens, the context {self.limits.context_tokens}"
            self._end(request, live, Observation(too_long, errored=True, error=too_long))
            return
        limited = Sampling(
            sampling.temperature, sampling.top_p, min(sampling.max_tokens, room), sampling.stop
        )
        turn_seed = derive_seed(seed, step, rollout.key, rollout.sample, rollout.turns)
        self.engine.submit(request, rollout.token_ids.copy(), limited, turn_seed)

    def _end(self, request: int, live: dict[int, _Live], observation: Observation) -> None:
        """Close an episode. A truncated one earns nothing: its task was not finished."""
        episode = live.pop(request)
        rollout = episode.rollout
        rollout.reward = observation.reward if observation.terminated else 0.0
        rollout.errored = observation.errored
        rollout.error = observation.error
        rollout.seconds = time.perf_counter() - episode.started
        self.pool.close([episode.handle])


def _append(rollout: Rollout, token_ids: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
    """Add tokens to the conversation; those with log-probabilities were generated."""
    rollout.token_ids += token_ids
    rollout.generated += [logprobs is not None] * len(token_ids)
    rollout.logprobs += logprobs if logprobs is not None else [0.0] * len(token_ids)
