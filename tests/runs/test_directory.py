"""A run goes on from its last complete step, whenever and however its writer stopped."""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from envsched.runs import RunDirectory, RunError

CONFIG = {"train": {"steps": 5, "seed": 0}, "update": {"betas": (0.9, 0.99)}, "tracking": {"uri": None}}
ENVIRONMENTS = {"version": "abc", "tasks": 12}


def open_run(path: Path, config: dict = CONFIG, environments: dict = ENVIRONMENTS) -> RunDirectory:  # type: ignore[type-arg]
    return RunDirectory.open(path, config, environments, wait_seconds=0)


def contents(run: RunDirectory, step: int) -> dict[Path, bytes]:
    """The files of a step, in the order in which they are written."""
    tag = f"{step} ".encode()
    return {
        run.rollouts(step): tag * 50,
        run.history(step): tag * 30,
        run.policy(step) / "model.safetensors": tag * 400,
        run.policy(step) / "optimizer" / "state.pt": tag * 200,
        run.scheduler(step): tag * 10,
    }


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def complete(run: RunDirectory, step: int) -> None:
    files = contents(run, step)
    for path, data in files.items():
        write(path, data)
    run.commit(
        step, [run.rollouts(step), run.history(step), run.policy(step), run.scheduler(step)], {"loss": step}
    )


def tree(path: Path) -> dict[str, bytes]:
    """All files of a run except those of its lock."""
    files = (file for file in path.rglob("*") if file.is_file())
    return {str(f.relative_to(path)): f.read_bytes() for f in files if "lock" not in f.name}


