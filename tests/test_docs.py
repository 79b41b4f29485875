"""What the documentation shows works."""

import json
import re
from pathlib import Path
from typing import Any

from envsched.scheduling.envsched import EnvSched
from envsched.scheduling.registry import SCHEDULERS

SCHEDULER = (Path(__file__).parents[1] / "docs" / "scheduler.md").read_text()


def test_the_library_works_alone_as_shown(capsys: Any) -> None:
    [code] = re.findall(r"```python\n(.*?)```", SCHEDULER, re.DOTALL)
    shown: dict[str, Any] = {"__name__": "example"}
    exec(code, shown)
    assert len(set(shown["batch"].keys)) == 4
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(shown["batch"].keys)
    again = EnvSched(shown["tasks"], seed=1, group_size=4)
    again.load_state_dict(json.loads(json.dumps(shown["state"])))
    assert again.next_batch(4, 4) == shown["scheduler"].next_batch(4, 4)


def test_every_baseline_is_named() -> None:
    assert set(SCHEDULERS) - {"envsched"} <= set(re.findall(r"`(\w+)`", SCHEDULER))
