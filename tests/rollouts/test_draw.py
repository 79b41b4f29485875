import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from envsched.rollouts.draw import draw, uniforms

LOGITS = arrays(np.float32, (3, 7), elements=st.floats(-20, 20, width=32))
UNIFORM = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1 - 2.0**-32])


def draw_one(
    logits: np.ndarray, temperature: float, top_p: float, uniform: float
) -> tuple[torch.Tensor, torch.Tensor]:
    columns = (
        torch.full((len(logits),), value, dtype=torch.float64) for value in (temperature, top_p, uniform)
    )
    return draw(torch.from_numpy(logits), *columns)


def slow_distribution(logits: list[float], temperature: float, top_p: float) -> list[float]:
    """Softmax, then the fewest likeliest tokens that reach `top_p`, renormalised; plain Python."""
    top = max(logits)
    weights = [math.exp((value - top) / temperature) for value in logits]
    probabilities = [weight / sum(weights) for weight in weights]
    kept, mass = set(), 0.0
    for token in sorted(range(len(logits)), key=lambda token: -probabilities[token]):
        if mass >= top_p < 1:
            break
        kept.add(token)
        mass += probabilities[token]
    return [p / mass if token in kept else 0.0 for token, p in enumerate(probabilities)]


@given(logits=LOGITS, temperature=st.floats(0.2, 2), uniform=UNIFORM)
def test_inverts_the_cumulative_distribution(logits: np.ndarray, temperature: float, uniform: float) -> None:
    tokens, logprobs = draw_one(logits, temperature, 1.0, uniform)
    for row, token, logprob in zip(logits.tolist(), tokens.tolist(), logprobs.tolist(), strict=True):
        expected = slow_distribution(row, temperature, 1.0)
        assert math.isclose(logprob, math.log(expected[token]), abs_tol=1e-4)
        assert sum(expected[:token]) <= uniform + 1e-5
        assert sum(expected[: token + 1]) >= uniform - 1e-5


def test_top_p_keeps_the_fewest_likeliest_tokens() -> None:
    logits = np.log(np.array([[0.1, 0.4, 0.2, 0.3]], np.float32))
    expected = slow_distribution(logits[0].tolist(), 1.0, 0.6)
    assert [round(p, 4) for p in expected] == [0.0, 0.5714, 0.0, 0.4286]
    counts = [0, 0, 0, 0]
    for uniform in np.arange(0, 1, 1 / 64):
        tokens, logprobs = draw_one(logits, 1.0, 0.6, uniform)
        counts[tokens[0]] += 1
        assert math.isclose(logprobs[0], math.log(expected[tokens[0]]), abs_tol=1e-5)
    assert counts == [0, 37, 0, 27]


@given(logits=LOGITS, uniform=UNIFORM)
def test_temperature_zero_is_greedy(logits: np.ndarray, uniform: float) -> None:
    tokens, logprobs = draw_one(logits, 0.0, 0.5, uniform)
    assert (logits[range(3), tokens] == logits.max(axis=1)).all()
    expected = torch.log_softmax(torch.from_numpy(logits), dim=-1)
    assert torch.allclose(logprobs, expected[range(3), tokens])


def test_requests_of_all_kinds_share_a_call() -> None:
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    temperature = torch.tensor([0.0, 1.0, 0.5, 1.0], dtype=torch.float64)
    top_p = torch.tensor([1.0, 0.3, 1.0, 1.0], dtype=torch.float64)
    uniform = torch.tensor([0.1, 0.6, 0.7, 0.3], dtype=torch.float64)
    together = draw(logits, temperature, top_p, uniform)
    alone = [
        draw(logits[i : i + 1], temperature[i, None], top_p[i, None], uniform[i, None]) for i in range(4)
    ]
    assert together[0].tolist() == [int(tokens) for tokens, _ in alone]
    assert torch.allclose(together[1], torch.cat([logprobs for _, logprobs in alone]))


@given(seeds=st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8), position=st.integers(0, 10_000))
def test_uniforms_depend_on_their_own_seed_and_position(seeds: list[int], position: int) -> None:
    together = uniforms(np.array(seeds, np.uint64), np.full(len(seeds), position, np.uint64))
    alone = [uniforms(np.array([s], np.uint64), np.array([position], np.uint64))[0] for s in seeds]
    assert together.tolist() == alone
    assert all(0 <= value < 1 for value in alone)


def test_uniforms_are_spread_evenly_and_independently() -> None:
    seeds, positions = np.meshgrid(np.arange(200, dtype=np.uint64), np.arange(200, dtype=np.uint64))
    values = uniforms(seeds, positions)
    counts = np.histogram(values, bins=16, range=(0, 1))[0]
    assert abs(counts / counts.mean() - 1).max() < 0.08
    for shifted in (np.roll(values, 1, axis=0), np.roll(values, 1, axis=1)):
        assert abs(np.corrcoef(values.ravel(), shifted.ravel())[0, 1]) < 0.02
