"""Stage: play one suite and sum it up."""

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.evaluation.runner import claim, missing, play, summary_of
from envsched.evaluation.suites import LoadedSuite, load_suite
from envsched.evaluation.summary import read_summary, suite_summary
from envsched.evaluation.user import EndpointUser
from tasks.evaluation import Evaluation, evaluation


@task(name="evaluate-suite", cache_policy=NO_CACHE)
def evaluate_suite(path: str, name: str, replace: bool = False) -> dict[str, Any]:
    """Play what is not there yet of the suite `name`; its summary.

    ResultsError where the results of another evaluation are in its place, unless they are to be replaced.
    """
    live = evaluation(path)
    with live.progress.stage(f"suite {name}", keep=True):
        suite = load_suite(name, live.settings)
    directory = live.path / name
    begun = claim(directory, live.identity(suite), replace)
    trials = live.settings.suites.trials
    wanted = {
        subset: missing(nodes, trials, directory / f"{subset}.jsonl")
        for subset, nodes in suite.subsets.items()
        if nodes
    }
    live.played[name] = sum(len(pairs) for pairs in wanted.values())
    spent = read_summary(live.path)["suites"].get(name, {}).get("user", {}) if begun else {}
    if live.played[name]:
        spent = _add(spent, _play(live, suite, wanted))
    parts = {
        subset: summary_of(nodes, trials, directory / f"{subset}.jsonl")
        for subset, nodes in suite.subsets.items()
        if nodes
    }
    extra = {"user": spent} if suite.has_user else {}
    summary = suite_summary(suite.version, parts, live.settings.suites.tasks is None, extra)
    live.suites[name] = summary
    return summary


def _play(live: Evaluation, suite: LoadedSuite, wanted: dict[str, list[Any]]) -> dict[str, float]:
    """Play these rollouts; what their simulated users have cost."""
    with live.collector(suite) as collector:
        for subset, pairs in wanted.items():
            total = len(suite.subsets[subset]) * live.settings.suites.trials
            file = live.path / suite.name / f"{subset}.jsonl"
            with live.progress.stage(f"{suite.name} {subset}", total, keep=True) as advance:
                advance(total - len(pairs))  # what an earlier call did
                play(collector, pairs, live.sampling, live.settings.suites.seed, file, advance)
        return collector.user.spent() if isinstance(collector.user, EndpointUser) else {}


def _add(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    """What was paid in earlier calls and in this one."""
    return {name: before.get(name, 0) + value for name, value in now.items()}
