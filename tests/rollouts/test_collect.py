import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from envsched.config import EnvironmentSettings
from envsched.environments.episode import ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.sources import tau2
from envsched.environments.spec import Node
from envsched.rollouts.chat import Chat, render_call
from envsched.rollouts.collect import Collector, Limits, derive_seed
from envsched.rollouts.engine import Completion, Engine, Sampling
from envsched.rollouts.rollout import Group, Rollout
from envsched.rollouts.transformers_engine import TransformersEngine
from envsched.rollouts.users import ScriptedUser, Turn, User

LIMITS = Limits(max_turns=4, context_tokens=192, concurrency=8)


class Scripted:
    """Says what a function of the prompt tells it to say, one message a step."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, script: Callable[[str], str]) -> None:
        self.version = 3
        self.tokenizer = tokenizer
        self.script = script
        self.queue: list[tuple[int, list[int], Sampling]] = []
        self.submitted: list[tuple[int, int]] = []
        """Seed and room of every request."""
        self.most = 0
        """Most requests waiting at once."""

    def submit(self, request: int, prompt: list[int], sampling: Sampling, seed: int) -> None:
        self.queue.append((request, prompt, sampling))
        self.submitted.append((seed, sampling.max_tokens))
        self.most = max(self.most, len(self.queue))

    def step(self) -> list[tuple[int, Completion]]:
        request, prompt, sampling = self.queue.pop(len(self.queue) // 2)
        message = self.script(self.tokenizer.decode(prompt)) + "<|im_end|>"
        ids = self.tokenizer.encode(message, add_special_tokens=False)[: sampling.max_tokens]
        logprobs = [-float(token) for token in ids]
        return [(request, Completion(ids, logprobs, finished=ids[-1] in sampling.stop))]

    def load_weights(self, directory: Path, version: int) -> None:
        raise NotImplementedError("a script has no weights")

    def close(self) -> None:
        pass


@pytest.fixture
def chat(tokenizer: PreTrainedTokenizerFast) -> Chat:
    return Chat(tokenizer, "compact")


@pytest.fixture(scope="module")
def pool() -> Iterator[EpisodePool]:
    with EpisodePool(EnvironmentSettings(call_seconds=2.0)) as opened:
        yield opened


@pytest.fixture
def collect(chat: Chat, pool: EpisodePool) -> Callable[..., list[Group]]:
    """Collect with these nodes, engine, group size and limits."""

    def play(
        engine: Engine, nodes: list[Node], size: int = 2, limits: Limits = LIMITS, **options: Any
    ) -> list[Group]:
        sampling = Sampling(1.0, 1.0, 24, chat.stop)
        return Collector(engine, chat, pool, limits).collect(
            nodes, size, sampling, **{"seed": 0, "step": 0} | options
        )

    return play


@pytest.fixture
def expert(
    tokenizer: PreTrainedTokenizerFast,
    nodes: list[Node],
    experts: dict[str, list[dict[str, Any]]],
    chat: Chat,
) -> Scripted:
    """Makes the calls that solve each task, then takes its leave."""
    names = {node.task.instruction: node.task.name for node in nodes}

    def script(prompt: str) -> str:
        instruction = prompt.split("<|im_start|>user\n")[1].split("<|im_end|>")[0]
        calls = experts[names[instruction]]
        turn = prompt.count("<|im_start|>assistant\n") - 1
        return render_call(ToolCall(**calls[turn])) if turn < len(calls) else "done"

    return Scripted(tokenizer, script)


def rollouts_of(groups: list[Group]) -> list[Rollout]:
    return [rollout for group in groups for rollout in group.rollouts]


def essence(groups: list[Group]) -> list[tuple[list[int], float, list[str]]]:
    """What must be the same when a collection is repeated."""
    return [(rollout.token_ids, rollout.reward, rollout.trace) for rollout in rollouts_of(groups)]


def test_experts_earn_the_full_reward(
    collect: Callable[..., list[Group]], expert: Scripted, nodes: list[Node], experts: dict[str, list[Any]]
) -> None:
    chosen = nodes[::3]
    groups = collect(expert, chosen, limits=Limits(10, 1024, 5), size=2)
    assert [group.key for group in groups] == [node.key for node in chosen]
    for node, group in zip(chosen, groups, strict=True):
        assert [rollout.sample for rollout in group.rollouts] == [0, 1]
        for rollout in group.rollouts:
            calls = len(experts[node.task.name])
            assert (rollout.reward, rollout.error, rollout.truncated) == (1.0, "", False)
            assert (rollout.calls, rollout.turns, rollout.policy_step) == (calls, calls + 1, 3)
            assert len(rollout.trace) == rollout.turns
    assert expert.most == 5
    assert len({seed for seed, _ in expert.submitted}) == sum(r.turns for r in rollouts_of(groups))


def test_generated_tokens_are_the_engines_completions(
    collect: Callable[..., list[Group]], engine: TransformersEngine, nodes: list[Node], chat: Chat
) -> None:
    written: dict[tuple[int, ...], list[Completion]] = {}
    prompts: dict[int, list[int]] = {}
    submit, step = engine.submit, engine.step

    def record_submit(request: int, prompt: list[int], sampling: Sampling, seed: int) -> None:
        prompts[request] = prompt
        submit(request, prompt, sampling, seed)

    def record_step() -> list[tuple[int, Completion]]:
        completions = step()
        for request, completion in completions:
            written.setdefault(tuple(prompts[request]), []).append(completion)
        return completions

    engine.submit, engine.step = record_submit, record_step  # type: ignore[method-assign]
    for rollout in rollouts_of(collect(engine, nodes[:10], size=3)):
        length = len(rollout.token_ids)
        assert len(rollout.generated) == len(rollout.logprobs) == length <= LIMITS.context_tokens
        assert not rollout.generated[0]
        at, turns = rollout.generated.index(True), 0
        while at < length:
            found = [
                c
                for c in written[tuple(rollout.token_ids[:at])]
                if c.token_ids == rollout.token_ids[at : at + len(c.token_ids)]
                and c.logprobs == rollout.logprobs[at : at + len(c.token_ids)]
            ]
            # Two rollouts of a group may have begun with the very same message.
            end = at + max(len(c.token_ids) for c in found)
            assert all(rollout.generated[at:end])
            turns += 1
            at = end
            while at < length and not rollout.generated[at]:
                assert rollout.logprobs[at] == 0
                at += 1
        assert turns == rollout.turns


def test_the_seed_decides_and_the_concurrency_does_not(
    collect: Callable[..., list[Group]], engine: TransformersEngine, nodes: list[Node]
) -> None:
    first = essence(collect(engine, nodes[:6], size=4))
    assert essence(collect(engine, nodes[:6], size=4)) == first
    # Sums are rounded otherwise in another batch, which once in thousands of tokens turns a draw.
    few = essence(collect(engine, nodes[:6], size=4, limits=Limits(4, 192, 3)))
    turned = essence(collect(engine, nodes[:6][::-1], size=4)[::-1])
    for other in (few, turned):
        assert sum(a == b for a, b in zip(other, first, strict=True)) >= 0.9 * len(first)
    assert essence(collect(engine, nodes[:6], size=4, seed=1)) != first
    assert essence(collect(engine, nodes[:6], size=4, step=1)) != first
    assert len({tuple(ids) for ids, _, _ in first[:4]}) > 1


def test_malformed_calls_are_answered(
    collect: Callable[..., list[Group]], tokenizer: PreTrainedTokenizerFast, nodes: list[Node]
) -> None:
    def script(prompt: str) -> str:
        return "done" if "not valid JSON" in prompt else "<tool_call>{]</tool_call>"

    for rollout in rollouts_of(collect(Scripted(tokenizer, script), nodes[:5])):
        assert rollout.trace[0] == "error"
        assert (rollout.turns, rollout.errored, rollout.reward) == (2, False, 0.0)


def test_episodes_are_cut_after_their_last_turn(
    collect: Callable[..., list[Group]], tokenizer: PreTrainedTokenizerFast, nodes: list[Node]
) -> None:
    engine = Scripted(tokenizer, lambda prompt: render_call(ToolCall("x", {})))
    for rollout in rollouts_of(collect(engine, nodes[:5], limits=Limits(3, 1024, 8))):
        assert (rollout.turns, rollout.calls, rollout.truncated) == (3, 3, True)
        assert (rollout.reward, rollout.errored) == (0.0, False)
        assert rollout.generated[-1]


def test_episodes_are_cut_where_the_context_ends(
    collect: Callable[..., list[Group]], tokenizer: PreTrainedTokenizerFast, nodes: list[Node]
) -> None:
    engine = Scripted(tokenizer, lambda prompt: render_call(ToolCall("a b c d e f", {})))
    for rollout in rollouts_of(collect(engine, nodes[:5], limits=Limits(100, 180, 8))):
        assert (rollout.truncated, rollout.errored, rollout.reward) == (True, False, 0.0)
        assert 130 < len(rollout.token_ids) <= 180
        assert rollout.generated[-1]
    assert min(room for _, room in engine.submitted) < 24


def test_prompts_longer_than_the_context_are_errors(
    collect: Callable[..., list[Group]], tokenizer: PreTrainedTokenizerFast, nodes: list[Node]
) -> None:
    ended: list[int] = []
    engine = Scripted(tokenizer, lambda prompt: "done")
    groups = collect(engine, nodes[:3], limits=Limits(4, 10, 2), progress=ended.append)
    for rollout in rollouts_of(groups):
        assert rollout.errored
        assert rollout.error.endswith("the context 10")
    assert (sum(ended), engine.submitted) == (6, [])


def test_a_crash_ends_its_own_episode(
    collect: Callable[..., list[Group]], expert: Scripted, nodes: list[Node], broken_node: Node
) -> None:
    solve = expert.script
    expert.script = lambda prompt: (
        render_call(ToolCall("leave", {})) if "leave()" in prompt else solve(prompt)
    )
    ended: list[int] = []
    groups = collect(
        expert,
        [nodes[0], broken_node, nodes[1]],
        limits=Limits(10, 1024, 8),
        progress=ended.append,
    )
    for rollout in groups[1].rollouts:
        assert (rollout.errored, rollout.reward, rollout.truncated) == (True, 0.0, False)
        assert rollout.error
    assert [rollout.reward for group in (groups[0], groups[2]) for rollout in group.rollouts] == [1.0] * 4
    assert sum(ended) == 6


def test_timings_add_up(chat: Chat, pool: EpisodePool, expert: Scripted, nodes: list[Node]) -> None:
    collector = Collector(expert, chat, pool, Limits(10, 1024, 8))
    collector.collect(nodes[:2], 2, Sampling(1.0, 1.0, 48, chat.stop), seed=0, step=0)
    metrics = collector.timings.metrics()
    assert list(metrics) == [
        "seconds/generation",
        "seconds/environment",
        "seconds/user",
        "seconds/other",
    ]
    assert metrics.pop("seconds/user") == 0
    assert min(metrics.values()) > 0


def test_what_was_said_is_recorded(
    collect: Callable[..., list[Group]], expert: Scripted, nodes: list[Node]
) -> None:
    [group] = collect(expert, nodes[:1], size=1, limits=Limits(10, 1024, 8))
    transcript = group.rollouts[0].transcript
    assert transcript[0] == ("user", nodes[0].task.instruction)
    assert [role for role, _ in transcript[:-1]] == ["user", *["assistant", "tool"] * group.rollouts[0].calls]
    assert transcript[-1] == ("assistant", "done")


class Retail:
    """What the tests of simulated users play: a real task, in workers, with an agent that only talks."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        found = tau2.load(EnvironmentSettings(source="tau2")).nodes
        self.node = next(node for node in found if node.task.name == "airline-0")
        self.tokenizer = tokenizer

    def play(self, user: User | None, count: int = 3, turns: int = 6) -> list[Rollout]:
        engine = Scripted(self.tokenizer, lambda prompt: "anything else?")
        chat = Chat(self.tokenizer, "compact")
        with EpisodePool(EnvironmentSettings(source="tau2")) as pool:
            collector = Collector(engine, chat, pool, Limits(turns, 4096, 8), user)
            [group] = collector.collect([self.node], count, Sampling(1.0, 1.0, 24, chat.stop), seed=0, step=0)
        return group.rollouts


