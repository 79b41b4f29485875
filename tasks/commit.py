"""Which code a run was made with."""

import subprocess


def commit() -> str:
    """The commit that is checked out, marked if files differ from it; `unknown` outside a repository."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
