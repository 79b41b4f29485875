"""What a group teaches: the gradients of groups against the gradient of held-out success.

    python -m benchmarks.gradients POLICY --out docs/results/gradients -S environments.limit=800

POLICY is a directory with one of our own models, such as `build/tiny-…` or `runs/…/policy/step-000050`. It
plays every training task several times, and the held-out tasks often enough to know the gradient of mean
success (REINFORCE with a leave-one-out baseline). Each informative group's GRPO gradient is then taken by
itself.

All products are taken in the metric of Adam, 1 / sqrt(mean squared gradient of a batch): there, the
progress of a step that adds up groups is to first order the sum of their products with the held-out
gradient, over the norm of the sum. `worth` is that product, 1 for the mean informative group, `norm`
likewise. Products of pairs tell how much two groups' gradients have in common: 1 is a group with itself.

Written are `NAME.json` and `NAME.md`. It takes a quarter of an hour on one core.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from envsched.config import Settings, load_settings
from envsched.environments.spec import key_environment
from envsched.files import write_bytes, write_json
from envsched.policy.batches import Sample, collate, micro_batches, samples
from envsched.policy.trainer import TokenLogprobs
from envsched.rollouts.rollout import Group

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MICRO_TOKENS = 4096
METRIC_BATCHES, BATCH = 60, 8
"""Batches that the metric is estimated on, and their groups."""
SKETCH = 4096
"""Dimensions of the random projection that products of pairs are taken in."""
RATES = (0.0, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 1.0)
"""Edges of the intervals of the success rate in a task's other groups."""


@dataclass(frozen=True)
class Measured:
    """Arrays over all groups [n]; of those that are not informative, `worth` and `square` are 0."""

    task: Integers
    successes: Integers
    others: Floats
    """Success rate in the task's other groups."""
    worth: Floats
    """Product with the held-out gradient."""
    square: Floats
    """With itself."""
    sketch: Floats
    """[informative groups, SKETCH]: products of its rows are those of the gradients."""

    @property
    def informative(self) -> npt.NDArray[np.bool_]:
        """Whether the rewards differ [n]."""
        return self.square > 0


class Gradients:
    """Gradients of one policy, flat."""

    def __init__(self, directory: Path, temperature: float) -> None:
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        self.model = TokenLogprobs(model, temperature)
        self.parameters = list(self.model.parameters())

    def of(self, chosen: Sequence[Sample]) -> Tensor:
        """Sum over generated tokens of advantage x gradient of the log-probability."""
        self.model.zero_grad()
        for part in micro_batches(chosen, MICRO_TOKENS):
            batch = collate(part, torch.device("cpu"))
            logprobs, _ = self.model(batch)
            (logprobs * batch.advantages).sum().backward()
        return torch.cat([p.grad.flatten() for p in self.parameters if p.grad is not None])

    def of_success(self, groups: Sequence[Group]) -> Tensor:
        """Of the mean success over tasks."""
        found = []
        for group in groups:
            rewards = np.array([rollout.reward for rollout in group.rollouts])
            weights = (rewards - rewards.mean()) / ((len(rewards) - 1) * len(groups))
            found += [
                Sample(rollout.token_ids, rollout.generated, rollout.logprobs, float(weight))
                for rollout, weight in zip(group.rollouts, weights, strict=True)
                if weight
            ]
        return self.of(found)


def parts(groups: Sequence[Group], size: int) -> Iterator[tuple[int, Group]]:
    """Groups of `size` out of larger ones, with the number of their task, in random order."""
    found = [
        (task, Group(group.key, group.rollouts[start : start + size]))
        for task, group in enumerate(groups)
        for start in range(0, len(group.rollouts), size)
    ]
    for number in np.random.default_rng(0).permutation(len(found)):
        yield found[number]


def measure(gradients: Gradients, train: Sequence[Group], heldout: Sequence[Group], size: int) -> Measured:
    """Every group of `size` rollouts."""
    target = gradients.of_success(heldout)
    metric = _metric(gradients, train, size, len(target))
    generator = torch.Generator().manual_seed(0)
    place = torch.randint(SKETCH, target.shape, generator=generator)
    sign = (torch.randint(2, target.shape, generator=generator) * 2 - 1) * metric.sqrt()
    total = [sum(rollout.reward >= 1 for rollout in group.rollouts) for group in train]
    rows, sketch = [], []
    for task, group in parts(train, size):
        successes = sum(rollout.reward >= 1 for rollout in group.rollouts)
        others = (total[task] - successes) / (len(train[task].rollouts) - size)
        worth = square = 0.0
        if 0 < successes < size:
            gradient = gradients.of(samples([group], normalize=True)[0])
            worth, square = float((gradient * metric) @ target), float((gradient * metric) @ gradient)
            sketch.append(torch.zeros(SKETCH).index_add(0, place, gradient * sign).double().numpy())
        rows.append((task, successes, others, worth, square))
    task, successes, others, worth, square = np.array(rows).T
    return Measured(task.astype(int), successes.astype(int), others, worth, square, np.array(sketch))


def _metric(gradients: Gradients, train: Sequence[Group], size: int, parameters: int) -> Tensor:
    """What Adam divides by, from batches drawn by chance; its mean is 1."""
    squares, batch = torch.zeros(parameters), torch.zeros(parameters)
    for number, (_, group) in enumerate(parts(train, size), start=1):
        if chosen := samples([group], normalize=True)[0]:
            batch += gradients.of(chosen)
        if number % BATCH == 0:
            squares += batch**2
            batch.zero_()
        if number == METRIC_BATCHES * BATCH:
            break
    root = squares.sqrt()
    metric = 1 / (root + 1e-3 * root.mean())
    return metric / metric.mean()


