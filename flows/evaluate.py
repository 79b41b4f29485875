"""The evaluation flow. From a shell: `envsched evaluate`.

[ once a suite: load ─▶ play what is missing ─▶ sum up ] ─▶ report
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from pydantic import Field

from envsched.config import Settings, SettingsError, load_settings
from envsched.environments.records import RecordError
from envsched.evaluation.results import ResultsError
from envsched.evaluation.suites import SUITES
from envsched.rollouts.engine import EngineError
from tasks.evaluate_suite import evaluate_suite
from tasks.evaluation import open_evaluation
from tasks.prefect_server import prefect_server
from tasks.report_evaluation import report_evaluation

EXPECTED = (SettingsError, RecordError, ResultsError, EngineError, ValueError, ImportError)
"""Errors whose message says everything; a traceback would only hide it."""


@flow(name="evaluate")
def evaluate(
    model: str,
    suites: Annotated[list[str], Field(min_length=1)],
    out: str = "",
    replace: bool = False,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Judge a model on benchmarks. What is not given comes from `params.yaml`.

    Args:
        model: A Hugging Face directory.
        suites: Names of suites.
        out: Where results go; `<suites.results_directory>/<model's name>` if empty.
        replace: Discard results of another evaluation found there.
        settings: Any settings, in the blocks of `params.yaml`.
    """
    unknown = sorted(set(suites) - set(SUITES))
    if unknown:
        raise SettingsError(f"suite: found {', '.join(unknown)}; allowed: {', '.join(SUITES)}")
    values = settings.model_dump(exclude_unset=True) if settings else {}
    resolved = load_settings(values=values)
    path = Path(out or Path(resolved.suites.results_directory) / Path(model).name).absolute()
    with open_evaluation(resolved, Path(model), path):
        for suite in dict.fromkeys(suites):
            evaluate_suite(str(path), suite, replace)
        return report_evaluation(str(path))


def main(parameters: dict[str, Any]) -> None:
    """Run the flow, with a Prefect server of its own if there is none; expected errors are one message."""
    try:
        with prefect_server(Path("build/prefect")) as server:
            if server:
                server.wait()
            evaluate(**parameters)
    except KeyboardInterrupt:
        sys.exit(130)
    except EXPECTED as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1] if sys.argv[1:] else "{}"))
