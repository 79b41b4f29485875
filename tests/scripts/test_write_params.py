from pathlib import Path

from envsched.config import Settings, load_settings
from scripts import write_params

PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"


def test_params_yaml_shows_every_default():
    assert PARAMS.read_text() == write_params.render(), "run `make params`"


def test_params_yaml_reads_back_as_the_defaults():
    assert load_settings(PARAMS) == Settings()
