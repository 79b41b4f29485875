"""The tables on disk: outcomes, one row a rollout, and trajectories, token by token."""

import pandera.pandas as pandera
import pyarrow
from pandas import DataFrame, Series


class RolloutTable(pandera.DataFrameModel):
    """One row a rollout. The rows of a group stand together, in order of `sample`."""

    policy_step: int = pandera.Field(ge=0)
    """Policy version that generated the rollout."""
    drawn_step: int = pandera.Field(ge=0)
    """Step in which the scheduler drew the task."""
    observed_step: int = pandera.Field(ge=0)
    """Step in which the outcome became known."""
    key: str = pandera.Field(str_length={"min_value": 1})
    environment: str
    sample: int = pandera.Field(ge=0)
    reward: float = pandera.Field(ge=0, le=1)
    """Raw outcome reward."""
    errored: bool
    error: str
    truncated: bool
    turns: int = pandera.Field(ge=0)
    calls: int = pandera.Field(ge=0)
    prompt_tokens: int = pandera.Field(ge=0)
    """Tokens before the first generated one."""
    generated_tokens: int = pandera.Field(ge=0)
    total_tokens: int = pandera.Field(ge=0)
    trace: str
    """Operation kinds in order, joined by spaces."""
    seconds: float = pandera.Field(ge=0)

    class Config:
        strict = True
        ordered = True
        coerce = False

    @pandera.dataframe_check(error="each (drawn_step, key, sample) once")
    def rollouts_are_distinct(cls, table: DataFrame) -> Series:
        """The same rollout is not told twice."""
        return ~table.duplicated(["drawn_step", "key", "sample"])

    @pandera.dataframe_check(error="observed_step not before drawn_step")
    def outcomes_follow_draws(cls, table: DataFrame) -> Series:
        """Nothing is known before it was drawn."""
        return table["observed_step"] >= table["drawn_step"]


TRAJECTORY_SCHEMA = pyarrow.schema(
    [
        ("key", pyarrow.string()),
        ("sample", pyarrow.int64()),
        ("policy_step", pyarrow.int64()),
        ("token_ids", pyarrow.list_(pyarrow.int32())),
        ("generated", pyarrow.list_(pyarrow.bool_())),
        ("logprobs", pyarrow.list_(pyarrow.float32())),
        ("reward", pyarrow.float64()),
        ("errored", pyarrow.bool_()),
        ("error", pyarrow.string()),
        ("truncated", pyarrow.bool_()),
        ("trace", pyarrow.list_(pyarrow.string())),
        ("turns", pyarrow.int64()),
        ("calls", pyarrow.int64()),
        ("seconds", pyarrow.float64()),
    ]
)
"""One row a rollout with its tokens: every field of `Rollout`, log-probabilities in single precision."""
