"""Versions of bfcl-eval: found in folders, and imported side by side."""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from envsched.config import EnvironmentSettings
from envsched.environments.episode import Observation, Say, ToolCall
from envsched.environments.pool import EpisodePool
from envsched.environments.registry import load_registry
from envsched.environments.sources import bfcl_package
from envsched.environments.sources.bfcl_package import find_package, import_part
from envsched.environments.spec import Node

SETTINGS = EnvironmentSettings(source="bfcl", call_seconds=30.0)
needs_bfcl = pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed")
FILE_SYSTEM = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/gorilla_file_system.py"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder with a copy of the installed package, in which `pwd` answers otherwise."""
    spec = find_spec("bfcl_eval")
    assert spec is not None
    assert spec.submodule_search_locations
    installed = Path(spec.submodule_search_locations[0])
    folder = tmp_path / "other"
    for part in ("eval_checker/multi_turn_eval", "data/multi_turn_func_doc"):
        shutil.copytree(installed / part, folder / "bfcl_eval" / part)
    (folder / "bfcl_eval/data/possible_answer").mkdir()
    for file in (installed / "data").glob("**/BFCL_v3_multi_turn_*.json"):
        if "unused" not in str(file):
            shutil.copy(file, folder / "bfcl_eval" / file.relative_to(installed))
    source = folder / FILE_SYSTEM
    source.write_text(source.read_text().replace('"current_working_directory"', '"here"'))
    (folder / "bfcl_eval-9.9.dist-info").mkdir()
    return folder


def play_turn(pool: EpisodePool, node: Node) -> tuple[Observation, Observation]:
    """What `pwd` answers, and what follows the first turn's ground truth."""
    [(handle, _)] = pool.reset([(node, 0)])
    [here] = pool.act([(handle, ToolCall("pwd", {}))])
    for call in node.task.program["ground_truth"][0]:
        pool.act([(handle, ToolCall(call["name"], call["arguments"]))])
    [after] = pool.act([(handle, Say("done"))])
    return here, after


@needs_bfcl
def test_one_worker_plays_two_versions_in_turn(other: Path) -> None:
    nodes = []
    for path in (None, str(other)):
        registry = load_registry(SETTINGS.model_copy(update={"path": path}))
        nodes.append(next(node for node in registry.nodes if node.task.name == "multi_turn_base_0"))
    assert nodes[0].environment.program == {}
    assert nodes[1].environment.program == {"package": str(other), "version": "9.9"}
    for order in ([0, 1, 0, 1], [1, 0, 1]):
        with EpisodePool(SETTINGS.model_copy(update={"readable": [str(other)]})) as pool:
            played = [play_turn(pool, nodes[which]) for which in order]
        keys = [("current_working_directory", "here")[which] for which in order]
        assert [here.text for here, _ in played] == [f'{{"{key}": "/workspace"}}' for key in keys]
        assert [(after.terminated, after.errored) for _, after in played] == [(False, False)] * len(order)


@needs_bfcl
def test_importing_from_a_folder_leaves_the_installed_package_alone(other: Path) -> None:
    program = find_package(str(other)).program
    before = {name: part for name, part in sys.modules.items() if name.startswith("bfcl_eval")}
    theirs = import_part(program, "func_source_code.gorilla_file_system")
    assert theirs.__file__ == str(other / FILE_SYSTEM)
    assert import_part(program, "func_source_code.gorilla_file_system") is theirs
    after = {name: part for name, part in sys.modules.items() if name.startswith("bfcl_eval")}
    assert after == before


@needs_bfcl
def test_another_version_than_was_loaded_is_refused(other: Path) -> None:
    program = find_package(str(other)).program
    (other / "bfcl_eval-9.9.dist-info").rename(other / "bfcl_eval-9.10.dist-info")
    with pytest.raises(ValueError, match="has changed since the environments were loaded"):
        import_part(program, "multi_turn_checker")


@needs_bfcl
@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (".", "no such folder"),
        ("bfcl_eval", "no bfcl_eval/data"),
        ("bfcl_eval-9.9.dist-info", "bfcl_eval-*.dist-info of 0 versions"),
        (
            "bfcl_eval/data/BFCL_v3_multi_turn_miss_func.json",
            "multi-turn records of not all of base, miss_func",
        ),
        ("bfcl_eval/data/possible_answer/BFCL_v3_multi_turn_base.json", "multi-turn records of not all"),
    ],
)
def test_a_folder_that_is_not_the_package_says_how_to_get_it(other: Path, broken: str, found: str) -> None:
    path = other / broken
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    with pytest.raises(ModuleNotFoundError) as raised:
        load_registry(SETTINGS.model_copy(update={"path": str(other)}))
    message = str(raised.value)
    assert message.startswith(f"environments.path (suites.bfcl_v4_path): found {found}")
    assert f" in {other}; " in message
    assert message.endswith("pip install --no-deps --target build/bfcl-v4 bfcl-eval==2026.3.23")
    assert "\n" not in message


@needs_bfcl
@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("BFCL_v3_multi_turn_base.json", '{"id"', '"id"', "line 1: found no JSON"),
        ("BFCL_v3_multi_turn_base.json", "base_0", "base_x", "multi_turn_base_x: found no ground truth"),
        ("BFCL_v3_multi_turn_base.json", '["TwitterAPI"', '["Shell"', r"found classes \['Shell'\]; expected"),
    ],
)
def test_records_of_another_form_are_one_line(
    other: Path, file: str, old: str, new: str, message: str
) -> None:
    path = other / "bfcl_eval/data" / file
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=message) as raised:
        load_registry(SETTINGS.model_copy(update={"path": str(other)}))
    assert "\n" not in str(raised.value)


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfcl_package, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install --no-deps bfcl-eval==2025\.7\.9"):
        load_registry(SETTINGS)
