import random
import statistics
from collections import defaultdict
from typing import Any

from envsched.environments.synthetic import Suite, noisy_demonstration
from envsched.environments.synthetic.noise import error_rate
from envsched.environments.synthetic.play import call, create, play

ROLLOUTS = 16


def pairs(suite: Suite, split: str, stride: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    environments = {record["env_id"]: record for record in suite.environments}
    scenarios = [scenario for scenario in suite.scenarios if scenario["split"] == split]
    return [(environments[scenario["env_id"]], scenario) for scenario in scenarios[::stride]]


def test_without_noise_it_is_the_expert(suite: Suite) -> None:
    for split in ("train", "heldout", "heldout_environment"):
        for environment, scenario in pairs(suite, split, 3):
            turns = noisy_demonstration(environment, scenario, random.Random(0), scale=0)
            assert [turn.call for turn in turns] == scenario["expert"]
            assert not any(turn.observation.startswith("error") for turn in turns)


def test_observations_follow_from_the_calls_made(suite: Suite) -> None:
    for environment, scenario in pairs(suite, "train", 11):
        world = create(environment, scenario)
        for turn in noisy_demonstration(environment, scenario, random.Random(5)):
            assert turn.observation == call(world, turn.call)


def test_same_generator_same_demonstration(suite: Suite) -> None:
    for environment, scenario in pairs(suite, "train", 50):
        first, second = (noisy_demonstration(environment, scenario, random.Random(9)) for _ in range(2))
        assert first == second


def test_success_spreads_over_tasks_and_environments(suite: Suite) -> None:
    rng = random.Random(0)
    rates, of_environment, of_length = [], defaultdict(list), defaultdict(list)
    for environment, scenario in pairs(suite, "train", 7):
        played = [noisy_demonstration(environment, scenario, rng) for _ in range(ROLLOUTS)]
        solved = [all(play(environment, scenario, [turn.call for turn in turns])) for turns in played]
        rates.append(statistics.mean(solved))
        of_environment[scenario["env_id"]].append(rates[-1])
        of_length[len(scenario["expert"])].append(rates[-1])
    hopeless = sum(rate == 0 for rate in rates) / len(rates)
    solved_always = sum(rate == 1 for rate in rates) / len(rates)
    assert 0.25 <= hopeless <= 0.50
    assert solved_always <= 0.10
    means = [statistics.mean(found) for found in of_environment.values()]
    assert min(means) < 0.05
    assert max(means) > 0.5
    by_length = [statistics.mean(of_length[length]) for length in range(1, 7)]
    assert by_length[0] > by_length[2] > by_length[5]


def test_a_right_call_always_keeps_a_chance(suite: Suite) -> None:
    for environment in suite.environments:
        for tool in environment["tools"]:
            assert 0 < error_rate(environment, tool["function"]["name"]) < 0.95
