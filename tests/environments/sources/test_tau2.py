"""tau2-bench: what the source holds, and verdicts equal to the package's own evaluators."""

import random
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Heard, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.sources import tau2
from envsched.environments.sources.tau2_episode import MOST_ERRORS, MOST_STEPS, Tau2Episode, _databases
from envsched.environments.spec import Node

SETTINGS = EnvironmentSettings(source="tau2")
STOP = Heard("###STOP###")


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    return list(tau2.load(SETTINGS).nodes)


def reference(node: Node) -> list[Action]:
    """The task's reference actions, then its facts."""
    criteria = node.task.program["task"]["evaluation_criteria"]
    calls = [ToolCall(a["name"], a["arguments"]) for a in criteria["actions"] or []]
    return [*calls, *(Say(text) for text in criteria["communicate_info"] or [])]


def play(node: Node, actions: Sequence[Action]) -> tuple[Observation, list[Observation]]:
    """Carry out actions and end the play; the last observation, and one for each action."""
    episode = Tau2Episode(node.environment, node.task)
    episode.reset()
    solo = episode.user is None
    if not solo:
        episode.act(Heard("hello"))
    answers = []
    for action in actions:
        if solo and isinstance(action, Say):
            continue
        answers.append(episode.act(action))
        if isinstance(action, Say):
            episode.act(Heard("yes"))
    return episode.act(ToolCall("done", {}) if solo else STOP), answers


def upstream_reward(node: Node, actions: Sequence[Action], answers: Sequence[Observation]) -> float:
    """The package's own verdict on the same transcript, from the evaluators its runner combines."""
    from tau2.data_model.message import AssistantMessage, ToolMessage
    from tau2.data_model.message import ToolCall as UpstreamCall
    from tau2.data_model.tasks import Task
    from tau2.evaluator.evaluator_action import ActionEvaluator
    from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
    from tau2.evaluator.evaluator_env import EnvironmentEvaluator

    domain = node.environment.program["domain"]
    task = Task.model_validate(node.task.program["task"])
    messages: list[Any] = []
    for number, (action, answer) in enumerate(zip(actions, answers, strict=False)):
        if isinstance(action, ToolCall):
            call = UpstreamCall(id=str(number), name=action.name, arguments=dict(action.arguments))
            messages.append(AssistantMessage(role="assistant", tool_calls=[call]))
            content = None if answer.text == "None" else answer.text
            messages.append(ToolMessage(id=str(number), role="tool", content=content))
        else:
            messages.append(AssistantMessage(role="assistant", content=action.text))
    rewards = {
        "env": EnvironmentEvaluator.calculate_reward(
            import_module(f"tau2.domains.{domain}.environment").get_environment,
            task,
            messages,
            solo_mode=domain in tau2.SOLO,
        ).reward,
        "ACTION": ActionEvaluator.calculate_reward(task, messages).reward,
        "COMMUNICATE": CommunicateEvaluator.calculate_reward(task, messages).reward,
    }
    basis = {part.value for part in task.evaluation_criteria.reward_basis}
    product = rewards["env"] if basis & {"DB", "ENV_ASSERTION"} else 1.0
    for part in ("ACTION", "COMMUNICATE"):
        product *= rewards[part] if part in basis else 1.0
    return float(product)


def perturbed(node: Node, others: Sequence[Action], rng: random.Random) -> list[Action]:
    """The reference with one thing wrong, or more than one."""
    actions = reference(node)
    for _ in range(rng.randint(1, 2)):
        if not actions:
            break
        place = rng.randrange(len(actions))
        chosen = actions[place]
        verb = rng.choice(["drop", "twice", "swap", "change", "foreign"])
        if verb == "drop":
            del actions[place]
        elif verb == "twice":
            actions.insert(place, chosen)
        elif verb == "swap":
            other = rng.randrange(len(actions))
            actions[place], actions[other] = actions[other], actions[place]
        elif verb == "foreign":
            actions.insert(place, rng.choice(others))
        elif isinstance(chosen, ToolCall) and chosen.arguments:
            name = rng.choice(sorted(chosen.arguments))
            value = rng.choice(["nonsense", 7, None, [], chosen.arguments[name]])
            actions[place] = ToolCall(chosen.name, {**chosen.arguments, name: value})
    return actions


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
    others = [action for node in mine for action in reference(node) if isinstance(action, ToolCall)]
    rng = random.Random(domain)
    transcripts = [(node, reference(node)) for node in mine]
    transcripts += [(rng.choice(mine), []) for _ in range(10)]
    while len(transcripts) < len(mine) + 80:
        node = rng.choice(mine)
        transcripts.append((node, perturbed(node, others, rng)))
    verdicts = Counter[tuple[float, float]]()
    for node, actions in transcripts:
        end, answers = play(node, actions)
        verdicts[end.reward, upstream_reward(node, actions, answers)] += 1
    assert set(verdicts) == {(0.0, 0.0), (1.0, 1.0)}


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
