"""Demonstrations of noisy experts on the synthetic suite, as conversations to imitate."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from envsched.environments.episode import Observation, ToolCall
from envsched.environments.spec import Node
from envsched.environments.synthetic import Suite, noisy_demonstration, practice
from envsched.rollouts.chat import Chat, render_call, system_message

FAREWELL = "done"
"""What an expert says when the task is completed."""


@dataclass(frozen=True)
class Demonstrator:
    """Plays new tasks in a suite's training environments with experts, noisy or not.

    A few thousand tasks seen again and again would be learnt by heart, and what reinforcement learning then
    improves would help with no other task.
    """

    suite_seed: int
    nodes: list[Node]
    """At least one of each training environment: they tell how its tools are shown."""
    seed: int

    def conversations(self, chat: Chat, noise: float) -> Iterator[tuple[list[int], list[bool]]]:
        """Token ids and which of them the expert wrote, without end.

        `noise` scales the experts' error rates; 0 makes none.
        """
        rng = random.Random(f"demonstrations {self.seed} {noise}")
        nodes = {node.environment.name: node for node in self.nodes}
        for environment, scenario in practice(self.suite_seed, rng):
            turns = noisy_demonstration(environment, scenario, rng, noise)
            messages = [(render_call(_call(t.call)), Observation(t.observation)) for t in turns]
            first = Observation(scenario["task"], role="user")
            yield chat.demonstration(nodes[environment["env_id"]], first, [*messages, (FAREWELL, None)])


def tokenizer_texts(suite: Suite, nodes: list[Node], seed: int) -> Iterator[str]:
    """What a tokenizer for the suite must read and write: prompts, calls and answers of training tasks."""
    rng = random.Random(f"tokenizer {seed}")
    environments = {record["env_id"]: record for record in suite.environments}
    scenarios = {record["task_id"]: record for record in suite.scenarios}
    for node in nodes:
        environment, scenario = environments[node.environment.name], scenarios[node.task.name]
        yield from (system_message(node, "compact"), node.task.instruction, FAREWELL)
        for turn in noisy_demonstration(environment, scenario, rng):
            # Without its tags: they are tokens of their own.
            yield re.sub("</?tool_call>", "", render_call(_call(turn.call)))
            yield turn.observation
            yield from ("assistant\n", "tool\n")


def _call(step: Mapping[str, Any]) -> ToolCall:
    return ToolCall(step["name"], step["arguments"])
