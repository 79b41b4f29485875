"""Environments and tasks as pandas frames, checked by pandera."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaErrors

from envsched.environments.records import Problem, shown
from envsched.environments.spec import Node, Split

_SPLITS: tuple[Split, ...] = ("train", "heldout", "heldout_environment")
_DIGEST = pa.Check.str_matches(r"^[0-9a-f]{64}$")
_COUNT = pa.Check.ge(0)

ENVIRONMENTS = pa.DataFrameSchema(
    {
        "name": pa.Column(str, unique=True),
        "source": pa.Column(str),
        "digest": pa.Column(str, _DIGEST),
        "summary": pa.Column(str),
        "tools": pa.Column(int, _COUNT),
        "rules": pa.Column(int, _COUNT),
        "state": pa.Column(int, _COUNT),
        **{split: pa.Column(int, _COUNT) for split in _SPLITS},
    },
    strict=True,
    ordered=True,
)
"""One row an environment: how many tools, rules and state entities it has, and tasks in each split."""

TASKS = pa.DataFrameSchema(
    {
        "key": pa.Column(str, unique=True),
        "environment": pa.Column(str),
        "name": pa.Column(str),
        "digest": pa.Column(str, _DIGEST),
        "split": pa.Column(str, pa.Check.isin(_SPLITS)),
        "instruction": pa.Column(str),
        "tools": pa.Column(int, _COUNT),
        "checks": pa.Column(int, _COUNT),
    },
    strict=True,
    ordered=True,
    unique=["environment", "name"],
)
"""One row a task: how many tools are on offer at reset and how many checks it has."""


def faults(nodes: Sequence[Node]) -> list[Problem]:
    """What breaks the schemas, of the records `environment` and `environment/task`."""
    environments, tasks = _environment_frame(nodes), _task_frame(nodes)
    names = tasks["environment"] + "/" + tasks["name"]
    return [
        *_faults(environments, ENVIRONMENTS, environments["name"]),
        *_faults(tasks, TASKS, names),
    ]


def environment_table(nodes: Iterable[Node]) -> pd.DataFrame:
    """Environments by name. SchemaErrors where one breaks the schema."""
    return ENVIRONMENTS.validate(_environment_frame(nodes), lazy=True)


def task_table(nodes: Iterable[Node]) -> pd.DataFrame:
    """Tasks in the order of the nodes. SchemaErrors where one breaks the schema."""
    return TASKS.validate(_task_frame(nodes), lazy=True)


def _environment_frame(nodes: Iterable[Node]) -> pd.DataFrame:
    nodes = list(nodes)
    specs = {node.environment.name: node.environment for node in nodes}
    counts = Counter((node.environment.name, node.task.split) for node in nodes)
    rows = [
        {
            "name": name,
            "source": spec.source,
            "digest": spec.digest,
            "summary": spec.summary,
            "tools": len(spec.tools),
            "rules": len(spec.rules),
            "state": len(spec.state),
            **{split: counts[name, split] for split in _SPLITS},
        }
        for name, spec in sorted(specs.items())
    ]
    return pd.DataFrame(rows, columns=list(ENVIRONMENTS.columns))


def _task_frame(nodes: Iterable[Node]) -> pd.DataFrame:
    rows = [
        {
            "key": node.key,
            "environment": node.environment.name,
            "name": node.task.name,
            "digest": node.task.digest,
            "split": node.task.split,
            "instruction": node.task.instruction,
            "tools": len(node.environment.tools if node.task.tools is None else node.task.tools),
            "checks": len(node.task.checks),
        }
        for node in nodes
    ]
    return pd.DataFrame(rows, columns=list(TASKS.columns))


def _faults(frame: pd.DataFrame, schema: pa.DataFrameSchema, names: pd.Series) -> list[Problem]:
    """One for each value that breaks the schema, and for each row that comes twice."""
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as errors:
        cases = errors.failure_cases.dropna(subset=["index"]).to_dict("records")
        return [
            Problem("", names[int(case["index"])], case["column"], shown(case["failure_case"]), case["check"])
            for case in cases
        ]
    return []
