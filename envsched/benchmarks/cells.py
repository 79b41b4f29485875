"""Cells of the comparison, one scheduler in one world by one seed, each kept as a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from envsched.benchmarks.arms import Arm
from envsched.benchmarks.simulate import Course, simulate
from envsched.benchmarks.source_digest import source_digest
from envsched.benchmarks.worlds import make_world
from envsched.environments.spec import digest
from envsched.files import write_bytes

GROUP_SIZE = 8


@dataclass(frozen=True)
class Cell:
    """One course to run."""

    arm: Arm
    world: str
    seed: int
    steps: int
    batch_size: int

    @cached_property
    def key(self) -> str:
        """Content hash of all that decides the course, the code included."""
        code = source_digest([simulate.__module__, make_world.__module__, self.arm.module])
        return digest([asdict(self), GROUP_SIZE, code])

    def file(self, directory: Path) -> Path:
        """Where its course is kept."""
        arm = self.arm.name.replace(":", "--")
        return directory / "cells" / self.world / arm / f"seed-{self.seed}-{self.key[:12]}.json"

    def load(self, directory: Path) -> Course | None:
        """Its course, if it was run before."""
        path = self.file(directory)
        return Course(**json.loads(path.read_text())["course"]) if path.is_file() else None

    def run(self, directory: Path) -> None:
        """Run it from the start and keep the course."""
        world = make_world(self.world, self.seed, self.batch_size * GROUP_SIZE)
        scheduler = self.arm.make(world, self.seed, GROUP_SIZE)
        course = simulate(world, scheduler, self.steps, self.batch_size, GROUP_SIZE)
        content = {"cell": asdict(self), "course": asdict(course)}
        write_bytes(self.file(directory), json.dumps(content, allow_nan=False).encode())
