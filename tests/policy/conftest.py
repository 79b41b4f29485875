"""A policy so small that every update takes milliseconds, and rollouts to update it with."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from envsched.history.store import write_trajectories
from envsched.rollouts.rollout import Group, Rollout

VOCABULARY = 300


def make_group(key: str, rewards: Sequence[float], rng: random.Random) -> Group:
    """Rollouts of random tokens, with engine log-probabilities that an untrained policy may have."""
    rollouts = []
    for sample, reward in enumerate(rewards):
        length = rng.randint(8, 40)
        generated = [False] * 4 + [rng.random() < 0.6 for _ in range(length - 4)]
        tokens = [rng.randrange(VOCABULARY) for _ in range(length)]
        logprobs = [rng.uniform(-7, -4) if g else 0.0 for g in generated]
        rollouts.append(Rollout(key, sample, 0, tokens, generated, logprobs, reward))
    rollouts[0].errored = rng.random() < 0.2
    return Group(key, rollouts)


@pytest.fixture(scope="session")
def tiny_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a randomly initialised policy."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    directory = tmp_path_factory.mktemp("policy") / "initial"
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Qwen3ForCausalLM(config).save_pretrained(directory)
    (directory / "tokenizer_config.json").write_text('{"made_for": "a test"}')
    return directory


@pytest.fixture(scope="session")
def steps() -> list[list[Group]]:
    """The groups of four steps; nothing can be learnt from the third."""
    rng = random.Random(0)
    rewards = [[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 1.0], [0.0] * 4, [0.0, 0.25, 0.5, 1.0]]
    informative = [[make_group(f"e/t{i}", r, rng) for i, r in enumerate(rewards)] for _ in range(3)]
    equal = [make_group(f"e/t{i}", [float(i)] * 4, rng) for i in range(2)]
    return [*informative[:2], equal, informative[2]]


@pytest.fixture(scope="session")
def trajectories(steps: list[list[Group]], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Those steps as files."""
    folder = tmp_path_factory.mktemp("trajectories")
    paths = [folder / f"step-{number}.parquet" for number in range(len(steps))]
    for path, groups in zip(paths, steps, strict=True):
        write_trajectories(path, groups)
    return paths
