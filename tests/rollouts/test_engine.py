from pathlib import Path

import pytest

from envsched.config import RolloutSettings, Settings
from envsched.rollouts.engine import (
    Sampling,
    StaleWeightsError,
    check_version,
    generate,
    make_engine,
    resolve_engine,
    write_version,
)
from envsched.rollouts.transformers_engine import TransformersEngine


def test_a_directory_is_accepted_only_as_the_version_it_is_marked_with(tmp_path: Path) -> None:
    write_version(tmp_path, 7)
    check_version(tmp_path, 7)
    with pytest.raises(StaleWeightsError, match="holds policy version 7, expected 8"):
        check_version(tmp_path, 8)


@pytest.mark.parametrize("content", [None, "", "{", "{}", '{"version": "7"}', "[]", "7"])
def test_a_directory_without_a_readable_mark_is_stale(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "version.json").write_text(content)
    with pytest.raises(StaleWeightsError, match=r"version\.json|holds policy version"):
        check_version(tmp_path, 7)


@pytest.mark.parametrize("name", ["transformers", "vllm"])
def test_no_engine_starts_with_stale_weights(policies: list[Path], name: str) -> None:
    settings = Settings.model_validate({"rollouts": {"engine": name}})
    with pytest.raises(StaleWeightsError, match="holds policy version 0, expected 1"):
        make_engine(settings, policies[0], 1)


def test_the_configured_engine_holds_the_version(policies: list[Path], settings: RolloutSettings) -> None:
    engine = make_engine(Settings(rollouts=settings), policies[1], 1)
    assert isinstance(engine, TransformersEngine)
    assert engine.version == 1
    engine.close()


def test_completions_come_in_the_order_of_their_prompts(engine: TransformersEngine) -> None:
    prompts = [[10 + i] * (1 + i % 5) for i in range(12)]
    seeds = range(12)
    sampling = Sampling(1.0, 1.0, 6, stop=tuple(range(0, 600, 4)))
    together = generate(engine, prompts, sampling, seeds)
    assert len({len(completion.token_ids) for completion in together}) > 1
    for prompt, seed, completion in zip(prompts, seeds, together, strict=True):
        assert generate(engine, [prompt], sampling, [seed])[0].token_ids == completion.token_ids
    with pytest.raises(ValueError, match="shorter"):
        generate(engine, prompts, sampling, [1])


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="a GPU decides otherwise")
@pytest.mark.parametrize(
    ("recorded", "model", "chosen"),
    [
        ("vllm", "tiny", "transformers"),
        ("vllm", "smollm2-135m", "vllm"),
        ("transformers", "smollm2-135m", "transformers"),
    ],
)
def test_auto_takes_what_set_up_recorded_except_for_small_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, model: str, chosen: str
) -> None:
    (tmp_path / "envsched-engine").write_text(recorded + "\n")
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    settings = Settings.model_validate({"policy": {"model": model}})
    assert resolve_engine(settings).rollouts.engine == chosen


def test_an_engine_that_is_named_is_kept() -> None:
    settings = Settings.model_validate({"rollouts": {"engine": "vllm"}})
    assert resolve_engine(settings) == settings
