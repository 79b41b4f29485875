"""`params.yaml` as typed, validated settings. The only reader of settings.

Precedence: the defaults here, then the file, then overrides such as `train.steps=5`.
A test keeps `params.yaml` and the defaults equal, so the file always shows every setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from envsched.mistakes import describe
from envsched.overrides import SettingsError as SettingsError
from envsched.overrides import merge, parse_override, read_yaml

Positive = Annotated[int, Field(ge=1)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Block(BaseModel):
    """A block of settings; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class EnvironmentSettings(Block):
    """Which environments and tasks there are, and the limits under which they run."""

    source: str = "synthetic"
    """Where environments come from: synthetic, envscaler, bfcl, tau, tau2, acebench, gymnasium, openenv,
    reasoning_gym, textworld, verifiers, collection, or a module of your own such as `package.module`."""
    path: str | None = None
    """Folder of the source's records (envscaler, acebench), games (textworld), registered environments
    (collection), checkout (tau) or package (another version of bfcl); names of factories (gymnasium),
    generators (reasoning_gym) or tasksets (verifiers), URLs of servers (openenv)."""
    suite_seed: Annotated[int, Field(ge=0)] = 0
    """Another seed gives another synthetic suite."""
    calls: tuple[Annotated[int, Field(ge=1, le=6)], ...] | None = None
    """Tool calls of the synthetic suite's training tasks (not held-out ones), in turn; null: its mixture."""
    limit: Positive | None = None
    """Use at most this many training tasks, drawn evenly over environments; null for all."""
    reward: Literal["binary", "graded", "progress"] = "binary"
    """`binary`: whether all checks pass; `graded`: the share; `progress`: that of those false at reset."""
    workers: Positive = 1
    """Worker processes that run environment code."""
    call_seconds: Annotated[float, Field(gt=0, le=600)] = 5.0
    """Time limit of one call into an environment."""
    memory_mb: Annotated[int, Field(ge=64)] = 2048
    """Memory limit of one worker process, MiB."""
    observation_chars: Annotated[int, Field(ge=16)] = 8000
    """Longer observations are cut, and say so."""
    readable: list[str] = []
    """Further files and folders that environment code may read."""
    preload: list[str] = []
    """Modules you vouch for, imported in a worker before it is confined: such as read or start a lot."""
    unconfined: Literal["refuse", "allow"] = "refuse"
    """Whether code of unknown origin (envscaler, collection) runs where the system cannot confine it."""

    @field_validator("source")
    @classmethod
    def _source_exists(cls, name: str) -> str:
        from envsched.environments.sources.source import SOURCES

        of_ones_own = "." in name and all(part.isidentifier() for part in name.split("."))
        if name not in SOURCES and not of_ones_own:
            allowed = f"{', '.join(SOURCES)} or a module such as package.module"
            raise PydanticCustomError("unknown_source", "allowed: {allowed}", {"allowed": allowed})
        return name


class PolicySettings(Block):
    """The model that is trained."""

    model: str = "tiny"
    """`tiny` (1M), `small` (3M) or `base` (10M parameters), made from a config and warm-started;
    `smollm2-135m` from its package; or a Hugging Face directory."""
    vocabulary: Annotated[int, Field(ge=300, le=65536)] = 1024
    """BPE tokens of the models made from a config."""
    build_directory: str = "build"
    """Where tokenizers, warm starts and unpacked models are kept, by content hash."""


class WarmStartSettings(Block):
    """Supervised start of the models made from a config, on noisy scripted experts."""

    steps: Annotated[int, Field(ge=0)] = 1000
    """Optimiser steps."""
    batch_size: Positive = 16
    """Demonstrations a step."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.025
    """Peak rate of Muon, for matrices; embeddings and norms get a fifth of it from AdamW."""
    noise: Annotated[float, Field(ge=0)] = 0.25
    """Scales the experts' error rates; 0 gives clean experts."""
    histogram_rollouts: Annotated[int, Field(ge=0)] = 8
    """Rollouts a task when the pass-rate histogram is measured; 0 skips it."""
    histogram_tasks: Positive = 128
    """Training tasks in that histogram, drawn evenly over environments."""


