"""The synthetic suite, a tokenizer for it, and tiny policies with random weights."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from envsched.config import EnvironmentSettings, RolloutSettings
from envsched.environments.registry import load_registry
from envsched.environments.spec import EnvironmentSpec, Node, TaskSpec, ToolSpec
from envsched.environments.synthetic import Suite, generate
from envsched.policy.demonstrations import tokenizer_texts
from envsched.policy.model import new_model
from envsched.policy.tokenizer import train_tokenizer
from envsched.rollouts.engine import write_version
from envsched.rollouts.transformers_engine import TransformersEngine

SETTINGS = RolloutSettings(engine="transformers", concurrency=8, context_tokens=192, turn_tokens=16)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Models this small gain nothing from threads that wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def suite() -> Suite:
    return generate(0)


@pytest.fixture(scope="session")
def nodes() -> list[Node]:
    """Two training tasks of each synthetic environment."""
    return load_registry(EnvironmentSettings(limit=64)).train


@pytest.fixture(scope="session")
def experts(suite: Suite) -> dict[str, list[dict[str, Any]]]:
    """The calls that solve a task, by its name."""
    return {record["task_id"]: record["expert"] for record in suite.scenarios}


@pytest.fixture(scope="session")
def tokenizer(suite: Suite, nodes: list[Node]) -> PreTrainedTokenizerFast:
    return train_tokenizer(tokenizer_texts(suite, nodes, seed=0), vocabulary=600)


@pytest.fixture(scope="session")
def policies(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two policies of the same shape with other weights, marked as versions 0 and 1."""
    directories = []
    for version in range(2):
        directory = tmp_path_factory.mktemp(f"policy{version}")
        model = new_model("tiny", tokenizer, SETTINGS.context_tokens, seed=version)
        with torch.no_grad():
            for parameter in model.parameters():
                # Far from uniform, so that a wrong key or position changes what comes out.
                parameter.mul_(4 if parameter.ndim == 2 else 1)
        model.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        write_version(directory, version)
        directories.append(directory)
    return directories


@pytest.fixture
def settings() -> RolloutSettings:
    return SETTINGS


@pytest.fixture
def engine(policies: list[Path]) -> Iterator[TransformersEngine]:
    """A new engine with version 0: eight slots of 192 tokens."""
    opened = TransformersEngine(SETTINGS, policies[0], 0)
    yield opened
    opened.close()


@pytest.fixture
def broken_node() -> Node:
    """A task whose only tool ends the worker process."""
    code = "import os\nclass Broken:\n    def leave(self):\n        os._exit(3)\n"
    tool = ToolSpec("leave", "", {"type": "object", "properties": {}, "required": []})
    program = {"class_name": "Broken", "class_code": code}
    environment = EnvironmentSpec("envscaler", "Broken", "", (tool,), program=program)
    checks = ["def check_func(final_state):\n    return True"]
    return Node(environment, TaskSpec("Broken", "leave", "leave", program={"state": {}, "checks": checks}))
