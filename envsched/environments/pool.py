"""Many episodes at once, in isolated worker processes.

    with EpisodePool(settings.environments) as pool:
        (handle, observation), *_ = pool.reset([(node, seed)])
        [observation] = pool.act([(handle, ToolCall("get_user", {"name": "Ada"}))])

A call that raises, hangs, floods, forks or exits ends its own episode with `errored` set, and no other.
"""

import select
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from envsched.config import EnvironmentSettings, SettingsError
from envsched.environments import wire
from envsched.environments.episode import Action, Observation
from envsched.environments.slot import PlayedEpisode, Slot, Step, reset_command
from envsched.environments.sources.source import NETWORKED, VOUCHED_FOR
from envsched.environments.spec import Node


@dataclass(frozen=True)
class EpisodeHandle:
    """Names a running episode."""

    number: int
    key: str
    """Its node's key."""


class EpisodePool:
    """Worker processes and the episodes that live in them. Use it as a context manager."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        self.settings = settings
        self._slots: list[Slot] = []
        self._episodes: dict[int, PlayedEpisode] = {}
        self._started = 0

    def __enter__(self) -> Self:
        try:
            while len(self._slots) < self.settings.workers:
                self._slots.append(Slot(self.settings))
            self._refuse_unconfined()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def unenforced(self) -> list[str]:
        """What only Python, and not the kernel, keeps environment code from, in words."""
        return self._slots[0].process.enforced.missing if self._slots else []

    @property
    def restarts(self) -> int:
        """How many workers had to be replaced so far."""
        return sum(slot.restarts for slot in self._slots)

    @property
    def pids(self) -> list[int]:
        """Process ids of the present workers."""
        return [slot.process.pid for slot in self._slots]

    def reset(self, requests: Sequence[tuple[Node, int]]) -> list[tuple[EpisodeHandle, Observation]]:
        """Start one episode for each node and seed. The seed decides everything random in the episode.

        An episode that cannot start has a first observation that is terminated and errored.
        """
        if not self._slots:
            raise RuntimeError("the pool has no workers: enter its context first")
        loads = {id(slot): len(slot.episodes) for slot in self._slots}
        steps = []
        for position, (node, seed) in enumerate(requests):
            slot = min(self._slots, key=lambda slot: loads[id(slot)])
            loads[id(slot)] += 1
            episode = PlayedEpisode(self._started, node, seed, slot)
            self._started += 1
            self._episodes[episode.number] = episode
            steps.append(Step(episode, reset_command(episode), position=position))
        observations = self._carry_out(steps)
        handles = [EpisodeHandle(step.episode.number, step.episode.node.key) for step in steps]
        return list(zip(handles, observations, strict=True))

    def act(self, actions: Sequence[tuple[EpisodeHandle, Action]]) -> list[Observation]:
        """Carry out at most one action an episode. ValueError if one has ended or comes twice."""
        episodes = [self._episode(handle) for handle, _ in actions]
        if len({episode.number for episode in episodes}) < len(episodes):
            raise ValueError("an episode takes one action at a time; found one twice")
        results: dict[int, Observation] = {}
        steps = []
        for position, (episode, (_, action)) in enumerate(zip(episodes, actions, strict=True)):
            if episode.over is None:
                command = wire.action_command(episode.number, action)
                steps.append(Step(episode, command, action, position))
            elif episode.told:
                raise ValueError(f"episode {episode.number} of {episode.node.key} has ended")
            else:
                results[position] = episode.over
        return self._carry_out(steps, results)

    def finish(self, handles: Sequence[EpisodeHandle]) -> list[float]:
        """Raw outcome reward of the present state of each episode, which thereby ends; 0 if it errored."""
        return [verdict.reward for verdict in self.verdicts(handles)]

    def verdicts(self, handles: Sequence[EpisodeHandle]) -> list[Observation]:
        """The last observation of each episode, which ends if it has not: its reward, and `info` about it.

        `info["checks"]`, where the source tells: `true`, `false` or the error of each check.
        """
        episodes = [self._episode(handle) for handle in handles]
        alive = [episode for episode in episodes if episode.over is None]
        self._carry_out([Step(e, ["verify", e.number], position=i) for i, e in enumerate(alive)])
        return [episode.over for episode in episodes if episode.over]

    def close(self, handles: Iterable[EpisodeHandle]) -> None:
        """Forget episodes, ended or not."""
        for handle in handles:
            episode = self._episodes.pop(handle.number, None)
            if episode is not None:
                episode.slot.drop(episode)

    def _episode(self, handle: EpisodeHandle) -> PlayedEpisode:
        try:
            return self._episodes[handle.number]
        except KeyError:
            raise ValueError(f"episode {handle.number} of {handle.key} is closed") from None

    def _carry_out(
        self, steps: list[Step], results: dict[int, Observation] | None = None
    ) -> list[Observation]:
        """Observations of the steps, and those already in `results`, in order of position."""
        results = {} if results is None else results
        if not self._slots:
            raise RuntimeError("the pool has no workers: use it inside its context")
        try:
            for slot in self._slots:
                _store(results, slot.begin(step for step in steps if step.episode.slot is slot))
            while busy := [slot for slot in self._slots if slot.pending]:
                ready = _wait(busy)
                for slot in busy:
                    _store(results, slot.collect(slot.process.output in ready))
        except BaseException:
            self._stop()  # interrupted half-way, questions and answers would no longer match
            raise
        return [results[position] for position in sorted(results)]

    def _refuse_unconfined(self) -> None:
        foreign = self.settings.source not in (*VOUCHED_FOR, *NETWORKED)
        if self.unenforced and foreign and self.settings.unconfined == "refuse":
            raise SettingsError(
                f"environments.unconfined: found refuse, and this system cannot keep code of "
                f"{self.settings.source} from {' and from '.join(self.unenforced)}; "
                "run it in a container, or allow it with -S environments.unconfined=allow"
            )

    def _stop(self) -> None:
        for slot in self._slots:
            slot.close()
        self._slots.clear()


def _store(results: dict[int, Observation], answers: list[tuple[Step, Observation]]) -> None:
    for step, observation in answers:
        assert step.position is not None
        results[step.position] = observation
        step.episode.told = observation.terminated


def _wait(slots: list[Slot]) -> set[int]:
    """Outputs that can be read, as soon as there is one or a slot is overdue."""
    poll = select.poll()
    for slot in slots:
        poll.register(slot.process.output, select.POLLIN)
    seconds = min(slot.deadline for slot in slots) - time.monotonic()
    return {descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000 + 1)}