class RolloutSettings(Block):
    """How an agent plays a task."""

    engine: Literal["auto", "vllm", "transformers"] = "auto"
    """What generates tokens. `auto`: transformers for our own small models on a CPU, else vLLM if it runs."""
    tool_format: Literal["auto", "json", "compact"] = "auto"
    """How tools are shown: JSON schemas, or signatures. `auto`: signatures for our own small models."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Of training rollouts."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of training rollouts; below 1 the engine's and the trainer's log-probabilities differ."""
    max_turns: Positive = 8
    """Assistant messages an episode; over it the rollout is truncated."""
    turn_tokens: Positive = 32
    """Tokens one assistant message may have."""
    context_tokens: Positive = 512
    """Tokens of the whole conversation; over it the rollout is truncated."""
    concurrency: Positive = 128
    """Episodes alive at once."""
    gpu_memory: Annotated[float, Field(gt=0, le=1)] = 0.4
    """Share of GPU memory the engine takes; on the CPU see `cpu_cache_gb`."""
    cpu_cache_gb: Positive = 2
    """vLLM's key-value cache on the CPU, GiB."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """The engine's weights and activations."""


class UpdateSettings(Block):
    """GRPO on a DeepSpeed engine."""

    optimizer: Literal["adam", "sgd"] = "adam"
    """AdamW without weight decay, or plain SGD."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 6e-4
    """Of the steps between warm-up and cooldown."""
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the rate rises from 0."""
    cooldown: Probability = 0.4
    """Share of the run's steps, the last ones, over which the rate falls to 0; 0 keeps it to the end."""
    betas: tuple[Probability, Probability] = (0.9, 0.99)
    """Of Adam."""
    clip_low: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The probability ratio is clipped below 1 - this (where the advantage is negative)."""
    clip_high: Annotated[float, Field(gt=0)] = 0.28
    """The probability ratio is clipped above 1 + this (where the advantage is positive)."""
    correction_cap: Annotated[float, Field(gt=0)] = 2.0
    """Most weight the trainer-to-engine probability ratio may give a token."""
    normalize: bool = True
    """Divide advantages by the group's standard deviation."""
    gradient_clip: Annotated[float, Field(gt=0)] = 1.0
    """Norm to which gradients are clipped."""
    epochs: Positive = 1
    """Passes over a step's rollouts."""
    minibatches: Positive = 1
    """Optimiser steps in a pass."""
    micro_tokens: Positive = 4096
    """Most tokens, padding included, in one forward pass; on a CPU more is slower, as caches overflow."""
    zero_stage: Literal[0, 1, 2, 3] = 0
    """DeepSpeed ZeRO stage."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the trainer."""
    ranks: Positive = 1
    """Trainer processes, started by the DeepSpeed launcher when more than one."""
    threads: Annotated[int, Field(ge=0)] = 0
    """CPU threads of one rank; 0 divides the machine's cores among the ranks."""


class GraphSettings(Block):
    """Which nodes are neighbours."""

    text_dimensions: Annotated[int, Field(ge=1, le=512)] = 192
    """Of the embeddings of the instructions."""
    within_neighbours: Positive = 12
    """Nearest nodes of the same environment."""
    text_weight: Probability = 0.5
    """Share of task semantics in the similarity within an environment; the rest is shared tools, state and
    checks."""
    across_neighbours: Positive = 12
    """Nearest nodes of other environments."""
    across_per_environment: Positive = 2
    """Most of these from any one environment."""
    execution_weight: Probability = 0.5
    """Share of observed execution in the similarity across environments, where it is known; the rest is tool
    schemas and checks."""
    shuffled: bool = False
    """Random edges instead of similar nodes, to see what similarity is worth."""


