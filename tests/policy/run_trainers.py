"""Updates a policy under several settings in turn: `run_trainers.py JOB`, started for every rank.

After the first step each trainer is saved; at the end a second one goes on from there.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from envsched.config import UpdateSettings
from envsched.history.store import read_trajectories
from envsched.policy.rate import learning_rate
from envsched.policy.trainer import Trainer
from envsched.policy.trainer_process import init_distributed


def main() -> None:
    torch.set_num_threads(1)
    init_distributed()
    job = json.loads(Path(sys.argv[1]).read_text())
    steps = [read_trajectories(Path(path)) for path in job["trajectories"]]
    results: dict[str, Any] = {}
    for name, update in job["cases"].items():
        settings = UpdateSettings.model_validate(update)
        out = Path(job["out"]) / name
        trainer = Trainer(Path(job["model"]), settings, temperature=1.0)
        rates = [learning_rate(settings, step, len(steps)) for step in range(1, len(steps) + 1)]
        curve = [trainer.update(steps[0], rates[0])]
        trainer.save(out / "first", version=1)
        later = list(zip(steps[1:], rates[1:], strict=True))
        curve += [trainer.update(groups, rate) for groups, rate in later]
        trainer.save(out / "last", version=len(steps))
        resumed = Trainer(out / "first", settings, temperature=1.0)
        resumed.load(out / "first")
        results[name] = {"curve": curve, "resumed": [resumed.update(groups, rate) for groups, rate in later]}
        resumed.save(out / "resumed", version=len(steps))
    if os.environ["RANK"] == "0":
        (Path(job["out"]) / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
