"""Settings: where values come from, and what is said of wrong ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.config import Settings, SettingsError, load_settings

ROOT = Path(__file__).parents[1]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    return path


def complaint(*overrides: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(None, overrides)
    return str(caught.value)


def test_without_a_file_the_defaults_hold() -> None:
    assert load_settings(None) == Settings()


def test_overrides_win_over_the_file_and_values_over_both(tmp_path: Path) -> None:
    path = write(tmp_path, "train: {steps: 2, seed: 2, batch_size: 2}\n")
    found = load_settings(path, ["train.seed=3", "train.batch_size=3"], {"train": {"batch_size": 4}}).train
    assert (found.steps, found.seed, found.batch_size) == (2, 3, 4)
    assert found.group_size == Settings().train.group_size


def test_the_last_of_several_overrides_wins() -> None:
    assert load_settings(None, ["train.steps=2", "train.steps=3"]).train.steps == 3


@pytest.mark.parametrize("text", ["1e-4", "1E-4", "1.0e-4", "0.0001", "0.1e-3"])
def test_scientific_notation_is_a_number(text: str) -> None:
    assert load_settings(None, [f"update.learning_rate={text}"]).update.learning_rate == 1e-4


def test_scientific_notation_in_the_file_is_a_number(tmp_path: Path) -> None:
    path = write(tmp_path, "update: {learning_rate: 1e-4}\n")
    assert load_settings(path).update.learning_rate == 1e-4


def test_nested_values_may_be_written_in_flow_style() -> None:
    found = load_settings(None, ["update={betas: [0.8, 0.95], epochs: 2}", "update.minibatches=3"]).update
    assert (found.betas, found.epochs, found.minibatches) == ((0.8, 0.95), 2, 3)


def test_null_and_text_are_values() -> None:
    found = load_settings(None, ["environments.limit=5", "environments.limit=null", "policy.model=/a=b"])
    assert found.environments.limit is None
    assert found.policy.model == "/a=b"


@given(st.floats(min_value=1e-12, max_value=1.0))
def test_every_rate_survives_being_typed(rate: float) -> None:
    assert load_settings(None, [f"update.learning_rate={rate!r}"]).update.learning_rate == rate


def test_resolved_settings_give_themselves_again() -> None:
    settings = load_settings(None, ["train.steps=7", "update.betas=[0.5, 0.6]"])
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("train.step=5", "train.step: no such setting; did you mean steps?"),
        ("trian.steps=5", "trian: no such setting; did you mean train?"),
        ("train.zzz=5", "train.zzz: no such setting; allowed: steps, batch_size"),
        ("train.steps=0", "train.steps: found 0; input should be greater than or equal to 1"),
        ("train.steps=1.5", "train.steps: found 1.5; input should be a valid integer"),
        ("train.steps=many", 'train.steps: found "many"; input should be a valid integer'),
        ("train.group_size=1", "train.group_size: found 1; input should be greater than or equal to 2"),
        ("update.zero_stage=4", "update.zero_stage: found 4; input should be 0, 1, 2 or 3"),
        ("update.betas=[0.9]", "update.betas.1: found [0.9]; field required"),
        ("update.betas=[0.9, 2]", "update.betas.1: found 2; input should be less than or equal to 1"),
        ("update=5", "update: found 5; input should be"),
        ("environments.reward=x", "environments.reward: found \"x\"; input should be 'binary', 'graded'"),
        ("schedule.scheduler=greedy", 'schedule.scheduler: found "greedy"; allowed: dapo, difficulty_pools'),
        ("rollouts.turn_tokens=600", "rollouts.turn_tokens: 600 must be below rollouts.context_tokens (512)"),
    ],
)
def test_a_wrong_setting_gets_one_line_with_name_value_and_what_is_allowed(
    override: str, expected: str
) -> None:
    line = complaint(override)
    assert line.startswith(expected)
    assert "\n" not in line


def test_every_wrong_setting_is_told() -> None:
    lines = complaint("train.steps=0", "train.seed=-1", "nonsense.a=1").splitlines()
    assert [line.split(":")[0] for line in lines] == ["train.steps", "train.seed", "nonsense"]


@pytest.mark.parametrize("override", ["train.steps", "=5", " =5", "train.steps=[1", "train.steps=a: b: c"])
def test_what_is_no_override_is_told(override: str) -> None:
    assert complaint(override).startswith(f"override {override!r}: ")


def test_faults_of_the_file_name_it(tmp_path: Path) -> None:
    for text, expected in [
        ("train: {steps: 0}", "train.steps: found 0"),
        ("- a\n- b\n", "found list; expected a mapping"),
        ("a: [", "not valid YAML"),
    ]:
        path = write(tmp_path, text)
        with pytest.raises(SettingsError, match=expected) as caught:
            load_settings(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.yaml"):
        load_settings(tmp_path / "nowhere.yaml")


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "# nothing\n")) == Settings()


def test_the_file_of_the_repository_shows_every_default() -> None:
    assert load_settings(ROOT / "params.yaml") == Settings()