class VarianceSettings(Block):
    """The model that predicts reward distributions over the graph."""

    half_life: Annotated[float, Field(gt=0)] = 64.0
    """Policy steps after which evidence counts half."""
    width: Annotated[int, Field(ge=2, le=256)] = 8
    """Hidden channels."""
    rounds: Annotated[int, Field(ge=1, le=4)] = 2
    """Rounds of message passing."""
    fit_steps: Annotated[int, Field(ge=0)] = 5
    """Optimiser steps after each batch."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.005
    """Of AdamW."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    """Of AdamW."""
    masked_share: Annotated[float, Field(gt=0, lt=1)] = 0.4
    """Share of the rolled-out nodes whose own statistics are hidden in an optimiser step, to be inferred."""
    relations: tuple[Literal["environment", "within", "across"], ...] = ("environment", "within", "across")
    """Relations along which statistics travel; `environment` pools all tasks of one."""
    own_evidence: bool = True
    """Combine the prediction with the node's own record."""


class ScheduleSettings(Block):
    """Which tasks to roll out next."""

    scheduler: str = "envsched"
    """`envsched`, or one of the baselines in `envsched/scheduling/baselines`."""
    value: Literal["variance", "deviation", "informative", "signal"] = "informative"
    """What is sought, each at most 1: the expected `variance` of a group's rewards; their `deviation`; the
    chance that a group is `informative`, its rewards differ; or the `signal`, deviation times the root of
    the share of failures, largest where a third succeeds."""
    repeat_discount: Annotated[float, Field(ge=0)] = 0.5
    """A task's value is divided by (1 + its effective count) to this power; 0 for no discount."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 takes the tasks with the largest value, 1 draws them in proportion to it, 0.5 by its square."""
    environment_coverage: Annotated[float, Field(ge=0)] = 0.05
    """Bonus of an environment never rolled out; shrinks with its effective count."""
    task_coverage: Annotated[float, Field(ge=0)] = 0.2
    """Bonus of a task never rolled out."""
    pattern_coverage: Annotated[float, Field(ge=0)] = 0.05
    """Bonus of an interaction pattern never rolled out."""
    similarity_penalty: Annotated[float, Field(ge=0)] = 0.2
    """A task's value is divided by exp(this x its largest similarity to a task already in the batch)."""
    quota: Annotated[float, Field(gt=0, le=1)] | None = None
    """Largest share of a batch for one environment; null for a quarter, or what it takes to fill it."""
    floor: Probability = 0.05
    """Share of the batch that goes to the tasks waiting longest, so that none is starved for good."""
    cost_aware: bool = False
    """Value per expected generated token, not per rollout."""
    uneven_groups: Annotated[float, Field(ge=0, le=2)] = 0.0
    """0 rolls out every task of a batch equally often; 1 splits as many rollouts in proportion to the
    predicted standard deviation of the rewards, 0.5 by its root."""

    @field_validator("scheduler")
    @classmethod
    def _scheduler_exists(cls, name: str) -> str:
        from envsched.scheduling.registry import SCHEDULERS

        if name not in SCHEDULERS:
            allowed = ", ".join(sorted(SCHEDULERS))
            raise PydanticCustomError("unknown_scheduler", "allowed: {allowed}", {"allowed": allowed})
        return name


class UserSettings(Block):
    """The model that plays simulated users, behind an OpenAI-compatible endpoint."""

    endpoint: str | None = None
    """Base URL such as `http://127.0.0.1:8000/v1`; null where no suite needs a user."""
    model: str = "gpt-4.1-2025-04-14"
    """Its name there."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the endpoint's key."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of replies."""
    reply_tokens: Positive = 512
    """Most tokens of a reply."""
    seconds: Annotated[float, Field(gt=0)] = 120.0
    """Time limit of one request."""
    retries: Annotated[int, Field(ge=0)] = 4
    """Requests that failed are repeated this often, with growing pauses."""
    prompt_price: Annotated[float, Field(ge=0)] = 0.0
    """Of a million tokens read."""
    reply_price: Annotated[float, Field(ge=0)] = 0.0
    """Of a million tokens written."""
    cache: str | None = "build/user-cache.sqlite"
    """File with all replies so far: the same question is never paid twice. null keeps none."""


