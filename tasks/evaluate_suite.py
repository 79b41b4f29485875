"""Stage: play one suite and sum it up."""

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from envsched.evaluation.runner import claim, missing, play, summary_of
from envsched.evaluation.suites import LoadedSuite, load_suite
from envsched.evaluation.summary import suite_summary
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
    claim(directory, live.identity(suite), replace)
    trials = live.settings.suites.trials
    wanted = {
        subset: missing(nodes, trials, directory / f"{subset}.jsonl")
        for subset, nodes in suite.subsets.items()
        if nodes
    }
    live.played[name] = sum(len(pairs) for pairs in wanted.values())
    if live.played[name]:
        _play(live, suite, wanted)
    parts = {
        subset: summary_of(nodes, trials, directory / f"{subset}.jsonl")
        for subset, nodes in suite.subsets.items()
        if nodes
    }
    summary = suite_summary(suite.version, parts, live.settings.suites.tasks is None, _spent(live, suite))
    live.suites[name] = summary
    return summary


def _play(live: Evaluation, suite: LoadedSuite, wanted: dict[str, list[Any]]) -> None:
    with live.collector(suite) as collector:
        for subset, pairs in wanted.items():
            total = len(suite.subsets[subset]) * live.settings.suites.trials
            file = live.path / suite.name / f"{subset}.jsonl"
            with live.progress.stage(f"{suite.name} {subset}", total, keep=True) as advance:
                advance(total - len(pairs))  # what an earlier call did
                play(collector, pairs, live.sampling, live.settings.suites.seed, file, advance)


def _spent(live: Evaluation, suite: LoadedSuite) -> dict[str, Any]:
    """What the simulated users have cost in this call."""
    if not suite.has_user or not live.played[suite.name]:
        return {}
    user = live.user
    return {
        "user": {
            "model": live.settings.user.model,
            "replies": user.asked,
            "prompt_tokens": user.prompt_tokens,
            "reply_tokens": user.reply_tokens,
            "cost": user.cost,
        }
    }
