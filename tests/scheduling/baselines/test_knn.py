"""Nearest neighbours, against a loop over all pairs."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from envsched.graph.profile import NodeProfile
from envsched.graph.text import unit_rows
from envsched.scheduling.baselines import knn
from envsched.scheduling.baselines.inferred import environment_mean
from envsched.scheduling.baselines.knn import Knn
from envsched.variance.evidence import Evidence

MakeEvidence = Callable[..., Evidence]


@pytest.mark.parametrize("neighbours", [3, 24])
def test_mean_is_that_of_the_nearest(
    told_pool: list[NodeProfile], evidence: MakeEvidence, monkeypatch: pytest.MonkeyPatch, neighbours: int
) -> None:
    monkeypatch.setattr(knn, "NEIGHBOURS", neighbours)
    scheduler = Knn(told_pool, 0)
    rng = np.random.default_rng(0)
    text = unit_rows(rng.normal(size=(24, 6)).astype(np.float32))
    scheduler.graph = replace(scheduler.graph, text=text)
    keys = ["a/0", "a/1", "a/2", "b/0", "b/3", "c/4", "c/5"]
    records = {key: (float(rng.integers(0, 9)), 8.0 * (1 + 7 * (key == "b/0"))) for key in keys}
    found = evidence(scheduler, records)
    shrunk = environment_mean(scheduler.graph.environment, found)
    mean = scheduler.neighbours_mean(found)
    for i, key in enumerate(scheduler.keys):
        near = []
        for j, other in enumerate(scheduler.keys):
            if other in records and other != key:
                outline = float(scheduler.graph.outline[i] @ scheduler.graph.outline[j])
                cosine = (float(text[i] @ text[j]) + outline) / 2
                near.append((cosine + 0.5 * (key[0] == other[0]), j))
        near = sorted(near, reverse=True)[:neighbours]
        weights = [np.exp(4 * (nearness - 1)) * min(found.trials[j], 40) for nearness, j in near]
        rates = [found.successes[j] / found.trials[j] for _, j in near]
        expected = (np.dot(weights, rates) + 20 * shrunk[i]) / (sum(weights) + 20)
        assert mean[i] == pytest.approx(expected, rel=1e-4)


def test_similar_texts_share_their_fate_across_environments(
    told_pool: list[NodeProfile], evidence: MakeEvidence
) -> None:
    scheduler = Knn(told_pool, 0)
    records = {f"{name}/{i}": (8.0 * (i % 2), 8.0) for name in "ab" for i in range(8)}
    mean = dict(zip(scheduler.keys, scheduler.posterior(evidence(scheduler, records)).mean, strict=True))
    assert mean["c/1"] > mean["c/0"] + 0.2


def test_nothing_known_leaves_the_pool(told_pool: list[NodeProfile], evidence: MakeEvidence) -> None:
    scheduler = Knn(told_pool, 0)
    assert scheduler.posterior(evidence(scheduler, {})).mean == pytest.approx(np.full(24, 0.5))
