"""Rollouts as MLflow traces: a span for the episode, one for each message, and the reward as feedback."""

import logging
from collections.abc import Sequence
from typing import Any

from envsched.evaluation.results import Result
from envsched.rollouts.chat import parse_reply

log = logging.getLogger("envsched.traces")


def send_traces(uri: str, experiment: str, run_id: str, suite: str, results: Sequence[Result]) -> None:
    """Send rollouts as traces of the run, and wait until they have arrived."""
    import mlflow
    from mlflow.exceptions import MlflowException

    mlflow.set_tracking_uri(uri)
    try:
        mlflow.set_experiment(experiment)
        traces = [(_trace(suite, run_id, one), one) for one in results]
        mlflow.flush_trace_async_logging()  # feedback on a trace that is still on its way is refused
        for trace, one in traces:
            mlflow.log_feedback(trace_id=trace, name="reward", value=one.reward)
        mlflow.flush_trace_async_logging()
    except (MlflowException, OSError) as error:
        log.warning("%s: traces of %s are not sent: %s", uri, suite, " ".join(str(error).split())[:300])


def _trace(suite: str, run_id: str, one: Result) -> str:
    """Build one trace; its id."""
    import mlflow

    attributes = {
        "suite": suite, "environment": one.environment, "trial": one.trial, "key": one.key,
        "errored": one.errored, "error": one.error, "truncated": one.truncated,
        "generated_tokens": one.generated_tokens,
    }  # fmt: skip
    with mlflow.start_span(name=f"{suite}/{one.task}", span_type="AGENT", attributes=attributes) as root:
        mlflow.update_current_trace(metadata={"mlflow.sourceRun": run_id}, tags={"suite": suite})
        root.set_inputs({"task": one.task, "messages": one.transcript[:1]})
        for number, (role, text) in enumerate(one.transcript):
            if role == "assistant":
                _message(text, one.transcript[number + 1 : number + 2])
        root.set_outputs({"reward": one.reward, **{k: str(v) for k, v in one.info.items()}})
    return str(root.trace_id)


def _message(text: str, answer: Sequence[Sequence[str]]) -> None:
    """A span for one assistant message: a tool call with what came back, or something said."""
    import mlflow

    action = parse_reply(text)
    name = getattr(action, "name", "")
    kind = "TOOL" if name else "LLM"
    with mlflow.start_span(name=name or "message", span_type=kind) as span:
        arguments: Any = getattr(action, "arguments", None)
        span.set_inputs(dict(arguments) if arguments is not None else {"text": text})
        span.set_outputs({role: said for role, said in answer})
