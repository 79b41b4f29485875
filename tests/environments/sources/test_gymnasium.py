"""Environments with gymnasium's interface, played in workers."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Action, Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import load_registry

GAMES = '''
import random


class Guess:
    """Guess a number up to 9; half a point for being near, a whole one for being right."""

    def reset(self, seed=None):
        self.number = random.Random(seed).randrange(10)
        self.left = 3
        return "Guess!", {}

    def step(self, action):
        self.left -= 1
        if not action.isdigit():
            return "a number, please", 0.0, False, self.left == 0, {}
        if int(action) == self.number:
            return "right", 1.0, True, False, {}
        near = abs(int(action) - self.number) == 1
        return {"near": near}, 0.5 if near else 0.0, False, self.left == 0, {}


class Old:
    """Four values, and no info at reset."""

    def reset(self, seed=None):
        return ["hello", seed]

    def step(self, action):
        return "bye", -2.0, True, {}


def broken():
    raise RuntimeError("no such game")


class factories:
    guess = Guess
'''


@pytest.fixture
def games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "games.py").write_text(GAMES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "games"


def settings(path: str | None, reward: str = "graded") -> EnvironmentSettings:
    return EnvironmentSettings.model_validate({"source": "gymnasium", "path": path, "reward": reward})


def play(options: EnvironmentSettings, actions: list[Action]) -> list[Observation]:
    """All observations of the first task, until it ends."""
    node = load_registry(options).nodes[0]
    with EpisodePool(options) as pool:
        [(handle, first)] = pool.reset([(node, 7)])
        seen = [first]
        for action in actions:
            if seen[-1].terminated:
                break
            seen += pool.act([(handle, action)])
    return seen


def act(text: str) -> ToolCall:
    return ToolCall("act", {"action": text})


def test_every_seed_is_a_task(games: str) -> None:
    registry = load_registry(settings("games:Guess, games:factories.guess"))
    assert len(registry.environments) == 2
    assert len(registry.nodes) == 200
    assert 20 < len(registry.heldout) < 60


def test_a_play_from_start_to_end(games: str) -> None:
    seen = play(settings("games:Guess"), [act(str(number)) for number in range(10)])
    assert seen[0].text == "Guess!"
    assert [answer.text for answer in seen[1:]] != []
    assert seen[-1].terminated
    again = play(settings("games:Guess"), [act(str(number)) for number in range(10)])
    assert seen == again, "the task's seed decides, whatever the rollout's"


def test_rewards_add_up_within_bounds(games: str) -> None:
    number = next(n for n in range(10) if play(settings("games:Guess"), [act(str(n))])[-1].reward == 1)
    near = str(number - 1 if number else number + 1)
    graded = play(settings("games:Guess"), [act(near), act(near), Say(near)])
    assert graded[-1].terminated
    assert graded[-1].reward == 1.0, "1.5 is too much"
    assert play(settings("games:Guess"), [act(near), act("x"), act("x")])[-1].reward == 0.5
    assert play(settings("games:Guess", "binary"), [act(near), act("x"), act("x")])[-1].reward == 0.0
    assert play(settings("games:Old"), [act("x")])[-1].reward == 0.0, "below 0 is too little"


def test_the_older_interface_works_too(games: str) -> None:
    first, last = play(settings("games:Old"), [act("x")])
    assert first.text == '["hello", 0]'
    assert (last.text, last.terminated) == ("bye", True)


def test_wrong_calls_are_answered(games: str) -> None:
    wrong: list[Action] = [ToolCall("jump", {}), ToolCall("act", {}), ToolCall("act", {"action": 3})]
    assert {answer.kind for answer in play(settings("games:Guess"), wrong)[1:]} == {"error"}


def test_a_factory_that_fails_is_a_failed_rollout(games: str) -> None:
    [first] = play(settings("games:broken"), [])
    assert first.errored
    assert "no such game" in first.error


@pytest.mark.parametrize("path", [None, "games", "games:", "a b:c"])
def test_what_is_no_factory_is_told(path: str | None) -> None:
    with pytest.raises(ValueError, match=r"environments\.path: found"):
        load_registry(settings(path))


def test_a_missing_module_is_told() -> None:
    with pytest.raises(ImportError, match=r"environments\.path: found no module nowhere_at_all"):
        load_registry(settings("nowhere_at_all:f"))


def test_what_starts_threads_when_imported_can_be_loaded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "busy.py").write_text("import threading\nthreading.Thread(target=print).start()\n")
    (tmp_path / "lazy_games.py").write_text(f"{GAMES}\n\ndef busy():\n    import busy\n\n    return Old()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    firsts = {}
    for preload in ((), ("busy",)):
        settings = EnvironmentSettings(source="gymnasium", path="lazy_games:busy", preload=list(preload))
        with EpisodePool(settings) as pool:
            ((_, firsts[preload]),) = pool.reset([(load_registry(settings).nodes[0], 0)])
    assert firsts[()].error == "PermissionError: starting a thread is not allowed in an environment"
    assert firsts["busy",].text == '["hello", 0]'
    missing = EnvironmentSettings(source="gymnasium", path="lazy_games:Old", preload=["no_such_module"])
    told = "did not start: ModuleNotFoundError: No module named 'no_such_module'"
    with pytest.raises(ImportError, match=told), EpisodePool(missing):
        pass


GEM = """
import gem


def guess():
    return gem.make("game:GuessTheNumber-v0-easy")


def hanoi():
    return gem.make("game:TowerofHanoi-v0-easy")
"""


def test_games_of_the_real_gem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("gem") is None:
        pytest.skip("gem-llm is not installed")
    (tmp_path / "gem_games.py").write_text(GEM)
    monkeypatch.syspath_prepend(tmp_path)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    path = "gem_games:guess, gem_games:hanoi"
    settings = EnvironmentSettings(source="gymnasium", path=path, reward="graded", preload=["gem"])
    nodes = load_registry(settings).nodes
    guess = next(node for node in nodes if node.environment.name == "gem_games.guess")
    hanoi = next(node for node in nodes if node.environment.name == "gem_games.hanoi")
    with EpisodePool(settings) as pool:
        (first, said), (second, again), (other, _) = pool.reset([(guess, 0), (guess, 1), (hanoi, 0)])
        assert said.text == again.text
        assert said.text.startswith("You are playing Guess The Number")
        low, high = 1, 10
        for _ in range(4):  # halving finds one of ten numbers in four guesses
            middle = (low + high) // 2
            answer = pool.act([(first, Say(f"\\boxed{{{middle}}}"))])[0]
            if answer.terminated:
                break
            low, high = (middle + 1, high) if "higher" in answer.text else (low, middle - 1)
        assert (answer.terminated, answer.reward, answer.errored) == (True, 1.0, False)
        wrong = pool.act([(second, Say("no box")), (other, ToolCall("act", {"action": "\\boxed{A C}"}))])
    assert [one.errored for one in wrong] == [False, False]
