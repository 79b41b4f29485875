"""Models made from a config: the Qwen3 architecture in sizes that train on a CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM


@dataclass(frozen=True)
class Size:
    """Shape of one model."""

    hidden: int
    layers: int
    heads: int
    intermediate: int


SIZES = {
    "tiny": Size(hidden=128, layers=5, heads=4, intermediate=384),
    "small": Size(hidden=192, layers=6, heads=6, intermediate=576),
    "base": Size(hidden=320, layers=8, heads=10, intermediate=864),
}
"""About 1, 3 and 10 million parameters."""


def model_config(size: str, tokenizer: PreTrainedTokenizerBase, context: int) -> Qwen3Config:
    """Config of a model of one of `SIZES` for contexts of up to `context` tokens."""
    from transformers import Qwen3Config

    shape = SIZES[size]
    return Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads // 2,
        head_dim=shape.hidden // shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=context,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        initializer_range=shape.hidden**-0.5,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def new_model(size: str, tokenizer: PreTrainedTokenizerBase, context: int, seed: int) -> Qwen3ForCausalLM:
    """A randomly initialised model, the same for the same seed."""
    import torch
    from transformers import Qwen3ForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(model_config(size, tokenizer, context))
