"""The learning rate rises, stays and falls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsched.config import UpdateSettings
from envsched.policy.rate import learning_rate


def rates(steps: int, **settings: float) -> list[float]:
    options = UpdateSettings.model_validate({"learning_rate": 0.1, **settings})
    return [learning_rate(options, step, steps) for step in range(1, steps + 1)]


def test_it_rises_over_the_warm_up() -> None:
    assert rates(6, warmup_steps=4, cooldown=0) == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])


def test_it_falls_over_the_last_share_of_the_steps() -> None:
    assert rates(10, cooldown=0.4) == pytest.approx([0.1] * 6 + [0.08, 0.06, 0.04, 0.02])


def test_without_either_it_is_constant() -> None:
    assert rates(5, cooldown=0) == [0.1] * 5


def test_a_run_of_few_steps_has_no_cooldown() -> None:
    assert rates(2, cooldown=0.4) == [0.1, 0.1]


@given(
    steps=st.integers(1, 50), warmup=st.integers(0, 60), cooldown=st.floats(0, 1), beyond=st.integers(0, 5)
)
def test_it_is_never_zero_nor_above_what_was_set(
    steps: int, warmup: int, cooldown: float, beyond: int
) -> None:
    options = UpdateSettings(learning_rate=0.1, warmup_steps=warmup, cooldown=cooldown)
    for step in range(1, steps + beyond + 1):
        assert 0 < learning_rate(options, step, steps) <= 0.1
