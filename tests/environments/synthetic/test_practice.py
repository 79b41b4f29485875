"""Tasks without end for the training environments."""

import random
from itertools import islice

from envsched.environments.synthetic import Suite, practice
from envsched.environments.synthetic.play import play


def test_experts_solve_practice_tasks_of_training_environments(suite: Suite) -> None:
    training = {e["env_id"] for e in suite.environments if e["split"] == "train"}
    drawn = list(islice(practice(0, random.Random(1)), 300))
    assert {environment["env_id"] for environment, _ in drawn} == training
    for environment, scenario in drawn:
        assert all(play(environment, scenario, scenario["expert"]))
        assert not any(play(environment, scenario, []))


def test_practice_holds_no_heldout_task(suite: Suite) -> None:
    states = {repr((s["task"], s["init_config"])) for s in suite.scenarios if s["split"] != "train"}
    assert states
    for _, scenario in islice(practice(0, random.Random(2)), 300):
        assert repr((scenario["task"], scenario["init_config"])) not in states


def test_the_same_generator_draws_the_same_tasks() -> None:
    first, second = (list(islice(practice(0, random.Random(3)), 20)) for _ in range(2))
    other = list(islice(practice(0, random.Random(4)), 20))
    assert first == second
    assert first != other
