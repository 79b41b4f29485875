"""BFCL multi-turn: transcripts of agents that carry out the ground truth, or nearly, and both verdicts.

A transcript is a list of turns, each a list of calls. The official verdict is that of `multi_turn_runner`,
which needs packages that nothing else here needs: its two rules of force-termination are written down here,
the rest is `multi_turn_checker` itself.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

from benchmarks.parity_verdicts import Parity, Verdicts, perturb
from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Say, ToolCall
from envsched.environments.sources import bfcl
from envsched.environments.sources.bfcl_episode import CALLS_PER_TURN, BfclEpisode
from envsched.environments.sources.bfcl_package import EVALUATION, find_package, imports_from
from envsched.environments.spec import Node

Turns = list[list[ToolCall]]


@dataclass(frozen=True)
class Entry:
    """A task with its records."""

    node: Node
    record: dict[str, Any]
    truth: list[list[str]]
    """By turn, calls as text."""

    @property
    def right(self) -> Turns:
        """The transcript of an agent that carries out the ground truth in the turns that there are."""
        program = self.node.task.program
        calls = program["ground_truth"][: len(program["turns"])]
        return [[ToolCall(call["name"], call["arguments"]) for call in turn] for turn in calls]


Transcript = tuple[Entry, Turns]


def bfcl_parity(suite: str, path: str | None, perturbed: int, seed: int) -> Parity:
    """Verdicts on all ground truths, on truncated ones, and on `perturbed` transcripts.

    `path` is the folder of another version than the installed one.
    """
    entries = read_entries(path)
    replays = [(entry, entry.right) for entry in entries]
    start = time.perf_counter()
    for entry, turns in replays:
        our_verdict(entry.node, turns)
    seconds = time.perf_counter() - start
    truncated = [(entry, without_last(turns)) for entry, turns in replays]
    changed = perturbed_transcripts(entries, perturbed, random.Random(seed))
    return Parity(
        suite,
        find_package(path).program.get("version") or version("bfcl-eval"),
        verdicts(replays),
        verdicts(truncated),
        verdicts(changed),
        round(seconds, 1),
        tuple(unsolvable(entry) for entry in entries if len(entry.truth) != len(entry.right)),
    )


def read_entries(path: str | None) -> list[Entry]:
    """All tasks, with the records they were made from."""
    nodes = bfcl.load(EnvironmentSettings(source="bfcl", path=path)).nodes
    records = bfcl.read_records(find_package(path))
    return [Entry(node, record, truth) for node, (record, truth) in zip(nodes, records, strict=True)]


def verdicts(transcripts: Sequence[Transcript]) -> Verdicts:
    """Both verdicts on each transcript."""
    ours = tuple(our_verdict(entry.node, turns) for entry, turns in transcripts)
    return Verdicts(ours, tuple(official_verdict(entry, turns) for entry, turns in transcripts))


def our_verdict(node: Node, turns: Turns) -> bool:
    """Whether an episode with these calls earns everything."""
    episode = BfclEpisode(node.environment, node.task, "binary")
    episode.reset()
    actions: list[Action] = []
    for calls in turns:
        actions += [*calls, Say("done")]
    for action in actions:
        observation = episode.act(action)
        if observation.terminated:
            break
    return observation.reward == 1


def official_verdict(entry: Entry, turns: Turns) -> bool:
    """What the benchmark makes of the same calls, one a message.

    A ground truth of more calls than the benchmark allows messages is allowed as many, as it is by ours: the
    benchmark's agents may make several calls in a message.
    """
    if len(turns) != len(entry.truth):
        return False
    if any(
        len(calls) > max(CALLS_PER_TURN, len(truth)) for calls, truth in zip(turns, entry.truth, strict=True)
    ):
        return False
    return checker_verdict(entry, [[[as_text(call)] for call in calls] for calls in turns])


def checker_verdict(entry: Entry, decoded: list[list[list[str]]]) -> bool:
    """What `multi_turn_checker` makes of turns of messages of calls as text."""
    with imports_from(entry.node.environment.program.get("package")):
        checker = import_module(f"{EVALUATION}.multi_turn_checker")
        instances = vars(import_module(f"{EVALUATION}.multi_turn_utils"))
        before = set(instances)
        try:
            verdict = checker.multi_turn_checker(decoded, entry.truth, entry.record, "multi_turn", "parity")
        finally:
            for name in set(instances) - before:  # the instances of an entry, which it would find again
                del instances[name]
    return bool(verdict["valid"])


def as_text(call: ToolCall) -> str:
    """A call as the benchmark's handlers decode it from JSON."""
    arguments = ",".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"{call.name}({arguments})"


def without_last(turns: Turns) -> Turns:
    """The transcript without the calls of the last turn that has any."""
    last = max(i for i, calls in enumerate(turns) if calls)
    return [[] if i == last else calls for i, calls in enumerate(turns)]


def unsolvable(entry: Entry) -> str:
    """Why the benchmark fails an entry whatever the agent does."""
    decoded = [[[text] for text in calls] for calls in entry.truth]
    accepted = "accepts" if checker_verdict(entry, decoded) else "rejects"
    return (
        f"{entry.node.task.name}: {len(entry.right)} user turns, {len(entry.truth)} turns of ground truth: "
        f"its runner fails it whatever the agent does (its checker alone {accepted} the ground truth)"
    )


def perturbed_transcripts(entries: Sequence[Entry], count: int, rng: random.Random) -> list[Transcript]:
    """Ground truths of entries drawn at random, changed; foreign calls come from the same classes."""
    others: dict[str, list[ToolCall]] = {}
    for entry in entries:
        calls = (call for turn in entry.right for call in turn)
        others.setdefault(entry.node.environment.name, []).extend(calls)
    drawn = [rng.choice(entries) for _ in range(count)]
    return [(entry, _perturbed(entry.right, others[entry.node.environment.name], rng)) for entry in drawn]


def _perturbed(turns: Turns, others: Sequence[ToolCall], rng: random.Random) -> Turns:
    place = rng.choice([i for i, calls in enumerate(turns) if calls])
    verb = rng.choice(["calls", "calls", "calls", "unknown", "repeat", "empty turn", "early", "flood"])
    if verb == "calls":
        changed = perturb(turns[place], others, rng)
        turns[place] = [call for call in changed if isinstance(call, ToolCall)]
    elif verb == "unknown":
        arguments: dict[str, Any] = rng.choice([{}, {"value": 1}, {"self": "x"}])
        turns[place].insert(
            0, ToolCall(rng.choice(["no_such_tool", "_load_scenario", "__init__"]), arguments)
        )
    elif verb == "repeat":
        turns[rng.randrange(len(turns))] += [rng.choice(others)] * rng.randint(1, 3)
    elif verb == "empty turn":
        turns[place] = []
    elif verb == "early":
        turns[max(0, place - 1)] += turns[place]
        turns[place] = [turns[place][-1]]
    else:
        turns[place] += [turns[place][-1]] * rng.randint(CALLS_PER_TURN - 8, CALLS_PER_TURN)
    return turns
