"""What the documentation shows works."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import load_registry
from envsched.scheduling.envsched import EnvSched
from envsched.scheduling.registry import SCHEDULERS

DOCS = Path(__file__).parents[1] / "docs"
SCHEDULER = (DOCS / "scheduler.md").read_text()
ENVIRONMENTS = (DOCS / "environments.md").read_text()


def test_the_library_works_alone_as_shown(capsys: Any) -> None:
    [code] = re.findall(r"```python\n(.*?)```", SCHEDULER, re.DOTALL)
    shown: dict[str, Any] = {"__name__": "example"}
    exec(code, shown)
    assert len(set(shown["batch"].keys)) == 4
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(shown["batch"].keys)
    again = EnvSched(shown["tasks"], seed=1, group_size=4)
    again.load_state_dict(json.loads(json.dumps(shown["state"])))
    assert again.next_batch(4, 4) == shown["scheduler"].next_batch(4, 4)


def test_a_source_of_ones_own_works_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"```python\n(.*?)```", ENVIRONMENTS, re.DOTALL)
    assert len(code.splitlines()) < 40
    (tmp_path / "my_games").mkdir()
    (tmp_path / "my_games" / "numbers.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    settings = EnvironmentSettings(source="my_games.numbers")
    nodes = load_registry(settings).train
    assert [node.task.instruction for node in nodes] == [
        "A number up to 10.",
        "A number up to 99.",
    ]
    with EpisodePool(settings) as pool:
        [(handle, first)] = pool.reset([(nodes[0], 0)])
        assert first.role == "user"
        guesses = [{"number": 3}, {"number": "3"}, {"number": 12}, {"number": 10}]
        answers = [pool.act([(handle, ToolCall("guess", guess))])[0] for guess in guesses]
    assert [answer.text for answer in answers[:1] + answers[2:]] == ["too low", "too high", "right"]
    assert answers[1].kind == "error"
    assert (answers[-1].reward, answers[-1].terminated) == (1.0, True)


def test_every_baseline_is_named() -> None:
    assert set(SCHEDULERS) - {"envsched"} <= set(re.findall(r"`(\w+)`", SCHEDULER))