def test_new_run_has_no_steps_and_continues_after_its_last(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        assert run.last_step is None
        for step in range(3):
            complete(run, step)
        assert run.last_step == 2
    with open_run(tmp_path / "run") as run:
        assert run.last_step == 2
        assert run.metrics(2) == {"loss": 2}
        assert run.discarded == []
        complete(run, 3)


def test_manifest_names_every_file_with_size_and_checksum(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        complete(run, 0)
    manifest = json.loads((tmp_path / "run" / "steps" / "000000.json").read_text())
    assert list(manifest["files"]) == [
        "history/step-000000.parquet",
        "policy/step-000000/model.safetensors",
        "policy/step-000000/optimizer/state.pt",
        "rollouts/step-000000.parquet",
        "scheduler/step-000000.json",
    ]
    assert manifest["files"]["history/step-000000.parquet"]["size"] == 60


@pytest.mark.parametrize("seed", range(40))
def test_crash_at_any_write_leaves_the_last_complete_step(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with open_run(tmp_path / "run") as run:
        completed = rng.randrange(4)
        for step in range(completed):
            complete(run, step)
            run.prune(keep_checkpoints=2, keep_rollouts=1)
        before = tree(run.path)
        files = list(contents(run, completed).items())
        stop = rng.randrange(len(files) + 2)
        for path, data in files[:stop]:
            write(path, data)
        if stop < len(files):  # the write that was cut short, in place or beside
            path, data = files[stop]
            torn = path if rng.random() < 0.5 else path.with_name(f".{path.name}.77.tmp")
            write(torn, data[: rng.randrange(len(data))])
        elif stop == len(files):
            write(run.path / "steps" / f".{completed:06d}.json.77.tmp", b'{"step": ')
    with open_run(tmp_path / "run") as run:
        assert run.last_step == (completed - 1 if completed else None)
        assert tree(run.path) == before
        complete(run, completed)
    with open_run(tmp_path / "run") as run:
        assert run.last_step == completed


@pytest.mark.parametrize("kind", ["policy", "rollouts", "scheduler"])
def test_crash_while_pruning_loses_nothing(tmp_path: Path, kind: str) -> None:
    with open_run(tmp_path / "run") as run:
        for step in range(3):
            complete(run, step)
        old = run.file(kind, 0, "" if kind == "policy" else ".parquet" if kind == "rollouts" else ".json")
        old.rename(old.with_name(f".{old.name}.tmp"))
    with open_run(tmp_path / "run") as run:
        assert run.last_step == 2
        assert not list(run.path.rglob("*.tmp"))


@pytest.mark.parametrize("kind", ["policy", "history", "scheduler"])
@pytest.mark.parametrize("damage", ["missing", "shorter", "other"])
def test_damage_to_the_newest_step_goes_back_one_and_says_so(tmp_path: Path, kind: str, damage: str) -> None:
    with open_run(tmp_path / "run") as run:
        for step in range(3):
            complete(run, step)
    path = next(
        file
        for file in sorted((tmp_path / "run" / kind).rglob("*"))
        if "step-000002" in str(file) and file.is_file()
    )
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if damage == "shorter" else data[:-1] + b"?")
    with open_run(tmp_path / "run") as run:
        assert run.last_step == 1
        assert [line.split(": ")[0] for line in run.damaged] == [str(path)]
        assert not run.history(2).exists()


def test_damage_to_an_older_step_is_an_error_and_deletes_nothing(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        for step in range(3):
            complete(run, step)
        run.history(0).write_bytes(b"other")
    before = tree(tmp_path / "run")
    with pytest.raises(RunError, match=r"history/step-000000\.parquet: found 5 bytes; expected 60"):
        open_run(tmp_path / "run")
    (tmp_path / "run" / "steps" / "000001.json").unlink()
    with pytest.raises(RunError, match=r"steps/000001\.json: missing"):
        open_run(tmp_path / "run")
    assert tree(tmp_path / "run").keys() == before.keys() - {"steps/000001.json"}


def test_pruning_keeps_the_newest_and_what_the_manifests_need(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        for step in range(5):
            complete(run, step)
        run.prune(keep_checkpoints=0, keep_rollouts=0)
        assert [p.name for p in (run.path / "policy").iterdir()] == ["step-000004"]
        assert [p.name for p in (run.path / "scheduler").iterdir()] == ["step-000004.json"]
        assert not list((run.path / "rollouts").iterdir())
        assert len(list((run.path / "history").iterdir())) == 5
        write(run.policy(5) / "model.safetensors", b"not complete")
        run.prune(keep_checkpoints=1, keep_rollouts=1)
        assert run.policy(4).exists()
    with open_run(tmp_path / "run") as run:
        assert run.last_step == 4


def test_second_writer_is_told_who_holds_the_run(tmp_path: Path) -> None:
    with open_run(tmp_path / "run"), pytest.raises(RunError, match=rf"in use by process {os.getpid()} on "):
        open_run(tmp_path / "run")
    open_run(tmp_path / "run").close()


def test_writer_that_was_killed_lets_go(tmp_path: Path) -> None:
    script = (
        "import os, sys; from envsched.runs import RunDirectory\n"
        "RunDirectory.open(sys.argv[1], {}, {'version': 'abc'}); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")]).returncode == -9
    open_run(tmp_path / "run", {}).close()


def test_continuing_with_other_settings_lists_each(tmp_path: Path) -> None:
    open_run(tmp_path / "run").close()
    other = {"train": {"steps": 9, "seed": 1}, "update": {}, "tracking": {"uri": "http://x"}, "new": 1}
    with pytest.raises(RunError) as error:
        open_run(tmp_path / "run", other, {"version": "xyz"})
    assert str(error.value).splitlines()[1:-1] == [
        "new: found 1; the run was started with nothing",
        "train.seed: found 1; the run was started with 0",
        "update.betas: found nothing; the run was started with [0.9, 0.99]",
        "environments: found version xyz; the run was started with abc; to keep the history of all tasks "
        "that are as they were, -S train.environments=changed",
    ]


def test_other_environments_are_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    open_run(tmp_path / "run").close()
    with pytest.raises(RunError, match="found version xyz"):
        open_run(tmp_path / "run", environments={"version": "xyz"})
    accepted = {**CONFIG, "train": {"steps": 5, "seed": 0, "environments": "changed"}}
    open_run(tmp_path / "run", accepted, {"version": "xyz"}).close()
    assert json.loads((tmp_path / "run" / "environments.json").read_text()) == {"version": "xyz"}


def test_settings_that_may_change_are_stored_anew(tmp_path: Path) -> None:
    open_run(tmp_path / "run").close()
    open_run(tmp_path / "run", {**CONFIG, "train": {"steps": 9, "seed": 0}, "evaluate": {"every": 1}}).close()
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (stored["train"]["steps"], stored["evaluate"]) == (9, {"every": 1})


def test_steps_are_completed_in_order_with_files_of_the_run(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        with pytest.raises(RunError, match="found step 1 to commit; expected 0"):
            complete(run, 1)
        with pytest.raises(RunError, match=r"step 0 cannot be completed: .*No such file"):
            run.commit(0, [run.history(0)], {})
        outside = tmp_path / "elsewhere"
        outside.write_text("")
        with pytest.raises(RunError, match="elsewhere: not inside the run directory"):
            run.commit(0, [outside], {})
        assert run.last_step is None


def test_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "photos" / "step-000001.jpg"
    write(precious, b"wedding")
    with pytest.raises(RunError, match=r"not a run directory: found photos and no config\.json"):
        open_run(tmp_path)
    assert precious.read_bytes() == b"wedding"


def test_file_where_a_folder_is_expected_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(RunError, match=r"cannot be used as a run directory: .*File exists"):
        open_run(tmp_path / "run")
    with open_run(tmp_path / "other") as run:
        (run.path / "history").write_text("")
        with pytest.raises(RunError, match="history: cannot be used as a folder: File exists"):
            run.history(0)


READ_ONLY = """
import os, sys
from envsched.runs import RunDirectory, RunError

if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
for path in sys.argv[1:]:
    try:
        RunDirectory.open(path, {}, {"version": "abc"})
    except RunError as error:
        print(error)
"""


def test_read_only_directory_is_one_clear_error() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        open_run(folder / "run", {}).close()
        for path in (folder, folder / "run"):
            path.chmod(0o555)
        script = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(folder / "run"), str(folder / "new")],
            capture_output=True,
            text=True,
            check=True,
        )
        for path in (folder, folder / "run"):
            path.chmod(0o755)
    lines = script.stdout.splitlines()
    assert len(lines) == 2
    assert all("cannot be used as a run directory: [Errno 13] Permission denied" in line for line in lines)


FULL_DISK = """
import resource, sys
from envsched.runs import RunDirectory, RunError

run = RunDirectory.open(sys.argv[1], {}, {"version": "abc"})
run.history(1).write_bytes(bytes(50))
resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60))
try:
    run.commit(1, [run.history(1)], {})
except RunError as error:
    print(error)
"""


def test_disk_that_is_full_loses_only_the_current_step(tmp_path: Path) -> None:
    with open_run(tmp_path / "run", {}) as run:
        complete(run, 0)
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "run")]
    script = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "step 1 cannot be completed: " in script.stdout
    assert "File too large" in script.stdout
    with open_run(tmp_path / "run", {}) as run:
        assert run.last_step == 0
