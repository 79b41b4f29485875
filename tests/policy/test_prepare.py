"""The initial policy is made once, or an error says what is wrong and nothing is left behind."""

import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from envsched.config import Settings, SettingsError
from envsched.policy.prepare import PolicyError, initial_policy, tool_format, warm_start_directory
from envsched.rollouts.engine import check_version


def make_settings(build: Path, **blocks: Any) -> Settings:
    policy = {"build_directory": str(build), **blocks.pop("policy", {})}
    return Settings.model_validate({"policy": policy, **blocks})


def no_report(step: int, loss: float) -> None:
    raise AssertionError("nothing should have been trained")


def test_a_missing_model_directory_is_told_in_one_line(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    with pytest.raises(SettingsError) as caught:
        initial_policy(make_settings(tmp_path, policy={"model": missing}))
    line = str(caught.value)
    assert "\n" not in line
    for part in ("policy.model", repr(missing), "tiny", "small", "base", "smollm2-135m", "directory"):
        assert part in line


def test_a_hugging_face_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    settings = make_settings(tmp_path / "build", policy={"model": str(tmp_path)})
    assert initial_policy(settings, no_report) == tmp_path
    assert not (tmp_path / "build").exists()
    assert tool_format(settings) == "json"


def test_what_is_there_already_is_not_made_again(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    directory = warm_start_directory(settings)
    directory.mkdir()
    (directory / "mark").touch()
    assert initial_policy(settings, no_report) == directory
    assert [path.name for path in directory.iterdir()] == ["mark"]
    assert tool_format(settings) == "compact"


def test_the_directory_depends_on_what_makes_the_policy_and_nothing_else(tmp_path: Path) -> None:
    base = warm_start_directory(make_settings(tmp_path))
    same = [{"train": {"steps": 7}}, {"rollouts": {"temperature": 0.5}}, {"update": {"epochs": 2}}]
    other = [
        {"warm_start": {"steps": 7}},
        {"warm_start": {"noise": 0.5}},
        {"policy": {"model": "small"}},
        {"policy": {"vocabulary": 2000}},
        {"environments": {"suite_seed": 1}},
        {"rollouts": {"context_tokens": 1024}},
    ]
    assert {warm_start_directory(make_settings(tmp_path, **blocks)) for blocks in same} == {base}
    found = {warm_start_directory(make_settings(tmp_path, **blocks)) for blocks in other}
    assert len(found - {base}) == len(other)


def test_a_failed_warm_start_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(PolicyError, match="warm start of tiny ended with status 1"):
        initial_policy(make_settings(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_warm_start_makes_a_policy_that_transformers_loads(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "build", warm_start={"steps": 2, "batch_size": 4})
    steps: list[int] = []
    directory = initial_policy(settings, lambda step, loss: steps.append(step))
    assert steps == [1, 2]
    check_version(directory, 0)
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]
    model, tokenizer = (
        AutoModelForCausalLM.from_pretrained(directory),
        AutoTokenizer.from_pretrained(directory),
    )
    assert model.config.vocab_size == len(tokenizer)
    assert initial_policy(settings, no_report) == directory
