"""Many episodes at once: each takes its next turn as soon as its last one is generated.

queue ─▶ reset ─▶ prompt ─▶ engine ─▶ message ─▶ environment ─▶ observation ─┐
                    ▲                                                       │
                    └────── not over: the conversation grows ◀── (user) ◀───┘
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count

from envsched.environments.episode import Heard, Observation
from envsched.environments.pool import EpisodeHandle, EpisodePool
from envsched.environments.spec import Node
from envsched.rollouts.chat import Chat, Malformed, parse_reply
from envsched.rollouts.engine import Engine, Sampling
from envsched.rollouts.rollout import Group, Rollout
from envsched.rollouts.users import Conversations, NoUser, Turn, User, UserError


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
    user: float = 0.0
    """Waiting for simulated users while nothing was generated."""
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

    def __init__(
        self, engine: Engine, chat: Chat, pool: EpisodePool, limits: Limits, user: User | None = None
    ) -> None:
        self.engine = engine
        self.chat = chat
        self.pool = pool
        self.limits = limits
        self.user = user or NoUser()
        self.timings = Timings()
        """Of the last call of `collect`."""

    def collect(
        self,
        nodes: Sequence[Node],
        group_size: int | Sequence[int],
        sampling: Sampling,
        seed: int,
        step: int,
        progress: Callable[[int], object] = lambda done: None,
    ) -> list[Group]:
        """`group_size` rollouts of every node, in the order of `nodes`; a number for each if there are many.

        Everything random follows from (`seed`, `step`, key, sample, turn). `progress` is told how many
        rollouts have ended since it was last called.
        """
        version = self.engine.version
        sizes = [group_size] * len(nodes) if isinstance(group_size, int) else group_size
        groups = [
            Group(node.key, [Rollout(node.key, sample, version) for sample in range(size)])
            for node, size in zip(nodes, sizes, strict=True)
        ]
        pairs = [(n, rollout) for n, group in zip(nodes, groups, strict=True) for rollout in group.rollouts]
        self.play(pairs, sampling, seed, step, lambda ended: progress(len(ended)))
        return groups

    def play(
        self,
        pairs: Sequence[tuple[Node, Rollout]],
        sampling: Sampling,
        seed: int,
        step: int,
        ended: Callable[[list[Rollout]], object],
    ) -> None:
        """Fill in the rollouts of these nodes; `ended` is told which have ended, as they do."""
        began = time.perf_counter()
        self.timings = Timings()
        queue = deque(pairs)
        play = _Play(self, sampling, seed, step)
        try:
            while queue or play.live:
                free = min(self.limits.concurrency - len(play.live), len(queue))
                play.start([queue.popleft() for _ in range(free)])
                play.advance()
                if play.ended:
                    ended(play.ended)
                    play.ended = []
        finally:
            play.conversations.close()
        spent = self.timings
        spent.other = time.perf_counter() - began - spent.generation - spent.environment - spent.user


@dataclass
class _Live:
    """An episode under way."""

    handle: EpisodeHandle
    node: Node
    rollout: Rollout
    began: float
    turns: list[Turn] = field(default_factory=list)
    """What the simulated user has heard and said."""
    finished: bool = True
    """Whether the last message ended with its stop token."""


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
        self.ended: list[Rollout] = []
        """Since somebody last looked."""
        self.writing = 0
        """Requests in the engine."""
        self.conversations = Conversations(collector.user, collector.limits.concurrency)
        self._numbers = count()

    def start(self, fresh: Sequence[tuple[Node, Rollout]]) -> None:
        """Begin episodes."""
        if not fresh:
            return
        with self.timings.spend("environment"):
            # All rollouts of a group play the same instance of the task.
            opened = self.pool.reset([(n, derive_seed(self.seed, self.step, n.key)) for n, _ in fresh])
        for (node, rollout), (handle, observation) in zip(fresh, opened, strict=True):
            number = next(self._numbers)
            self.live[number] = _Live(handle, node, rollout, time.perf_counter())
            self._take_in(number, observation)

    def advance(self) -> None:
        """Generate a little, and carry finished messages and users' replies into their environments."""
        if self.writing:
            self._generate()
        if self.conversations:
            self._hear()

    def _generate(self) -> None:
        with self.timings.spend("generation"):
            completions = self.engine.step()
        self.writing -= len(completions)
        actions = []
        for number, completion in completions:
            episode = self.live[number]
            _append(episode.rollout, completion.token_ids, completion.logprobs)
            episode.rollout.turns += 1
            episode.finished = completion.finished
            text = self.chat.text(completion.token_ids)
            episode.rollout.transcript.append(("assistant", text))
            action = parse_reply(text)
            if isinstance(action, Malformed):
                self._observe(number, Observation(action.reason, kind="error"))
            else:
                actions.append((number, action))
        if actions:
            with self.timings.spend("environment"):
                answers = self.pool.act([(self.live[number].handle, action) for number, action in actions])
            for (number, _), answer in zip(actions, answers, strict=True):
                self._observe(number, answer)

    def _hear(self) -> None:
        """Take what simulated users have replied into their episodes."""
        with self.timings.spend("user"):
            replies = self.conversations.replies(block=not self.writing)
        heard = []
        for number, reply in replies:
            if isinstance(reply, UserError):
                self._end(number, Observation("", errored=True, error=f"simulated user: {reply}"))
            else:
                self.live[number].turns.append(Turn("user", reply))
                heard.append((number, Heard(reply)))
        if heard:
            with self.timings.spend("environment"):
                answers = self.pool.act([(self.live[number].handle, action) for number, action in heard])
            for (number, _), answer in zip(heard, answers, strict=True):
                self._take_in(number, answer)

    def _observe(self, number: int, observation: Observation) -> None:
        """Take in what the environment answered to a message."""
        rollout = self.live[number].rollout
        rollout.trace.append(observation.kind)
        rollout.calls += observation.role == "tool"
        self._take_in(number, observation)

    def _take_in(self, number: int, observation: Observation) -> None:
        """Go on after an observation: ask the user, let the agent write, or end the episode."""
        episode = self.live[number]
        if observation.terminated:
            self._end(number, observation)
            return
        if observation.awaits_user:
            episode.turns.append(Turn("agent", observation.text))
            prompt = episode.node.task.program["user"]["prompt"]
            seed = self._seed(episode.rollout, len(episode.turns))
            self.conversations.ask(number, prompt, episode.turns, seed)
            return
        episode.rollout.transcript.append((observation.role, observation.text))
        if not episode.rollout.token_ids:
            self._continue(number, self.chat.start(episode.node, observation))
        elif episode.rollout.turns >= self.limits.max_turns:
            self._truncate(number)
        else:
            self._continue(number, self.chat.follow(observation, episode.finished))

    def _seed(self, rollout: Rollout, turn: int) -> int:
        return derive_seed(self.seed, self.step, rollout.key, rollout.sample, turn)

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
        seed = self._seed(rollout, rollout.turns)
        self.engine.submit(number, rollout.token_ids.copy(), sampling, seed)
        self.writing += 1

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
        rollout.info = observation.info
        rollout.seconds = time.perf_counter() - episode.began
        self.ended.append(rollout)
        self.pool.close([episode.handle])


def _append(rollout: Rollout, token_ids: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
    """Add tokens to the conversation; those with log-probabilities were generated."""
    rollout.token_ids += token_ids
    rollout.generated += [logprobs is not None] * len(token_ids)
    rollout.logprobs += logprobs if logprobs is not None else [0.0] * len(token_ids)