def summary(found: Measured, environment: Sequence[str]) -> dict[str, Any]:
    """Means by successes, by rate, and over pairs; worth and norm in units of the mean informative group."""
    known = found.informative
    worth = found.worth / found.worth[known].mean()
    norm = np.sqrt(found.square) / np.sqrt(found.square[known]).mean()

    def row(part: npt.NDArray[np.bool_]) -> dict[str, float]:
        told = part & known
        spread = worth[told].std() / max(told.sum(), 1) ** 0.5
        return {
            "groups": int(part.sum()),
            "informative": float(known[part].mean()),
            "worth": float(worth[told].mean()),
            "worth_error": float(spread),
            "norm": float(norm[told].mean()),
        }

    return {
        "groups": len(worth),
        "informative": float(known.mean()),
        "by_successes": {
            str(count): row(found.successes == count) for count in np.unique(found.successes[known])
        },
        "by_rate": {"0": row(found.others == 0)}
        | {
            f"{low:g} to {high:g}": row(part)
            for low, high in pairwise(RATES)
            if (part := (found.others > low) & (found.others <= high)).any()
        },
        "pairs": pairs(found, environment),
    }


def pairs(found: Measured, environment: Sequence[str]) -> dict[str, float]:
    """Mean product of two groups over the mean square, by what their tasks have in common."""
    task = found.task[found.informative]
    place = np.array(environment)[task]
    products = found.sketch @ found.sketch.T / found.square[found.informative].mean()
    apart = ~np.eye(len(task), dtype=bool)
    same, near = task[:, None] == task, place[:, None] == place
    kinds = {"same task": same & apart, "same environment": near & ~same, "other environment": ~near}
    return {name: float(products[part].mean()) for name, part in kinds.items() if part.any()}


def markdown(name: str, found: dict[str, Any]) -> str:
    """The summary as tables."""
    lines = [
        f"# {name}",
        "",
        f"{found['groups']} groups, {found['informative']:.0%} of them informative.",
        "",
    ]
    for title, column in (("successes", "by_successes"), ("rate in other groups", "by_rate")):
        lines += [f"| {title} | groups | informative | worth | norm |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| {label} | {row['groups']} | {row['informative']:.0%} | {row['worth']:.2f} ± "
            f"{row['worth_error']:.2f} | {row['norm']:.2f} |"
            for label, row in found[column].items()
        ]
        lines.append("")
    lines += ["| two groups of | product |", "| --- | --- |"]
    lines += [f"| {label} | {value:.4f} |" for label, value in found["pairs"].items()]
    return "\n".join(lines) + "\n"


def play(directory: Path, settings: Settings, groups: int, rollouts: int) -> tuple[list[Group], list[Group]]:
    """Training tasks `groups` times a group, held-out tasks `rollouts` times."""
    from transformers import AutoTokenizer

    from envsched.environments.pool import EpisodePool
    from envsched.environments.registry import load_registry
    from envsched.policy.prepare import tool_format
    from envsched.rollouts.chat import Chat
    from envsched.rollouts.collect import Collector, Limits
    from envsched.rollouts.engine import VERSION_FILE, Sampling, make_engine, resolve_engine

    version = json.loads((directory / VERSION_FILE).read_text())["version"]
    settings = resolve_engine(settings)
    options, registry = settings.rollouts, load_registry(settings.environments)
    chat = Chat(AutoTokenizer.from_pretrained(directory), tool_format(settings))
    limits = Limits(options.max_turns, options.context_tokens, options.concurrency)
    sampling = Sampling(options.temperature, options.top_p, options.turn_tokens, chat.stop)
    with EpisodePool(settings.environments) as pool:
        collector = Collector(make_engine(settings, directory, version), chat, pool, limits)
        train = collector.collect(registry.train, groups * settings.train.group_size, sampling, 0, 0)
        heldout = collector.collect(registry.heldout, rollouts, sampling, 1, 0)
    return train, heldout


def main() -> None:
    """Play, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("policy", type=Path, help="Model directory.")
    parser.add_argument("--groups", type=int, default=4, help="Of every training task.")
    parser.add_argument("--rollouts", type=int, default=16, help="Of every held-out task.")
    parser.add_argument("--out", type=Path, default=Path("build/gradients"), help="Folder for the tables.")
    parser.add_argument("--name", default="", help="Of the files; the policy's directory by default.")
    parser.add_argument("-S", dest="overrides", action="append", default=[], help="A setting: block.field=…")
    options = parser.parse_args()
    if min(options.groups, options.rollouts) < 2:
        parser.error(f"--groups {options.groups} --rollouts {options.rollouts}: expected 2 or more of each")
    settings = load_settings(None, overrides=options.overrides)
    train, heldout = play(options.policy, settings, options.groups, options.rollouts)
    print(f"held-out success {fmean(r.reward >= 1 for group in heldout for r in group.rollouts):.1%}")
    gradients = Gradients(options.policy, settings.rollouts.temperature)
    found = measure(gradients, train, heldout, settings.train.group_size)
    content = summary(found, [key_environment(group.key) for group in train])
    name = options.name or options.policy.name
    write_json(options.out / f"{name}.json", content)
    table = markdown(name, content)
    write_bytes(options.out / f"{name}.md", table.encode())
    print(table)


if __name__ == "__main__":
    main()
