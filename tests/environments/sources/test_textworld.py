"""Games made and played with the real package."""

import json
import shutil
from pathlib import Path

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Heard, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.records import RecordError
from envsched.environments.registry import Registry, load_registry

textworld = pytest.importorskip("textworld", reason="the extra textworld is not installed")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    for number, place in enumerate(("one", "two/small", "two/large")):
        options = textworld.GameOptions()
        options.seeds, options.nb_rooms, options.nb_objects, options.quest_length = number, 2, 4, 2
        options.path = str(folder / f"{place}.z8")
        (folder / place).parent.mkdir(exist_ok=True)
        textworld.make(options)
    return folder


def loaded(folder: Path, **changes: object) -> tuple[EnvironmentSettings, Registry]:
    values = {"source": "textworld", "path": str(folder), "call_seconds": 60, **changes}
    settings = EnvironmentSettings.model_validate(values)
    return settings, load_registry(settings)


def test_games_are_tasks_and_following_the_walkthrough_wins(games: Path) -> None:
    settings, registry = loaded(games)
    assert [environment.name for environment in registry.environments] == [games.name, "two"]
    assert sorted(node.task.name for node in registry.nodes) == ["large", "one", "small"]
    with EpisodePool(settings) as pool:
        for node in registry.nodes:
            path = games / node.task.program["game"]
            walkthrough = json.loads(path.with_suffix(".json").read_text())["metadata"]["walkthrough"]
            (handle, first), (idle, again) = pool.reset([(node, 0), (node, 1)])
            assert first.text == again.text
            assert first.text.startswith(node.task.instruction)
            assert "-=" in first.text
            assert "$$" not in first.text
            answers = [pool.act([(handle, ToolCall("command", {"text": line}))])[0] for line in walkthrough]
            assert [answer.terminated for answer in answers] == [False] * (len(answers) - 1) + [True]
            assert answers[-1].reward == 1.0
            assert "RESTART" not in answers[-1].text
            looked = pool.act([(idle, Say("look"))])[0]
            assert (looked.terminated, looked.kind, looked.errored) == (False, "communicate", False)


def test_many_games_at_once_do_not_mix(games: Path) -> None:
    settings, registry = loaded(games)
    with EpisodePool(settings) as pool:
        for _ in range(3):  # more in all than a worker can hold at once
            opened = pool.reset([(node, 0) for node in registry.nodes for _ in range(30)])
            handles = [handle for handle, _ in opened]
            firsts = [answer.text for answer in pool.act([(handle, Say("look")) for handle in handles])]
            assert [len(set(firsts[start : start + 30])) for start in (0, 30, 60)] == [1, 1, 1]
            assert len(set(firsts)) == 3
            pool.close(handles)


def test_wrong_calls_are_told(games: Path) -> None:
    settings, registry = loaded(games)
    node = registry.nodes[0]
    actions = [ToolCall("command", {"text": 3}), ToolCall("go", {"text": "north"}), Heard("hello")]
    with EpisodePool(settings) as pool:
        opened = pool.reset([(node, 0)] * 3)
        answers = pool.act([(handle, action) for (handle, _), action in zip(opened, actions, strict=True)])
    assert {answer.text for answer in answers} == {"error: call command with the command as text"}


def test_what_is_wrong_with_a_game_is_told_and_a_changed_one_is_another(games: Path, tmp_path: Path) -> None:
    shutil.copytree(games, tmp_path / "games")
    before = {node.key for node in loaded(games)[1].nodes}
    (tmp_path / "games/two/small.json").write_text("{}")
    with pytest.raises(RecordError, match=r"small.json: small: objective: found None; expected a file with"):
        loaded(tmp_path / "games")
    shutil.copy(games / "one.json", tmp_path / "games/two/small.json")
    shutil.copy(games / "one.z8", tmp_path / "games/two/small.z8")
    after = {node.key for node in loaded(tmp_path / "games")[1].nodes}
    assert len(before & after) < 3
    with pytest.raises(ValueError, match=r"found no \*.z8"):
        loaded(tmp_path / "empty")
