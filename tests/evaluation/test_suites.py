"""What belongs to each suite, how much of it, and what is said where something is missing."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from envsched.config import load_settings
from envsched.evaluation.suites import BENCHMARKS, SUITES, load_suite

ACEBENCH = Path(__file__).parents[3] / "shared" / "data" / "acebench"
NEEDS = {"bfcl_v3": "bfcl_eval", "tau2": "tau2"}
SIZES = {
    "bfcl_v3": {"base": 200, "miss_func": 200, "miss_param": 200, "long_context": 200},
    "tau2": {"retail": 114, "airline": 50, "telecom": 114},
    "acebench": {"multi_step": 20, "multi_turn": 30},
}


def overrides(name: str) -> list[str]:
    """Settings under which the suite can be loaded; skips the test where it cannot."""
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"the package {NEEDS[name]} is not installed")
    if name == "acebench" and not ACEBENCH.is_dir():
        pytest.skip(f"ACEBench records are not at {ACEBENCH}")
    return [f"suites.acebench_path={ACEBENCH}"] if name == "acebench" else []


@pytest.mark.parametrize("name", SIZES)
def test_a_suite_has_all_its_tasks(name: str) -> None:
    suite = load_suite(name, load_settings(None, overrides(name)))
    assert {subset: len(nodes) for subset, nodes in suite.subsets.items()} == SIZES[name]
    assert suite.has_user == (name != "bfcl_v3")


def test_a_drawn_part_is_of_the_same_version() -> None:
    whole = load_suite("synthetic", load_settings(None))
    part = load_suite("synthetic", load_settings(None, ["suites.tasks=10"]))
    assert {subset: len(nodes) for subset, nodes in part.subsets.items()} == {"tasks": 10, "environments": 10}
    assert whole.version == part.version
    drawn, all_of_them = ({node.key for node in suite.subsets["tasks"]} for suite in (part, whole))
    assert drawn < all_of_them


@pytest.mark.parametrize("name", ["tau", "acebench"])
def test_where_to_get_a_suite_that_is_missing(name: str) -> None:
    with pytest.raises((ValueError, ImportError), match=r"git clone https://github\.com/"):
        load_suite(name, load_settings(None))


def test_the_literatures_benchmarks_are_suites() -> None:
    assert set(BENCHMARKS.values()) <= set(SUITES)
