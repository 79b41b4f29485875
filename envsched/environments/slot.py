"""One place in the pool: a worker process, the episodes that live in it, and how they survive its death."""

import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from envsched.config import EnvironmentSettings
from envsched.environments import wire
from envsched.environments.episode import Action, Observation
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, field_values
from envsched.environments.worker import failure
from envsched.environments.worker_process import WorkerLost, WorkerProcess

GRACE_SECONDS = 1.0
"""What a call may take beyond its limit, which the worker enforces itself, before the worker is killed."""
SPECS_KEPT = 1024
"""Environments and tasks a worker remembers; the least recently used are sent again when needed."""


@dataclass
class PlayedEpisode:
    """What the pool knows of an episode: enough to play it again up to the present."""

    number: int
    node: Node
    seed: int
    slot: "Slot"
    actions: list[Action] = field(default_factory=list)
    over: Observation | None = None
    """Its last observation, once it has ended."""
    told: bool = False
    """Whether the caller has seen that."""


@dataclass
class Step:
    """A command that awaits its answer."""

    episode: PlayedEpisode
    command: wire.Command
    action: Action | None = None
    position: int | None = None
    """Where the answer belongs in the caller's results; None when the step repeats an earlier one."""


class Slot:
    """Commands go in by `begin`, answers come out of `collect`, and a lost worker is replaced on the way."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        self.settings = settings
        self.process = WorkerProcess(settings)
        self.episodes: dict[int, PlayedEpisode] = {}
        self.restarts = 0
        self.pending: deque[Step] = deque()
        self.deadline = 0.0
        self._dropped: list[wire.Command] = []
        self._known: OrderedDict[str, None] = OrderedDict()

    def begin(self, steps: Iterable[Step]) -> list[tuple[Step, Observation]]:
        """Send steps to the worker; returns the steps that failed already."""
        self.pending.extend(steps)
        return self._send()

    def collect(self, readable: bool) -> list[tuple[Step, Observation]]:
        """Answers that have arrived; failures where the worker died or is overdue."""
        try:
            if not readable:
                if time.monotonic() > self.deadline:
                    raise WorkerLost(f"time limit of {self.settings.call_seconds} s")
                return []
            answers = [wire.decode_observation(data) for data in self.process.receive()]
        except WorkerLost as lost:
            return self._replace(str(lost), self.pending[0].episode if self.pending else None)
        if answers:
            self._extend_deadline()
        done = [(self.pending.popleft(), answer) for answer in answers]
        for step, answer in done:
            self._record(step, answer)
        told = [(step, answer) for step, answer in done if step.position is not None]
        try:
            self.process.left()
        except WorkerLost as lost:  # whoever comes after those that were answered well
            told += self._replace(str(lost), self.pending[0].episode if self.pending else None)
        return told

    def drop(self, episode: PlayedEpisode) -> None:
        """Forget an episode; the worker hears of it with the next commands."""
        if self.episodes.pop(episode.number, None):
            self._dropped.append(["drop", episode.number])

    def close(self) -> None:
        """End the worker."""
        self.process.kill()

    def _send(self, again: bool = False) -> list[tuple[Step, Observation]]:
        if not self.pending:
            return []
        commands = [*self._dropped]
        for step in self.pending:
            if step.command[0] == "reset":
                commands += self._introduce(step.episode.node.environment, "environment")
                commands += self._introduce(step.episode.node.task, "task")
            commands.append(step.command)
        self._dropped.clear()
        self._extend_deadline()
        try:
            self.process.send(commands, self.settings.call_seconds + GRACE_SECONDS)
        except WorkerLost as lost:
            if again:
                raise RuntimeError(f"a new environment worker took no commands: {lost}") from None
            return self._replace(str(lost), None)  # it had died before; nobody's step had begun
        return []

    def _introduce(self, spec: EnvironmentSpec | TaskSpec, verb: str) -> list[wire.Command]:
        """Commands after which the worker knows `spec`."""
        if spec.digest in self._known:
            self._known.move_to_end(spec.digest)
            return []
        self._known[spec.digest] = None
        commands: list[wire.Command] = [[verb, spec.digest, field_values(spec)]]
        if len(self._known) > SPECS_KEPT:
            commands.append(["forget", self._known.popitem(last=False)[0]])
        return commands

    def _extend_deadline(self) -> None:
        self.deadline = time.monotonic() + self.settings.call_seconds + GRACE_SECONDS

    def _record(self, step: Step, answer: Observation) -> None:
        episode = step.episode
        if answer.terminated:
            episode.over = episode.over or answer
            self.episodes.pop(episode.number, None)
        elif step.command[0] == "reset":
            self.episodes[episode.number] = episode
        elif step.action is not None and step.position is not None:
            episode.actions.append(step.action)

    def _replace(self, why: str, culprit: PlayedEpisode | None) -> list[tuple[Step, Observation]]:
        """Start a new worker, play the other episodes again, and go on; the culprit's step fails."""
        self.process.kill()
        self.process = WorkerProcess(self.settings)
        self.restarts += 1
        self._known.clear()
        self._dropped.clear()
        steps = [step for step in self.pending if step.position is not None]
        failed = []
        if culprit is not None:
            culprit.over = failure(why)
            self.episodes.pop(culprit.number, None)
            failed = [(step, culprit.over) for step in steps if step.episode is culprit]
        repeats = [step for episode in self.episodes.values() for step in _replay(episode)]
        self.pending = deque(repeats + [step for step in steps if step.episode is not culprit])
        return failed + self._send(again=culprit is None)


def reset_command(episode: PlayedEpisode) -> wire.Command:
    """The command that starts the episode."""
    node = episode.node
    return ["reset", episode.number, node.environment.digest, node.task.digest, episode.seed]


def _replay(episode: PlayedEpisode) -> Sequence[Step]:
    actions = [Step(episode, wire.action_command(episode.number, action)) for action in episode.actions]
    return [Step(episode, reset_command(episode)), *actions]
