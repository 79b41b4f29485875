"""Every text survives the tokenizer, and what the chat needs is one token each."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from envsched.environments.episode import ToolCall
from envsched.policy.tokenizer import train_tokenizer
from envsched.rollouts.chat import SPECIAL_TOKENS, render_call

NAMES = ["create_order", "cancel_order", "find_user", "refund"]


def texts() -> list[str]:
    rng = random.Random(0)
    calls = [
        ToolCall(rng.choice(NAMES), {"user": f"u{rng.randrange(90)}", "amount": rng.randrange(500)})
        for _ in range(300)
    ]
    written = [render_call(call).replace("<tool_call>", "").replace("</tool_call>", "") for call in calls]
    return [*written, *["assistant\n", "tool\n", "user\n", "system\n"] * 50, "Refund the order of user u7."]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return train_tokenizer(texts(), vocabulary=600)


def encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


@given(
    st.lists(
        st.one_of(st.text(max_size=20), st.sampled_from([*SPECIAL_TOKENS, '{"name": "', " of ", "\n", "  "])),
        max_size=8,
    ).map("".join)
)
def test_round_trip_loses_nothing(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    assert tokenizer.decode(encode(tokenizer, text), skip_special_tokens=False) == text


@pytest.mark.parametrize(
    "text", [*SPECIAL_TOKENS, "assistant\n", "tool\n", '{"name": "', '", "arguments": {"']
)
def test_the_fixed_parts_of_the_chat_are_single_tokens(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    assert len(encode(tokenizer, text)) == 1


def test_a_message_ends_with_the_stop_token(tokenizer: PreTrainedTokenizerFast) -> None:
    assert tokenizer.eos_token == "<|im_end|>"
    assert encode(tokenizer, "done<|im_end|>")[-1] == tokenizer.eos_token_id
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


def test_the_same_texts_give_the_same_tokenizer(tokenizer: PreTrainedTokenizerFast) -> None:
    again = train_tokenizer(texts(), vocabulary=600)
    assert again.get_vocab() == tokenizer.get_vocab()
    assert len(tokenizer) <= 600


def test_a_written_tokenizer_reads_the_same(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = texts()[0] + "<|im_end|>"
    assert encode(loaded, text) == encode(tokenizer, text)
    message = [{"role": "user", "content": "hello"}]
    assert loaded.apply_chat_template(message, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>user\nhello<|im_end|><|im_start|>assistant\n"
    )
