"""An overlay behaves like a deep copy of its base, at the price of what is touched."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from envsched.environments.sources.overlay import Overlay

KEYS = st.sampled_from("abcde")
STEPS = st.lists(st.tuples(st.sampled_from(["touch", "change", "set", "delete"]), KEYS, st.integers(0, 3)))


@given(st.dictionaries(KEYS, st.fixed_dictionaries({"n": st.integers(0, 3)})), STEPS)
def test_an_overlay_is_like_a_copy(
    base: dict[str, dict[str, int]], steps: list[tuple[str, str, int]]
) -> None:
    kept = deepcopy(base)
    overlay, copy = Overlay(base), deepcopy(base)
    for verb, key, number in steps:
        assert (key in overlay) == (key in copy)
        if verb == "set":
            overlay[key] = {"n": number}
            copy[key] = {"n": number}
        elif key in copy and verb == "delete":
            del overlay[key], copy[key]
        elif key in copy:
            assert overlay[key] == copy[key]
            if verb == "change":
                overlay[key]["n"] = copy[key]["n"] = number
        assert dict(overlay.items()) == copy
        assert sorted(r["n"] for r in overlay.values()) == sorted(r["n"] for r in copy.values())
        assert len(overlay) == len(copy)
        assert set(overlay) == set(copy)
    assert base == kept
    assert (overlay.changes() == {}) == (copy == kept)


@given(st.dictionaries(KEYS, st.fixed_dictionaries({"n": st.integers(0, 3)})), STEPS, STEPS)
def test_equal_changes_mean_equal_tables(
    base: dict[str, dict[str, int]], first: list[tuple[str, str, int]], second: list[tuple[str, str, int]]
) -> None:
    tables = []
    for steps in (first, second):
        overlay = Overlay(base)
        for verb, key, number in steps:
            if verb == "set":
                overlay[key] = {"n": number}
            elif verb == "delete":
                overlay.pop(key, None)
            elif key in overlay:
                overlay[key]["n"] = number
        tables.append(overlay)
    one, other = tables
    assert (one.changes() == other.changes()) == (dict(one.items()) == dict(other.items()))
