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
from dataclasses import asdict, dataclass, replace
from itertools import count

from envsched.environments.episode import Observation
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
        """Of the last call of `collect`."""

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
        began = time.perf_counter()
        self.timings = Timings()
        version = self.engine.version
        groups = [Group(n.key, [Rollout(n.key, s, version) for s in range(group_size)]) for n in nodes]
        queue = deque(
            (node, rollout) for node, group in zip(nodes, groups, strict=True) for rollout in group.rollouts
        )
        play = _Play(self, sampling, seed, step)
        while queue or play.live:
            free = min(self.limits.concurrency - len(play.live), len(queue))
            ended = play.start([queue.popleft() for _ in range(free)]) + play.advance()
            if ended:
                progress(ended)
        spent = self.timings
        spent.other = time.perf_counter() - began - spent.generation - spent.environment
        return groups


@dataclass
class _Live:
    """An episode under way."""

    handle: EpisodeHandle
    rollout: Rollout
    began: float


class _Play:
    """The episodes under way in one call of `collect`, by the number of their requests to the engine."""

    def __init__(self, collector: Collector, sampling: Sampling, seed: int, step: int) -> None:
        self.engine = collector.engine
        self.chat = collector.chat
        self.pool = collector.pool
        self.limits = collector.limits
        self.timings = collector.timings
        self.sampling = sampling
        self.seed = seed
        self.step = step
        self.live: dict[int, _Live] = {}
        self._numbers = count()

    def start(self, fresh: Sequence[tuple[Node, Rollout]]) -> int:
        """Begin episodes; how many ended at once."""
        if not fresh:
            return 0
        with self.timings.spend("environment"):
            # All rollouts of a group play the same instance of the task.
            opened = self.pool.reset([(n, derive_seed(self.seed, self.step, n.key)) for n, _ in fresh])
        before = len(self.live) + len(fresh)
        for (node, rollout), (handle, observation) in zip(fresh, opened, strict=True):
            number = next(self._numbers)
            self.live[number] = _Live(handle, rollout, time.perf_counter())
            if observation.terminated:
                self._end(number, observation)
            else:
                self._continue(number, self.chat.start(node, observation))
        return before - len(self.live)

    def advance(self) -> int:
        """Generate a little and carry finished messages into their environments; how many episodes ended."""
        if not self.live:
            return 0
        with self.timings.spend("generation"):
            completions = self.engine.step()
        before = len(self.live)
        actions = []
        for number, completion in completions:
            rollout = self.live[number].rollout
            _append(rollout, completion.token_ids, completion.logprobs)
            rollout.turns += 1
            action = self.chat.action(completion.token_ids)
            if isinstance(action, Malformed):
                self._observe(number, completion, Observation(action.reason, kind="error"))
            else:
                actions.append((number, completion, action))
        if actions:
            with self.timings.spend("environment"):
                answers = self.pool.act([(self.live[number].handle, action) for number, _, action in actions])
            for (number, completion, _), answer in zip(actions, answers, strict=True):
                self._observe(number, completion, answer)
        return before - len(self.live)

    def _observe(self, number: int, completion: Completion, observation: Observation) -> None:
        """Take in what the environment answered to a message: go on, or end the episode."""
        rollout = self.live[number].rollout
        rollout.trace.append(observation.kind)
        rollout.calls += observation.role == "tool"
        if observation.terminated:
            self._end(number, observation)
        elif rollout.turns >= self.limits.max_turns:
            self._truncate(number)
        else:
            self._continue(number, self.chat.follow(observation, completion.finished))

    def _continue(self, number: int, token_ids: Sequence[int]) -> None:
        """Let the agent read these tokens and write its next message, if the context has room for both."""
        rollout = self.live[number].rollout
        room = self.limits.context_tokens - len(rollout.token_ids) - len(token_ids)
        if room < 1 and not rollout.token_ids:
            too_long = f"the prompt has {len(token_ids)} tokens, the context {self.limits.context_tokens}"
            self._end(number, Observation("", errored=True, error=too_long))
            return
        if room < 1:
            self._truncate(number)
            return
        _append(rollout, token_ids)
        sampling = replace(self.sampling, max_tokens=min(self.sampling.max_tokens, room))
        seed = derive_seed(self.seed, self.step, rollout.key, rollout.sample, rollout.turns)
        self.engine.submit(number, rollout.token_ids.copy(), sampling, seed)

    def _truncate(self, number: int) -> None:
        """Cut an episode, which earns nothing: its task was not finished."""
        self.live[number].rollout.truncated = True
        self._end(number, Observation(""))

    def _end(self, number: int, observation: Observation) -> None:
        """Close an episode."""
        episode = self.live.pop(number)
        rollout = episode.rollout
        rollout.reward = observation.reward
        rollout.errored = observation.errored
        rollout.error = observation.error
        rollout.seconds = time.perf_counter() - episode.began
        self.pool.close([episode.handle])


def _append(rollout: Rollout, token_ids: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
    """Add tokens to the conversation; those with log-probabilities were generated."""
    rollout.token_ids += token_ids
    rollout.generated += [logprobs is not None] * len(token_ids)
    rollout.logprobs += logprobs if logprobs is not None else [0.0] * len(token_ids)
