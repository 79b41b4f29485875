"""Seconds and memory of one scheduling step, by the size of the pool.

    python -m benchmarks.scale --nodes 2500 10000 30000 100000 --out docs/results/scale.json

A step takes in the groups of the last batch, brings the graph up to date, trains the variance model, predicts
every node and chooses a batch of 64. Pools are made up: 40 tasks an environment, each with tools, state and
checks of its own; 40 batches are observed before the first step. Reported are medians of several steps after
a few that are not counted, and apart from them the seconds in which the graph is built. Each size runs in a
process of its own, so that its peak memory is known.

Results of other sizes that the file already holds are kept. Beside it, as `.png`: cost against size.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from envsched.environments.spec import OperationKind
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome

BATCH, GROUP_SIZE = 64, 8
TASKS = 40
"""Of one environment."""
HISTORY = 40
"""Batches observed before the first step."""
KINDS: tuple[OperationKind, ...] = ("search", "read", "create", "update", "delete", "compute", "communicate")
STAGES = ("observe", "graph", "fit", "predict", "choose")


def make_pool(count: int, seed: int = 0) -> list[NodeProfile]:
    """`count` nodes; those of an environment share its tools and state."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array(
        [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in ("ab", "el", "in", "or") for c in KINDS]
    )
    pool: list[NodeProfile] = []
    while len(pool) < count:
        name = f"environment-{len(pool) // TASKS:06d}"
        state = tuple(rng.choice(vocabulary, 8, replace=False).tolist())
        kinds = tuple(KINDS[i] for i in rng.integers(0, len(KINDS), 12))
        tools = tuple(f"{kind}_{state[i % 8]}_{i}" for i, kind in enumerate(kinds))
        said = rng.choice(vocabulary, (TASKS, 8)).tolist()
        used = rng.integers(0, 12, (TASKS, 3)).tolist()
        for i in range(min(TASKS, count - len(pool))):
            asked = [tools[tool].replace("_", " ") for tool in used[i]]
            checks = tuple(f"{state[tool % 8]} {i} is done" for tool in used[i])
            text = " and ".join([*asked, " ".join(said[i])])
            pool.append(NodeProfile(f"{name}/task-{i:02d}", text, tools, kinds, state, checks))
    return pool


def play(key: str, step: int, rng: np.random.Generator) -> GroupOutcome:
    """Rewards at a rate of the task's environment."""
    rate = (int(key.split("/")[0].rsplit("-", 1)[1]) * 0.618) % 1
    rewards = tuple((rng.random(GROUP_SIZE) < rate).astype(float).tolist())
    traces = tuple(tuple(KINDS[i] for i in row) for row in rng.integers(0, len(KINDS), (GROUP_SIZE, 5)))
    no, times = (False,) * GROUP_SIZE, (5,) * GROUP_SIZE
    return GroupOutcome(key, step, step, rewards, no, no, times, times, (200,) * GROUP_SIZE, traces)


def measure(count: int, warm_up: int, steps: int) -> dict[str, Any]:
    """Median seconds of each stage and of whole steps, seconds to build the graph, and peak memory in GiB."""
    import torch

    from envsched.scheduling.envsched import EnvSched

    rng = np.random.default_rng(1)
    pool = make_pool(count)
    started = time.perf_counter()
    scheduler = EnvSched(pool, 0, GROUP_SIZE)
    built = time.perf_counter() - started
    for step in range(HISTORY):
        keys = [scheduler.keys[i] for i in rng.choice(count, min(BATCH, count), replace=False)]
        scheduler.observe([play(key, step, rng) for key in keys])
    spent: defaultdict[str, list[float]] = defaultdict(list)
    groups: list[GroupOutcome] = []
    for step in range(HISTORY, HISTORY + warm_up + steps):
        used, marks = time.process_time(), [time.perf_counter()]
        scheduler.observe(groups)
        marks.append(time.perf_counter())
        scheduler.rebuild_graph(step)
        marks.append(time.perf_counter())
        scheduler.fit_variance(step)
        marks.append(time.perf_counter())
        scheduler.predict(step)
        marks.append(time.perf_counter())
        batch = scheduler.next_batch(min(BATCH, count), step)
        marks.append(time.perf_counter())
        done = time.process_time()
        groups = [play(key, step, rng) for key in batch.keys]
        if step >= HISTORY + warm_up:
            for name, seconds in zip(STAGES, np.diff(marks).tolist(), strict=True):
                spent[name].append(seconds)
            spent["step"].append(marks[-1] - marks[0])
            spent["step_cpu"].append(done - used)
    return {
        "nodes": count,
        "environments": len(scheduler.graph.environments),
        "edges": int(scheduler.metrics()["graph/within_edges"] + scheduler.metrics()["graph/across_edges"]),
        "seconds": {name: round(median(values), 4) for name, values in spent.items()},
        "build_seconds": round(built, 2),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
    }


def draw(results: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Cost against size, with a line of n log n through the smallest whole step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    sizes = np.array([result["nodes"] for result in results], dtype=float)
    for name in ("step", *STAGES):
        seconds = [result["seconds"][name] for result in results]
        axes.plot(sizes, seconds, marker="o", lw=2.5 if name == "step" else 1, label=name)
    growth = sizes * np.log(sizes)
    axes.plot(sizes, results[0]["seconds"]["step"] * growth / growth[0], "k:", label="n log n")
    axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel="seconds a step", title="One scheduling step")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[2500, 10_000])
    parser.add_argument("--warm-up", type=int, default=3, help="steps that are not counted")
    parser.add_argument("--steps", type=int, default=5, help="steps of which the median is taken")
    parser.add_argument("--out", type=Path, default=Path("docs/results/scale.json"))
    chosen = parser.parse_args()
    found = {r["nodes"]: r for r in json.loads(chosen.out.read_text())} if chosen.out.exists() else {}
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    for count in chosen.nodes:
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            found[count] = alone.submit(measure, count, chosen.warm_up, chosen.steps).result()
        print(json.dumps(found[count]), flush=True)
        results = [found[size] for size in sorted(found)]
        chosen.out.write_text(json.dumps(results, indent=1) + "\n")
        draw(results, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
