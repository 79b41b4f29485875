"""Policy directories appear whole, carry their version and load with plain transformers."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from envsched.policy.tokenizer import train_tokenizer
from envsched.policy.weights import companions, copy_policy, publishing, save_policy
from envsched.rollouts.engine import StaleWeightsError, check_version


def make_model(tied: bool) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=300,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        intermediate_size=32,
        tie_word_embeddings=tied,
    )
    return Qwen3ForCausalLM(config)


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_saved_is_what_was_there(tied: bool, tmp_path: Path) -> None:
    model = make_model(tied)
    save_policy(model, tmp_path / "policy", 3, {})
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "policy").state_dict()
    assert loaded.keys() == model.state_dict().keys()
    assert all(torch.equal(value, loaded[name]) for name, value in model.state_dict().items())
    check_version(tmp_path / "policy", 3)
    with pytest.raises(StaleWeightsError, match="holds policy version 3, expected 4"):
        check_version(tmp_path / "policy", 4)


def test_the_tokenizer_travels_with_the_weights(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    model = make_model(tied=True)
    model.save_pretrained(first)
    tokenizer = train_tokenizer(["some words to merge"], vocabulary=300)
    tokenizer.save_pretrained(first)
    save_policy(model, second, 1, companions(first))
    loaded = AutoTokenizer.from_pretrained(second)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert loaded.chat_template == tokenizer.chat_template


def test_companions_are_neither_weights_nor_written_anew(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for name in (
        "config.json",
        "version.json",
        "model.safetensors.index.json",
        "model-1.safetensors",
        "x.log",
        "tokenizer.json",
        "chat_template.jinja",
        "merges.txt",
        "spiece.model",
    ):
        (tmp_path / name).write_text(name)
    names = ["chat_template.jinja", "merges.txt", "spiece.model", "tokenizer.json"]
    assert companions(tmp_path) == {name: name.encode() for name in names}


def test_a_copy_is_complete_and_replaces_what_was_there(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "runs" / "policy"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "a").write_text("a")
    (source / "version.json").write_text(json.dumps({"version": 9}))
    target.mkdir(parents=True)
    (target / "old").touch()
    copy_policy(source, target, version=0)
    files = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert files == ["inner/a", "version.json"]
    check_version(target, 0)
    check_version(source, 9)
    assert [path.name for path in target.parent.iterdir()] == ["policy"]


def test_a_failure_while_writing_leaves_the_old_directory(tmp_path: Path) -> None:
    target = tmp_path / "policy"
    target.mkdir()
    (target / "old").write_text("old")

    def fail() -> None:
        with publishing(target) as temporary:
            (temporary / "new").touch()
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert [path.name for path in target.iterdir()] == ["old"]
    with publishing(target) as temporary:  # what the failure left does not mix with the next attempt
        assert list(temporary.iterdir()) == []
    assert list(target.iterdir()) == []
