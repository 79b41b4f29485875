import copy
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from envsched.environments.synthetic import Suite, generate
from envsched.environments.synthetic.play import create, play, score
from envsched.environments.synthetic.suite import LENGTHS
from envsched.environments.synthetic.words import ANIMALS, COLORS, DAYS, FOODS, PEOPLE, PLACES, THINGS, TOPICS

WORD_BUDGET = 520


def by_name(suite: Suite) -> dict[str, dict[str, Any]]:
    return {record["env_id"]: record for record in suite.environments}


def signatures(environment: dict[str, Any]) -> str:
    functions = [tool["function"] for tool in environment["tools"]]
    return " ".join(f"{f['name']}({', '.join(f['parameters']['properties'])})" for f in functions)


def test_experts_are_accepted_and_idlers_pass_no_check(suite: Suite) -> None:
    environments = by_name(suite)
    for scenario in json.loads(json.dumps(suite.scenarios)):
        environment = environments[scenario["env_id"]]
        assert all(play(environment, scenario, scenario["expert"])), scenario["task_id"]
        assert not any(score(scenario, create(environment, scenario))), scenario["task_id"]


def test_leaving_out_a_state_change_is_never_accepted(suite: Suite) -> None:
    environments = by_name(suite)
    for scenario in suite.scenarios[::7]:
        environment = environments[scenario["env_id"]]
        kinds = {o["operation_name"]: o["operation_type"] for o in environment["operation_list"]}
        for skipped, step in enumerate(scenario["expert"]):
            if kinds[step["name"]] == "state_change":
                steps = scenario["expert"][:skipped] + scenario["expert"][skipped + 1 :]
                assert not all(play(environment, scenario, steps)), (scenario["task_id"], skipped)


def test_half_done_tasks_earn_part_of_the_graded_reward(suite: Suite) -> None:
    environments = by_name(suite)
    partial = 0
    for scenario in suite.scenarios[::7]:
        passed = play(environments[scenario["env_id"]], scenario, scenario["expert"][:-1])
        partial += any(passed) and not all(passed)
    assert partial > len(suite.scenarios[::7]) * 0.3


