"""A byte-level BPE tokenizer trained on a suite, with the chat's special tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from envsched.rollouts.chat import CHAT_TEMPLATE, SPECIAL_TOKENS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

CONNECTIVES = (
    "a",
    "an",
    "and",
    "at",
    "by",
    "for",
    "from",
    "in",
    "is",
    "it",
    "of",
    "on",
    "or",
    "the",
    "then",
    "to",
    "with",
)
"""Spaces belong to these words, so that a content word is one and the same token in a sentence, in a
tool's result and inside JSON: copying it then needs no translation, which small models learn badly."""

PATTERN = "|".join(
    [
        r"(?:system|user|assistant|tool)\n",  # the roles of the chat
        r'\{"name": "|", "arguments": \{"?|": "|", "|"\}\}|\}\}|": |, "',  # the fixed parts of a tool call
        rf"(?: (?:{'|'.join(CONNECTIVES)})(?![A-Za-z]))+ ?",
        r", |: |_?[A-Za-z]+|\d|\s+|[^\sA-Za-z\d]+",
    ]
)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer of at most `vocabulary` tokens; the same texts give the same tokenizer."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        additional_special_tokens=[t for t in SPECIAL_TOKENS if t not in ("<|endoftext|>", "<|im_end|>")],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
