"""Speed of environment workers: calls a second, what a call costs beyond the tool itself, and memory.

python -m benchmarks.environments --workers 2 --alive 256 --calls 60000
python -m benchmarks.environments --episodes 100000     # memory over many short episodes
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, ToolCall
from envsched.environments.pool import EpisodeHandle, EpisodePool
from envsched.environments.registry import draw_evenly, load_registry
from envsched.environments.sources.source import source
from envsched.environments.spec import Node

REPEATS = 5


def calls_of(node: Node) -> list[ToolCall]:
    """The calls of the scripted expert."""
    return [ToolCall(step["name"], step["arguments"]) for step in node.task.program["expert"]]


def throughput(settings: EnvironmentSettings, nodes: Sequence[Node], alive: int, calls: int) -> float:
    """Calls a second, with so many episodes at once; an episode that ends makes room for the next."""
    with EpisodePool(settings) as pool:
        started = time.perf_counter()
        done, next_node = 0, 0
        playing: list[tuple[EpisodeHandle, list[ToolCall]]] = []
        while done < calls:
            fresh = []
            while len(playing) + len(fresh) < alive:
                fresh.append(nodes[next_node % len(nodes)])
                next_node += 1
            opened = pool.reset([(node, next_node) for node in fresh])
            playing += [(handle, calls_of(node)) for (handle, _), node in zip(opened, fresh, strict=True)]
            actions: list[tuple[EpisodeHandle, Action]] = [(handle, rest.pop(0)) for handle, rest in playing]
            answers = pool.act(actions)
            assert not any(answer.errored for answer in answers)
            done += len(actions)
            ended = [handle for handle, rest in playing if not rest]
            pool.finish(ended)
            pool.close(ended)
            playing = [(handle, rest) for handle, rest in playing if rest]
        return done / (time.perf_counter() - started)


def overhead(settings: EnvironmentSettings, nodes: Sequence[Node]) -> tuple[float, float]:
    """Seconds of a call through the pool, one episode at a time, and of the same call in this process."""
    with EpisodePool(settings) as pool:
        through, alone = [], []
        for node in nodes:
            [(handle, _)] = pool.reset([(node, 0)])
            episode = source(node.environment.source).open_episode(node.environment, node.task, 0, "binary")
            episode.reset()
            for call in calls_of(node):
                begun = time.perf_counter()
                pool.act([(handle, call)])
                middle = time.perf_counter()
                episode.act(call)
                through.append(middle - begun)
                alone.append(time.perf_counter() - middle)
            pool.close([handle])
    return statistics.median(through), statistics.median(alone)


def memory(settings: EnvironmentSettings, nodes: Sequence[Node], episodes: int) -> list[int]:
    """Resident MiB of the workers and this process, at ten moments over so many episodes."""
    found = []
    with EpisodePool(settings) as pool:
        for part in range(10):
            for start in range(0, episodes // 10, len(nodes)):
                count = min(len(nodes), episodes // 10 - start)
                opened = pool.reset([(node, start + part) for node in nodes[:count]])
                handles = [handle for handle, _ in opened]
                pool.act([(handle, calls_of(node)[0]) for handle, node in zip(handles, nodes, strict=False)])
                pool.finish(handles)
                pool.close(handles)
            found.append(sum(map(_resident, [*pool.pids, "self"])))
    return found


def _resident(process: int | str) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * 4096 >> 20


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--alive", type=int, default=256)
    parser.add_argument("--calls", type=int, default=60_000)
    parser.add_argument("--episodes", type=int, default=0)
    options = parser.parse_args()
    settings = EnvironmentSettings(workers=options.workers)
    nodes = draw_evenly(load_registry(settings).train, 512)
    if options.episodes:
        resident = memory(settings, nodes, options.episodes)
        print(json.dumps({"episodes": options.episodes, "resident_mib": resident}))
        return
    rates = [throughput(settings, nodes, options.alive, options.calls // REPEATS) for _ in range(REPEATS)]
    through, alone = overhead(settings, nodes[:128])
    print(
        json.dumps(
            {
                "environments": len({node.environment.name for node in nodes}),
                "alive": options.alive,
                "calls_per_second": {"median": statistics.median(rates), "all": rates},
                "call_through_pool_ms": through * 1e3,
                "call_in_process_ms": alone * 1e3,
                "overhead_ms": (through - alone) * 1e3,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