class SuiteSettings(Block):
    """Evaluation of trained models on benchmarks (`envsched evaluate`)."""

    tasks: Positive | None = None
    """Use at most this many tasks of a subset, drawn evenly over environments; null for all."""
    trials: Positive = 1
    """Rollouts a task; with several, pass^k is reported too."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of the agent; 0 is greedy."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of everything drawn."""
    max_turns: Positive = 200
    """Assistant messages an episode. The benchmarks' own limits are lower and hold as well."""
    turn_tokens: Positive = 1024
    """Tokens one assistant message may have."""
    context_tokens: Positive | None = None
    """Tokens of the whole conversation; null for what the model can read, at most 32768."""
    tau_path: str | None = None
    """Checkout of sierra-research/tau-bench, for the suite tau."""
    acebench_path: str | None = None
    """Checkout of chenchen0103/ACEBench, or a folder with its records, for the suite acebench."""
    bfcl_v4_path: str | None = "build/bfcl-v4"
    """Folder with the package bfcl-eval==2026.3.23, for the suite bfcl_v4."""
    results_directory: str = "results"
    """Results are kept in `<results_directory>/<model>/<suite>`."""
    traces: Annotated[int, Field(ge=0)] = 5
    """Rollouts of each suite that are sent to MLflow as traces."""


class EvaluateSettings(Block):
    """Held-out evaluation during training."""

    every: Annotated[int, Field(ge=0)] = 60
    """Steps between evaluations; 0 evaluates only before the first step and after the last."""
    tasks: Annotated[int, Field(ge=0)] = 480
    """Held-out tasks, drawn evenly over environments; 0 turns evaluation off."""
    rollouts: Positive = 1
    """Rollouts a held-out task."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Of evaluation rollouts."""


class TrainSettings(Block):
    """The training loop."""

    steps: Positive = 120
    """Policy updates."""
    batch_size: Positive = 16
    """Tasks a step."""
    group_size: Annotated[int, Field(ge=2)] = 8
    """Rollouts a task."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of everything random in the run."""
    runs_directory: str = "runs"
    """Runs are kept in `<runs_directory>/<run>`."""
    environments: Literal["same", "changed"] = "same"
    """Whether a run may be continued on environments that have changed: `changed` keeps the history of all
    tasks that are as they were."""
    keep_checkpoints: Annotated[int, Field(ge=1)] = 2
    """Newest policy checkpoints that stay on disk; the last one is enough to resume."""
    keep_rollouts: Annotated[int, Field(ge=0)] = 2
    """Newest steps whose token-level rollouts stay on disk; the history of outcomes always stays."""


class TrackingSettings(Block):
    """Where numbers go."""

    uri: str | None = None
    """MLflow tracking URI; null takes MLFLOW_TRACKING_URI, else `sqlite:///mlflow.db` here."""
    experiment: str = "envsched"
    """MLflow experiment."""


class Settings(Block):
    """Everything that can be set."""

    environments: EnvironmentSettings = EnvironmentSettings()
    policy: PolicySettings = PolicySettings()
    warm_start: WarmStartSettings = WarmStartSettings()
    rollouts: RolloutSettings = RolloutSettings()
    update: UpdateSettings = UpdateSettings()
    graph: GraphSettings = GraphSettings()
    variance: VarianceSettings = VarianceSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    suites: SuiteSettings = SuiteSettings()
    user: UserSettings = UserSettings()
    train: TrainSettings = TrainSettings()
    tracking: TrackingSettings = TrackingSettings()

    @model_validator(mode="after")
    def _turn_fits_context(self) -> Settings:
        if self.rollouts.turn_tokens >= self.rollouts.context_tokens:
            raise ValueError(
                f"rollouts.turn_tokens: {self.rollouts.turn_tokens} must be below "
                f"rollouts.context_tokens ({self.rollouts.context_tokens})"
            )
        return self


def load_settings(
    path: str | Path | None = "params.yaml",
    overrides: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from a YAML file, `a.b=value` overrides (values in YAML), then nested `values`.

    SettingsError lists every wrong field, one line each; FileNotFoundError for a missing file.
    """
    data: dict[str, Any] = {}
    if path is not None:
        data = read_yaml(Path(path))
    for override in overrides:
        data = merge(data, parse_override(override))
    data = merge(data, dict(values or {}))
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        where = f"{path}: " if path is not None and not overrides and not values else ""
        raise SettingsError("\n".join(where + line for line in describe(error, Settings))) from None
