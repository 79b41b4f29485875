"""The frame of the baselines: when they learn, in what order, and what a second call in a step gives."""

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import pytest

from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.baselines.dapo import Dapo
from envsched.scheduling.baselines.result import Result
from envsched.scheduling.baselines.stepwise import Stepwise
from envsched.scheduling.scheduler import ScheduledTask

MakeGroup = Callable[..., GroupOutcome]
MakePool = Callable[..., list[NodeProfile]]


class Recorder(Stepwise):
    """Takes keys in order and writes down what it absorbs."""

    def __init__(self, nodes: Sequence[NodeProfile], seed: int) -> None:
        self.absorbed: list[list[tuple[str, int]]] = []
        super().__init__(nodes, seed)

    def choose(self, size: int, left: list[str], step: int, rng: np.random.Generator) -> list[ScheduledTask]:
        return [ScheduledTask(key, 0.0) for key in left[:size]]

    def absorb(self, results: Sequence[Result]) -> None:
        self.absorbed = [*self.absorbed, [(found.key, found.drawn_step) for found in results]]


def test_results_are_absorbed_step_by_step_in_one_order(group: MakeGroup, pool: MakePool) -> None:
    groups = [
        group("a/1", 1.0, step=0),
        group("a/0", 1.0, step=1),
        group("a/1", 0.0, step=1, drawn=0),
        group("gone/0", 0.0, step=1),
    ]
    for order in permutations(groups):
        recorder = Recorder(pool(a=3), 0)
        for one in order:
            recorder.observe([one])
        assert recorder.absorbed == []
        recorder.next_batch(1, 2)
        assert recorder.absorbed == [[("a/1", 0)], [("a/1", 0), ("a/0", 1)]]
        assert recorder.pending == []


def test_second_call_in_a_step_repeats_unless_there_are_rounds(pool: MakePool) -> None:
    once, more = Recorder(pool(a=4), 0), Dapo(pool(a=4), 0)
    assert once.next_batch(3, 5) == once.next_batch(3, 5)
    first, second = more.next_batch(3, 5).keys, more.next_batch(1, 5).keys
    assert sorted(first + second) == ["a/0", "a/1", "a/2", "a/3"]


def test_what_is_pending_survives_in_the_state(group: MakeGroup, pool: MakePool) -> None:
    recorder, other = Recorder(pool(a=2), 0), Recorder(pool(a=2), 0)
    recorder.observe([group("a/1", 0.5, 1.0)])
    state = recorder.state_dict()
    recorder.observe([group("a/0", 0.5)])
    other.load_state_dict(state)
    assert state["pending"] == [[0, 0, "a/1", [0.5, 1.0]]]
    assert other.lots() == [[Result(0, 0, "a/1", (0.5, 1.0))]]


def test_unknown_field_is_refused(pool: MakePool) -> None:
    recorder = Recorder(pool(a=2), 0)
    with pytest.raises(ValueError, match="Recorder state: unknown or missing fields: more"):
        recorder.load_state_dict(recorder.state_dict() | {"more": 1})
