"""Models made from a config have the sizes they are named for and depend on their seed alone."""

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from envsched.policy.model import SIZES, new_model
from envsched.policy.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("an", "en", "in", "on") for c in "aeioumnrst"]
    return train_tokenizer([" ".join(words)], vocabulary=1024)


@pytest.mark.parametrize(("size", "millions"), [("tiny", 1), ("small", 3), ("base", 10)])
def test_sizes(size: str, millions: int, tokenizer: PreTrainedTokenizerFast) -> None:
    assert len(tokenizer) > 700
    with torch.device("meta"):
        model = new_model(size, tokenizer, context=512, seed=0)
    assert model.num_parameters() == pytest.approx(millions * 1e6, rel=0.2)


def test_every_size_is_tried() -> None:
    assert set(SIZES) == {"tiny", "small", "base"}


def test_weights_follow_the_seed_and_leave_the_global_generator_alone(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, same, other = (new_model("tiny", tokenizer, 512, seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_config_knows_the_tokenizer_and_the_context(tokenizer: PreTrainedTokenizerFast) -> None:
    config = new_model("tiny", tokenizer, context=256, seed=0).config
    assert (config.vocab_size, config.max_position_embeddings) == (len(tokenizer), 256)
    assert (config.eos_token_id, config.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)
