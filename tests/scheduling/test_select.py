"""The greedy choice against one that computes every score anew."""

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.scheduling.select import Choice, Selection


@dataclass(frozen=True)
class Problem:
    scores: np.ndarray
    environment: np.ndarray
    quota: np.ndarray
    penalty: float
    similarity: np.ndarray

    def selection(self) -> Selection:
        return Selection(self.scores, self.environment, self.quota, self.penalty, self.similar)

    def similar(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Only nodes that resemble it at all."""
        near = np.flatnonzero(self.similarity[node])
        return near, self.similarity[node, near]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Scores, penalties and similarities are multiples of 1/4, so that sums are exact and often equal."""
    count, environments = draw(st.integers(1, 10)), draw(st.integers(1, 4))
    quarters = st.integers(0, 8).map(lambda n: n / 4)
    score = st.one_of(quarters, st.just(-math.inf))
    similarity = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            similarity[i, j] = similarity[j, i] = draw(st.integers(0, 4)) / 4
    return Problem(
        np.array(draw(st.lists(score, min_size=count, max_size=count))),
        np.array(draw(st.lists(st.integers(0, environments - 1), min_size=count, max_size=count))),
        np.array(draw(st.lists(st.integers(0, 3), min_size=environments, max_size=environments))),
        draw(quarters),
        similarity + np.eye(count),
    )


def closest(problem: Problem, chosen: list[int], node: int) -> tuple[float, int]:
    """Largest similarity to what was chosen, and the first node that has it; -1 for none."""
    best, nearest = 0.0, -1
    for other in chosen:
        if problem.similarity[other, node] > best:
            best, nearest = problem.similarity[other, node], other
    return best, nearest


def slow(problem: Problem, chosen: list[int]) -> dict[int, float]:
    """Score of every node that may still be chosen."""
    used = [
        sum(problem.environment[node] == number for node in chosen) for number in range(len(problem.quota))
    ]
    return {
        node: score - problem.penalty * closest(problem, chosen, node)[0]
        for node, score in enumerate(problem.scores.tolist())
        if node not in chosen
        and math.isfinite(score)
        and used[problem.environment[node]] < problem.quota[problem.environment[node]]
    }


def explained(problem: Problem, chosen: list[int], node: int) -> Choice:
    similarity, nearest = closest(problem, chosen, node)
    taken = sum(problem.environment[other] == problem.environment[node] for other in chosen) + 1
    return Choice(node, problem.penalty * similarity, nearest, similarity, taken)


@given(problems())
@settings(deadline=None, max_examples=300, derandomize=True)
def test_greedy_equals_a_choice_that_recomputes_everything(problem: Problem) -> None:
    selection = problem.selection()
    chosen: list[int] = []
    expected: list[Choice] = []
    while left := slow(problem, chosen):
        best = max(left.values())
        node = next(node for node, score in left.items() if score == best)
        assert selection.best() == node
        assert np.flatnonzero(selection.allowed()).tolist() == list(left)
        expected.append(explained(problem, chosen, node))
        selection.take(node)
        chosen.append(node)
    assert selection.best() == -1
    assert not selection.allowed().any()
    assert selection.choices == expected


@given(problems(), st.data())
@settings(deadline=None, max_examples=200, derandomize=True)
def test_nodes_taken_out_of_turn_count_like_others(problem: Problem, data: st.DataObject) -> None:
    selection = problem.selection()
    chosen: list[int] = []
    while left := slow(problem, chosen):
        node = data.draw(st.sampled_from(sorted(left)))
        assert left[selection.best()] == max(left.values())
        selection.take(node)
        chosen.append(node)
    assert [choice.node for choice in selection.choices] == chosen
    assert (np.bincount(problem.environment[chosen], minlength=len(problem.quota)) <= problem.quota).all()


def test_what_is_given_is_left_as_it_was() -> None:
    scores, quota = np.array([1.0, 2.0]), np.array([2])
    problem = Problem(scores, np.array([0, 0]), quota, 1.0, np.ones((2, 2)))
    problem.selection().take(1)
    assert scores.tolist() == [1.0, 2.0]
    assert quota.tolist() == [2]


def test_nothing_to_choose_from() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert Selection(np.zeros(0), nothing, nothing, 1.0, lambda node: (nothing, np.zeros(0))).best() == -1
