"""Outcomes and trajectories come back as they were written, and what is wrong is named."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.history.store import (
    HistoryError,
    outcomes,
    read_history,
    read_trajectories,
    write_outcomes,
    write_trajectories,
)
from envsched.rollouts.rollout import Group, Rollout

KINDS = ["search", "read", "create", "update", "finish", "error"]


@st.composite
def rollouts(draw: st.DrawFn, key: str, sample: int) -> Rollout:
    length = draw(st.integers(0, 6))
    errored = draw(st.booleans())
    return Rollout(
        key=key,
        sample=sample,
        policy_step=draw(st.integers(0, 9)),
        token_ids=draw(st.lists(st.integers(0, 2**31 - 1), min_size=length, max_size=length)),
        generated=draw(st.lists(st.booleans(), min_size=length, max_size=length)),
        logprobs=draw(st.lists(st.floats(-100, 0, width=32), min_size=length, max_size=length)),
        reward=draw(st.floats(0, 1)),
        errored=errored,
        error=draw(st.text(max_size=8)) if errored else "",
        truncated=draw(st.booleans()),
        trace=draw(st.lists(st.sampled_from(KINDS), max_size=5)),
        turns=draw(st.integers(0, 20)),
        calls=draw(st.integers(0, 20)),
        seconds=draw(st.floats(0, 1e6)),
    )


@st.composite
def group_lists(draw: st.DrawFn) -> list[Group]:
    names = draw(st.lists(st.integers(0, 30), unique=True, max_size=5))
    keys = [f"shop-{number % 3}/task {number}#{number:012x}" for number in names]
    return [
        Group(key, [draw(rollouts(key, sample)) for sample in range(draw(st.integers(1, 4)))]) for key in keys
    ]


def group(key: str = "shop/buy#0", rewards: tuple[float, ...] = (0.0, 1.0)) -> Group:
    return Group(
        key,
        [
            Rollout(key, sample, 0, [1, 2, 3], [False, True, True], [0.0, -0.5, -0.25], reward)
            for sample, reward in enumerate(rewards)
        ],
    )


@given(group_lists())
@settings(deadline=None, max_examples=25, derandomize=True)
def test_trajectories_come_back_whole(tmp_path_factory: pytest.TempPathFactory, groups: list[Group]) -> None:
    path = tmp_path_factory.mktemp("run") / "step-000001.parquet"
    write_trajectories(path, groups)
    assert read_trajectories(path) == groups


@given(group_lists(), st.integers(0, 5), st.integers(0, 5))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_outcomes_tell_what_the_rollouts_were(
    tmp_path_factory: pytest.TempPathFactory, groups: list[Group], drawn: int, delay: int
) -> None:
    directory = tmp_path_factory.mktemp("history")
    write_outcomes(directory / "step-000001.parquet", groups, drawn, drawn + delay)
    read = outcomes(read_history(directory))
    assert [outcome.key for outcome in read] == [group.key for group in groups]
    for outcome, played in zip(read, groups, strict=True):
        members = played.rollouts
        assert (outcome.drawn_step, outcome.observed_step) == (drawn, drawn + delay)
        assert outcome.rewards == tuple(r.reward for r in members)
        assert outcome.errored == tuple(r.errored for r in members)
        assert outcome.truncated == tuple(r.truncated for r in members)
        assert outcome.tokens == tuple(sum(r.generated) for r in members)
        assert outcome.traces == tuple(tuple(r.trace) for r in members)
        texts = Counter(r.error for r in members if r.error)
        assert (texts[outcome.error] == max(texts.values())) if texts else outcome.error == ""


def test_written_table_is_the_one_that_is_read(tmp_path: Path) -> None:
    written = write_outcomes(tmp_path / "step-000003.parquet", [group("a/x#1"), group("b/y#2")], 3)
    pd.testing.assert_frame_equal(read_history(tmp_path), written)
    assert written["environment"].tolist() == ["a", "a", "b", "b"]
    assert written[["prompt_tokens", "generated_tokens", "total_tokens"]].iloc[0].tolist() == [1, 2, 3]


def test_history_is_read_in_order_of_step(tmp_path: Path) -> None:
    for step in (10, 2, 1):
        write_outcomes(tmp_path / f"step-{step:06d}.parquet", [group()], step)
    assert read_history(tmp_path)["drawn_step"].drop_duplicates().tolist() == [1, 2, 10]


def test_groups_drawn_at_different_steps_share_a_file(tmp_path: Path) -> None:
    late = [group("a/x#1"), group("a/x#1"), group("b/y#2")]
    table = write_outcomes(tmp_path / "step-000005.parquet", late, [5, 4, 4])
    steps = [(o.key, o.drawn_step, o.observed_step) for o in outcomes(table)]
    assert steps == [("a/x#1", 5, 5), ("a/x#1", 4, 5), ("b/y#2", 4, 5)]


def test_no_history_is_an_empty_table(tmp_path: Path) -> None:
    empty = read_history(tmp_path)
    assert len(empty) == 0
    assert outcomes(empty) == []
    assert list(empty.columns) == list(write_outcomes(tmp_path / "step-000000.parquet", [group()], 0).columns)


def test_every_bad_value_is_listed_and_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "step-000001.parquet"
    bad = group(rewards=(1.5, 0.5, float("nan"), -0.1))
    bad.rollouts[1].turns = -2
    with pytest.raises(HistoryError) as error:
        write_outcomes(path, [bad], 1)
    lines = str(error.value).splitlines()
    assert len(lines) == 4
    assert all(line.startswith(f"{path}: ") for line in lines)
    assert any("reward: row 0: found 1.5; expected" in line for line in lines)
    assert any("reward: row 2: found nan" in line for line in lines)
    assert any("reward: row 3: found -0.1" in line for line in lines)
    assert any("turns: row 1: found -2" in line for line in lines)
    assert not path.exists()


def test_outcome_known_before_it_was_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="observed_step not before drawn_step"):
        write_outcomes(tmp_path / "step-000001.parquet", [group()], 2, 1)


def test_same_rollout_told_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"each \(drawn_step, key, sample\) once"):
        write_outcomes(tmp_path / "step-000001.parquet", [group(), group()], 1)


def test_groups_that_could_not_be_read_back_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "step-000001.parquet"
    strange = group("a/x#1")
    strange.rollouts[1].key = "b/y#2"
    with pytest.raises(HistoryError) as error:
        write_trajectories(path, [strange, Group("c/z#3", []), group("d/d#4"), group("d/d#4")])
    assert str(error.value).splitlines() == [
        f"{path}: d/d#4: found 2 groups; expected one",
        f"{path}: a/x#1 sample 1: found key b/y#2; expected that of its group",
        f"{path}: c/z#3: found no rollouts; expected at least one",
    ]


def test_unequal_token_lists_are_refused(tmp_path: Path) -> None:
    bad = group()
    bad.rollouts[1].logprobs.pop()
    with pytest.raises(
        HistoryError, match="sample 1: found token_ids 3, generated 3, logprobs 2; expected equal"
    ):
        write_trajectories(tmp_path / "step-000001.parquet", [bad])


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not a table at all"])
def test_unreadable_file_is_named(tmp_path: Path, damage: bytes) -> None:
    write_outcomes(tmp_path / "step-000001.parquet", [group()], 1)
    path = tmp_path / "step-000002.parquet"
    path.write_bytes(damage)
    with pytest.raises(HistoryError, match=r"step-000002\.parquet: cannot be read: "):
        read_history(tmp_path)
    with pytest.raises(HistoryError, match=r"step-000002\.parquet: cannot be read: "):
        read_trajectories(path)


def test_file_with_other_columns_is_named(tmp_path: Path) -> None:
    write_outcomes(tmp_path / "step-000001.parquet", [group()], 1)
    pd.DataFrame({"key": ["a/x#1"], "prize": [1.0]}).to_parquet(tmp_path / "step-000002.parquet")
    with pytest.raises(HistoryError) as error:
        read_history(tmp_path)
    lines = str(error.value).splitlines()
    assert all("step-000002.parquet: " in line for line in lines)
    assert any("prize" in line for line in lines)
    assert any("'reward'" in line for line in lines)
    with pytest.raises(HistoryError, match=r"found columns \['key', 'prize'\]"):
        read_trajectories(tmp_path / "step-000002.parquet")
