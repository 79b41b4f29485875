"""Drawing without replacement."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from envsched.environments.spec import key_environment
from envsched.scheduling.scheduler import Floats


def by_environment(keys: Iterable[str]) -> dict[str, list[str]]:
    """Keys of each environment, in the order given; environments sorted."""
    parts: dict[str, list[str]] = {}
    for key in keys:
        parts.setdefault(key_environment(key), []).append(key)
    return dict(sorted(parts.items()))


def softmax(scores: Mapping[str, float], temperature: float) -> dict[str, float]:
    """Probabilities proportional to exp(score / temperature)."""
    if not scores:
        return {}
    values = np.array(list(scores.values())) / temperature
    powers = np.exp(values - values.max())
    return dict(zip(scores, (powers / powers.sum()).tolist(), strict=True))


def shuffled(keys: Sequence[str], rng: np.random.Generator, weights: Floats | None = None) -> list[str]:
    """The order in which keys come out of draws without replacement, each proportional to its weight above 0.

    The first arrivals of exponential clocks with these rates (Efraimidis and Spirakis 2006). Equal weights by
    default.
    """
    clocks = rng.exponential(size=len(keys))
    if weights is not None:
        clocks = clocks / weights
    return [keys[index] for index in np.argsort(clocks, kind="stable")]


def draw_arms(
    size: int, queues: Mapping[str, Sequence[str]], weights: Mapping[str, float], rng: np.random.Generator
) -> list[tuple[str, str]]:
    """`size` pairs (arm, key): an arm is drawn by weight for each place and gives the next key of its queue.

    An arm that has run out drops out. Arms whose weights are all 0 are drawn uniformly.
    """
    left = {arm: iter(queue) for arm, queue in queues.items()}
    counts = {arm: len(queue) for arm, queue in queues.items() if queue}
    chosen = []
    for _ in range(size):
        arms = list(counts)
        rates = np.array([weights[arm] for arm in arms])
        if not rates.sum() > 0:
            rates = np.ones(len(arms))
        arm = arms[rng.choice(len(arms), p=rates / rates.sum())]
        chosen.append((arm, next(left[arm])))
        counts[arm] -= 1
        if not counts[arm]:
            del counts[arm]
    return chosen
