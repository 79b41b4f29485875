"""tau2-bench: what the source holds, and verdicts equal to the package's own evaluators.

`python -m benchmarks.parity --suite tau2` compares the verdicts on all references and on more transcripts.
"""

import random
from collections import Counter

import pytest

from benchmarks.parity_tau2 import STOP, perturbed_transcripts, play, reference, verdicts
from envsched.config import EnvironmentSettings
from envsched.environments.episode import Heard, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.sources import tau2
from envsched.environments.sources.tau2_episode import MOST_ERRORS, MOST_STEPS, Tau2Episode, _databases
from envsched.environments.spec import Node

SETTINGS = EnvironmentSettings(source="tau2")


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    return list(tau2.load(SETTINGS).nodes)


def test_all_base_tasks_are_there(nodes: list[Node]) -> None:
    found = Counter((node.environment.name, node.task.split) for node in nodes)
    assert found == {
        ("tau2-airline", "train"): 30,
        ("tau2-airline", "heldout"): 20,
        ("tau2-retail", "train"): 74,
        ("tau2-retail", "heldout"): 40,
        ("tau2-telecom", "train"): 74,
        ("tau2-telecom", "heldout"): 40,
    }
    assert len({node.key for node in nodes}) == len(nodes)


@pytest.mark.parametrize(("domain", "nothing"), [("airline", 19), ("retail", 7), ("telecom", 0)])
def test_the_reference_earns_all_and_nothing_little(nodes: list[Node], domain: str, nothing: int) -> None:
    mine = [node for node in nodes if node.environment.name == f"tau2-{domain}"]
    before = [base.get_hash() for base in _databases(domain)]
    assert [node.key for node in mine if play(node, reference(node))[0].reward != 1.0] == []
    assert sum(play(node, [])[0].reward for node in mine) == nothing
    assert [base.get_hash() for base in _databases(domain)] == before


@pytest.mark.slow
@pytest.mark.parametrize("domain", tau2.DOMAINS)
def test_verdicts_equal_the_packages_own(nodes: list[Node], domain: str) -> None:
    mine = [node for node in nodes if node.environment.name == f"tau2-{domain}"]
    rng = random.Random(domain)
    transcripts = [(node, reference(node)) for node in mine[:2]] + [(rng.choice(mine), [])]
    judged = verdicts(transcripts + perturbed_transcripts(mine, 5, rng))
    assert judged.ours == judged.official
    assert set(judged.ours) == {True, False}


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("__class__", {}),
        ToolCall("db", {}),
        ToolCall("get_order_details", {"order_id": {"a": [[[[]]]]}}),
        ToolCall("get_order_details", {"order_id": "x" * 10_000_000}),
        ToolCall("get_order_details", {"tool_name": "calculate", "requestor": "user"}),
        ToolCall("get_order_details", {"no such": 1}),
        ToolCall("get_order_details", {}),
        ToolCall("calculate", {"expression": "9**9**9**9"}),
        ToolCall("calculate", {"expression": "__import__('os').getpid()"}),
        ToolCall("calculate", {"expression": 5}),
    ],
)
def test_hostile_calls_are_observations(nodes: list[Node], call: ToolCall) -> None:
    node = next(node for node in nodes if node.environment.name == "tau2-retail")
    episode = Tau2Episode(node.environment, node.task)
    episode.reset()
    episode.act(Heard("hello"))
    answer = episode.act(call)
    assert (answer.kind, answer.terminated, answer.text[:5]) == ("error", False, "Error")


def test_too_many_errors_or_steps_earn_nothing(nodes: list[Node]) -> None:
    node = next(n for n in nodes if n.environment.name == "tau2-airline" and play(n, [])[0].reward)
    ends = []
    for call in (ToolCall("no such tool", {}), ToolCall("list_all_airports", {})):
        episode = Tau2Episode(node.environment, node.task)
        episode.reset()
        answer = episode.act(Heard("hello"))
        calls = 0
        while not answer.terminated:
            answer = episode.act(call)
            calls += 1
        ends.append((calls, answer.reward))
    assert ends == [(MOST_ERRORS, 0.0), (MOST_STEPS // 2, 0.0)]


def test_a_solo_agent_that_talks_is_told_to_act(nodes: list[Node]) -> None:
    node = next(node for node in nodes if node.environment.name == "tau2-telecom")
    episode = Tau2Episode(node.environment, node.task)
    assert episode.reset() == Observation(node.task.instruction, role="user")
    answer = episode.act(Say("hello?"))
    assert (answer.kind, answer.terminated) == ("error", False)
    assert "done" in answer.text


def test_a_conversation_in_a_worker(nodes: list[Node]) -> None:
    node = next(node for node in nodes if node.task.name == "retail-0")
    with EpisodePool(SETTINGS) as pool:
        [(handle, first)] = pool.reset([(node, 0)])
        assert first == Observation(tau2.GREETING, role="user", awaits_user=True)
        assert pool.act([(handle, Heard("I want to exchange something."))])[0].role == "user"
        for action in reference(node):
            assert pool.act([(handle, action)])[0].kind != "error"
        assert pool.act([(handle, Say("done"))])[0].awaits_user
        [end] = pool.act([(handle, STOP)])
    assert (end.reward, end.terminated, end.errored) == (1.0, True, False)