@pytest.fixture(scope="module")
def airline(tokenizer: PreTrainedTokenizerFast) -> Retail:
    return Retail(tokenizer)


def test_a_simulated_user_talks_with_the_agent(airline: Retail) -> None:
    for rollout in airline.play(ScriptedUser(("I want to fly.", "To Rome.", "No. ###STOP###"))):
        assert rollout.transcript == [
            ("user", "I want to fly."),
            ("assistant", "anything else?"),
            ("user", "To Rome."),
            ("assistant", "anything else?"),
        ]
        assert (rollout.turns, rollout.calls, rollout.errored, rollout.truncated) == (2, 0, False, False)


def test_users_of_all_episodes_are_asked_side_by_side(airline: Retail) -> None:
    meeting = threading.Barrier(3)

    class Patient:
        def reply(self, prompt: str, turns: Sequence[Turn], seed: int) -> str:
            assert "<scenario>" in prompt
            assert turns[0] == Turn("agent", tau2.GREETING)
            meeting.wait(timeout=60)  # nobody passes alone
            return "###STOP###"

    assert [rollout.error for rollout in airline.play(Patient())] == [""] * 3


def test_a_conversation_has_its_limit(airline: Retail) -> None:
    for rollout in airline.play(ScriptedUser(("Go on.",))):
        assert (rollout.turns, rollout.truncated, rollout.reward) == (6, True, 0.0)


def test_a_user_that_fails_is_a_technical_failure(airline: Retail) -> None:
    for rollout in airline.play(None):
        assert rollout.errored
        assert "user.endpoint" in rollout.error


def test_seeds_differ_by_every_part() -> None:
    parts = [(0, 1, "a", 2), (1, 0, "a", 2), (0, 1, "b", 2), (0, 1, "a", 3), (0, "1a", 2), (0, 12)]
    seeds = {derive_seed(*part) for part in parts}
    assert len(seeds) == len(parts)
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert derive_seed(0, 1, "a", 2) == derive_seed(0, 1, "a", 2)