def test_counts_and_lengths(suite: Suite) -> None:
    environments = Counter(record["split"] for record in suite.environments)
    assert environments == {"train": 32, "heldout_environment": 4}
    assert len({record["env_id"].rsplit("_", 1)[0] for record in suite.environments}) == 8
    for split, tasks in (("train", 2400), ("heldout", 480), ("heldout_environment", 120)):
        lengths = Counter(len(s["expert"]) for s in suite.scenarios if s["split"] == split)
        assert lengths == {n: LENGTHS.count(n) * tasks // len(LENGTHS) for n in range(1, 7)}
    checks = Counter(len(scenario["checklist_with_func"]) for scenario in suite.scenarios)
    assert set(checks) == {2, 3, 4}
    assert all(5 <= len(record["tools"]) <= 8 for record in suite.environments)


def test_environments_held_out_are_new_combinations(suite: Suite) -> None:
    trained = {signatures(record) for record in suite.environments if record["split"] == "train"}
    unseen = [signatures(record) for record in suite.environments if record["split"] != "train"]
    assert len(trained) == 32
    assert not trained.intersection(unseen)


def test_tasks_differ_and_held_out_ones_are_not_trained_on(suite: Suite) -> None:
    names = [scenario["task_id"] for scenario in suite.scenarios]
    assert len(set(names)) == len(names)
    instructions = [(scenario["env_id"], scenario["task"]) for scenario in suite.scenarios]
    assert len(set(instructions)) == len(instructions)


def test_prompts_are_short_and_words_few(suite: Suite) -> None:
    text = [scenario["task"] for scenario in suite.scenarios]
    for record in suite.environments:
        text += [signatures(record), *(word for words in record["entities"].values() for word in words)]
        text += re.findall(r"'(error: [^']*)'", record["env_class_code"])
    assert len(set(re.findall(r"[a-z]+|\d+", " ".join(text)))) <= WORD_BUDGET
    for scenario in suite.scenarios:
        assert re.fullmatch(r"[a-z0-9, ]+", scenario["task"])
        assert 3 <= len(scenario["task"].split()) <= 40


def test_some_look_up_is_needed_in_most_long_tasks(suite: Suite) -> None:
    environments = by_name(suite)
    needed = 0
    long = [scenario for scenario in suite.scenarios if len(scenario["expert"]) >= 4]
    for scenario in long:
        operations = environments[scenario["env_id"]]["operation_list"]
        queries = {o["operation_name"] for o in operations if o["operation_type"] == "query"}
        needed += any(step["name"] in queries for step in scenario["expert"])
    assert needed > 0.8 * len(long)


def test_same_seed_is_byte_identical_in_another_process(suite: Suite, tmp_path: Path) -> None:
    command = "import sys; from envsched.environments.synthetic import write; write(0, sys.argv[1])"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    subprocess.run([sys.executable, "-c", command, str(tmp_path)], env=environment, check=True)
    for name, records in (("environments", suite.environments), ("scenarios", suite.scenarios)):
        written = json.loads((tmp_path / f"{name}.json").read_text())
        assert json.dumps(written) == json.dumps(records)


def test_another_seed_is_another_suite(suite: Suite) -> None:
    first, second = suite, generate(1)
    code = {record["env_class_code"] for record in first.environments}
    assert len(code.intersection(record["env_class_code"] for record in second.environments)) <= 2
    tasks = {scenario["task"] for scenario in first.scenarios}
    assert len(tasks.intersection(scenario["task"] for scenario in second.scenarios)) < len(tasks) / 4


def test_record_has_the_fields_of_the_format(suite: Suite) -> None:
    environment, scenario = suite.environments[0], suite.scenarios[0]
    assert set(environment) == {
        "env_id", "environment_summary", "environment_introduction", "state_space_definition",
        "constraints_rules", "operation_list", "env_class_name", "env_class_code", "env_class_def",
        "env_func_details", "tools", "split", "entities",
    }  # fmt: skip
    assert set(scenario) == {
        "env_id", "env_class_name", "task_id", "task", "init_config", "checklist_with_func", "split",
        "expert",
    }  # fmt: skip


def test_tools_answer_any_arguments_and_refusals_change_nothing(suite: Suite) -> None:
    odd: list[Any] = [None, True, -1, 0, 3, 2.5, "", "nothing", [], ["a"], {}, {"a": 1}]
    scenarios = {scenario["env_id"]: scenario for scenario in suite.scenarios}
    for environment in suite.environments:
        world = create(environment, scenarios[environment["env_id"]])
        known = [word for words in environment["entities"].values() for word in words[:2]]
        for tool in environment["tools"]:
            names = list(tool["function"]["parameters"]["properties"])
            for first in odd + known:
                for rest in odd + known:
                    before = {name: copy.copy(table) for name, table in vars(world).items()}
                    values = [first, *[rest] * (len(names) - 1)]
                    answer = getattr(world, tool["function"]["name"])(**dict(zip(names, values, strict=True)))
                    assert isinstance(answer, str)
                    assert 1 <= len(answer.split()) <= 6
                    if answer.startswith("error"):
                        assert vars(world) == before


def test_a_word_belongs_to_one_pool() -> None:
    words = [w for pool in (PEOPLE, PLACES, THINGS, ANIMALS, FOODS, TOPICS, COLORS, DAYS) for w in pool]
    assert len(words) == len(set(words))


def test_numbers_of_calls_give_other_training_tasks_and_change_nothing_else(suite: Suite) -> None:
    found = generate(0, calls=(2, 6, 6))
    assert found.environments == suite.environments

    def tasks(records: Suite, *splits: str) -> list[dict[str, Any]]:
        return [record for record in records.scenarios if record["split"] in splits]

    assert tasks(found, "heldout", "heldout_environment") == tasks(suite, "heldout", "heldout_environment")
    usual = {(record["env_id"], record["task"]) for record in tasks(suite, "train", "heldout")}
    environments = by_name(found)
    other = tasks(found, "train")
    assert Counter(r["env_id"] for r in other) == Counter(r["env_id"] for r in tasks(suite, "train"))
    assert Counter(len(r["expert"]) for r in other) == {2: len(other) / 3, 6: 2 * len(other) / 3}
    assert not usual & {(record["env_id"], record["task"]) for record in other}
    for record in other[::40]:
        assert all(play(environments[record["env_id"]], record, record["expert"]))
