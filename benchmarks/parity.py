"""Whether our scorers judge as the benchmarks' own code does, and how fast.

    python -m benchmarks.parity [--suite bfcl_v3 bfcl_v4 tau2] [--bfcl-v4 build/bfcl-v4]

Each suite's ground truths are replayed; so are ground truths without the calls of their last turn (BFCL), and
transcripts that are not quite the ground truth. The table has three counts for each: accepted by ours,
accepted by the benchmark, and judged alike. The exit status is 1 if any transcript is not judged alike.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from rich.console import Console
from rich.table import Table

from benchmarks.parity_verdicts import Parity, Verdicts

SUITES = ("bfcl_v3", "bfcl_v4", "tau2")
PERTURBED = {"bfcl_v3": 600, "bfcl_v4": 600, "tau2": 200}
"""Transcripts a suite."""


def main() -> int:
    """Entry point; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", nargs="+", choices=SUITES, default=SUITES, help="default: all")
    parser.add_argument("--bfcl-v4", default="build/bfcl-v4", help="folder of bfcl-eval==2026.3.23")
    parser.add_argument("--perturbed", type=int, help="transcripts a suite that are not quite right")
    parser.add_argument("--seed", type=int, default=0, help="of those transcripts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BFCL_PROJECT_ROOT"] = folder  # its modules make folders for results when imported
        results = []
        for suite in arguments.suite:
            count = PERTURBED[suite] if arguments.perturbed is None else arguments.perturbed
            results.append(measure(suite, arguments.bfcl_v4, count, arguments.seed))
    console = Console(width=140)
    console.print(table(results))
    for result in results:
        for note in result.notes:
            console.print(f"{result.suite}: {note}", highlight=False)
    return 0 if all(result.agree for result in results) else 1


def measure(suite: str, bfcl_v4: str, perturbed: int, seed: int) -> Parity:
    """The parity of one suite."""
    if suite == "tau2":
        from benchmarks.parity_tau2 import tau2_parity

        return tau2_parity(perturbed, seed)
    from benchmarks.parity_bfcl import bfcl_parity

    return bfcl_parity(suite, bfcl_v4 if suite == "bfcl_v4" else None, perturbed, seed)


def table(results: list[Parity]) -> Table:
    """One row a suite."""
    made = Table(title="accepted by ours / accepted by the benchmark / judged alike, of all")
    for name in ("suite", "version", "ground truth", "last turn dropped", "perturbed", "seconds for replays"):
        made.add_column(name, justify="left" if name in ("suite", "version") else "right")
    for result in results:
        counts = (counted(part) for part in (result.replays, result.truncated, result.perturbed))
        made.add_row(result.suite, result.version, *counts, f"{result.seconds:.1f}")
    return made


def counted(verdicts: Verdicts) -> str:
    """Counts of one kind of transcript."""
    if not verdicts.ours:
        return "-"
    return f"{sum(verdicts.ours)} / {sum(verdicts.official)} / {verdicts.equal} of {len(verdicts.ours)}"


if __name__ == "__main__":
    sys.exit(main())
