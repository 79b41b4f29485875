"""Tokens per second of the collector, against a bare call of the engine on the same prompts.

    python -m benchmarks.generation --repeats 5 -S rollouts.concurrency=128

The collector plays tasks while every request it makes is noted: prompt, sampling and seed. Then the engine is
handed all those prompts at once (`vllm.LLM.generate`; submit and step for transformers) with the same
sampling, log-probabilities and seeds, so that it draws the same tokens again. Both sides use the same engine,
hence the same number of sequences at once, and begin with empty caches. There are several times as many
episodes as run at once, as otherwise the last, long episodes would run with most places empty.

The bare call has it easier: it knows the prompts of all turns beforehand, waits for no environment and parses
nothing. What it is ahead is what environments and our own code cost.

Two workloads: whole episodes, and episodes cut after their first turn. Each engine runs in a process of its
own. The table gives medians over the repeats; one before them is not counted.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from envsched.config import Settings, load_settings
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import draw_evenly, load_registry
from envsched.environments.spec import Node
from envsched.policy.prepare import initial_policy, tool_format
from envsched.policy.weights import copy_policy
from envsched.rollouts.chat import Chat
from envsched.rollouts.collect import Collector, Limits
from envsched.rollouts.engine import Completion, Engine, Sampling, make_engine


@dataclass(frozen=True)
class Speed:
    """One repeat."""

    episodes: float
    """Episodes per second."""
    collector: float
    """Generated tokens per second."""
    bare: float
    """Generated tokens per second."""


@dataclass(frozen=True)
class Result:
    """What was measured of one engine."""

    engine: str
    start_seconds: float
    """Imports included."""
    workloads: dict[str, list[Speed]]


class Recorder:
    """An engine that notes what it is asked."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.version = engine.version
        self.requests: list[tuple[list[int], Sampling, int]] = []

    def submit(self, request: int, prompt: list[int], sampling: Sampling, seed: int) -> None:
        """Note and pass on."""
        self.requests.append((prompt, sampling, seed))
        self.engine.submit(request, prompt, sampling, seed)

    def step(self) -> list[tuple[int, Completion]]:
        """Pass on."""
        return self.engine.step()

    def load_weights(self, directory: Path, version: int) -> None:
        """Pass on."""
        self.engine.load_weights(directory, version)

    def close(self) -> None:
        """Pass on."""
        self.engine.close()


def generate_bare(engine: Engine, requests: list[tuple[list[int], Sampling, int]]) -> int:
    """Hand all requests to the engine at once; how many tokens it generated."""
    from envsched.rollouts.vllm_engine import VllmEngine, sampling_params

    if isinstance(engine, VllmEngine):
        prompts = [{"prompt_token_ids": prompt} for prompt, _, _ in requests]
        params = [sampling_params(sampling, seed) for _, sampling, seed in requests]
        outputs = engine.llm.generate(prompts, params, use_tqdm=False)
        return sum(len(output.outputs[0].token_ids) for output in outputs)
    for number, (prompt, sampling, seed) in enumerate(requests):
        engine.submit(number, prompt, sampling, seed)
    done = tokens = 0
    while done < len(requests):
        for _, completion in engine.step():
            done += 1
            tokens += len(completion.token_ids)
    return tokens


def measure(settings: Settings, nodes: list[Node], directory: Path, repeats: int) -> Result:
    """Start the engine and repeat all workloads."""
    from transformers import AutoTokenizer

    begun = time.perf_counter()
    engine = make_engine(settings, directory, 0)
    seconds = time.perf_counter() - begun
    rollouts = settings.rollouts
    chat = Chat(AutoTokenizer.from_pretrained(directory), tool_format(settings))
    sampling = Sampling(rollouts.temperature, rollouts.top_p, rollouts.turn_tokens, chat.stop)
    whole = Limits(rollouts.max_turns, rollouts.context_tokens, rollouts.concurrency)
    workloads: dict[str, list[Speed]] = {}
    with EpisodePool(settings.environments) as pool:
        for name, limits in {"first turns": replace(whole, max_turns=1), "whole episodes": whole}.items():
            speeds = []
            for step in range(repeats + 1):
                recorder = Recorder(engine)
                collector = Collector(recorder, chat, pool, limits)
                engine.load_weights(directory, 0)
                start = time.perf_counter()
                groups = collector.collect(nodes, settings.train.group_size, sampling, 0, step)
                collected = time.perf_counter() - start
                engine.load_weights(directory, 0)
                start = time.perf_counter()
                tokens = generate_bare(engine, recorder.requests)
                bare = time.perf_counter() - start
                played = [rollout for group in groups for rollout in group.rollouts]
                written = sum(rollout.generated_tokens for rollout in played)
                speeds.append(Speed(len(played) / collected, written / collected, tokens / bare))
            workloads[name] = speeds[1:]
    engine.close()
    return Result(rollouts.engine, seconds, workloads)


Engines = Annotated[list[str], typer.Option(help="Engine to measure; repeatable.")]
Repeats = Annotated[int, typer.Option(min=1, help="Counted repeats of each workload.")]
Waves = Annotated[int, typer.Option(min=1, help="Episodes, in multiples of those that run at once.")]
Override = Annotated[list[str], typer.Option("--set", "-S", metavar="BLOCK.FIELD=VALUE", help="A setting.")]


def main(
    engine: Engines = ["vllm", "transformers"],  # noqa: B006 - Typer reads the default, nobody changes it
    repeats: Repeats = 5,
    waves: Waves = 4,
    override: Override = [],  # noqa: B006
) -> None:
    """Measure how fast tokens are generated."""
    console = Console()
    table = Table(
        "engine", "workload", "episodes/s", "collector\ntokens/s", "bare\ntokens/s", "collector\n/ bare"
    )
    for name in engine:
        settings = load_settings(overrides=[*override, f"rollouts.engine={name}"])
        tasks = waves * settings.rollouts.concurrency // settings.train.group_size
        nodes = draw_evenly(load_registry(settings.environments).train, tasks)
        with (
            tempfile.TemporaryDirectory() as scratch,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process,
        ):
            directory = Path(scratch) / "policy"
            copy_policy(initial_policy(settings), directory, 0)
            result = process.submit(measure, settings, nodes, directory, repeats).result()
        console.print(f"{name}: started in {result.start_seconds:.1f} s")
        for workload, speeds in result.workloads.items():
            table.add_row(
                name,
                workload,
                f"{median(speed.episodes for speed in speeds):.1f}",
                f"{median(speed.collector for speed in speeds):.0f}",
                f"{median(speed.bare for speed in speeds):.0f}",
                f"{median(speed.collector / speed.bare for speed in speeds):.2f}",
            )
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
