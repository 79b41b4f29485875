"""The protocol of the comparison, read from `comparison/efficiency.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from envsched.benchmarks.arms import find_arm
from envsched.config import Block, Settings, SettingsError, load_settings
from envsched.mistakes import describe
from envsched.overrides import merge, read_yaml

PROTOCOL = Path("comparison/efficiency.yaml")

Values = Mapping[str, Any]
Rate = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=0)]


class Protocol(Block):
    """What is compared, on what, how often."""

    settings: dict[str, Any]
    """Of every run, in the blocks of `params.yaml`."""
    regimes: dict[str, dict[str, Any]]
    """Further settings by regime."""
    rates: dict[str, Annotated[tuple[Rate, ...], Field(min_length=1)]]
    """Learning rates that every arm is tuned over, by regime."""
    tuning_seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    ablation_seeds: Annotated[int, Field(ge=1)]
    """So many of `seeds` are used for ablations."""
    arms: tuple[str, ...]
    """Each tuned by itself; `uniform` and `sampled_oracle` are the references."""
    ablations: tuple[str, ...]
    """Each with the rate of the arm that it is a variant of."""
    sizes: tuple[str, ...]
    size_arms: tuple[str, ...]

    @model_validator(mode="after")
    def _every_regime_has_rates(self) -> Protocol:
        if self.rates.keys() != self.regimes.keys():
            raise PydanticCustomError(
                "rates_by_regime",
                "rates: found those of {found}; expected those of the regimes {regimes}",
                {"found": ", ".join(self.rates) or "none", "regimes": ", ".join(self.regimes)},
            )
        return self

    def resolved(self, regime: str, values: Values) -> Settings:
        """All settings of a run; SettingsError names what is wrong."""
        return load_settings(None, values=merge(merge(self.settings, self.regimes[regime]), dict(values)))


def read_protocol(path: Path = PROTOCOL) -> Protocol:
    """The protocol in a YAML file; SettingsError lists what is wrong in it, one line a field."""
    try:
        protocol = Protocol.model_validate(read_yaml(path))
        for name in (*protocol.arms, *protocol.ablations, *protocol.size_arms):
            find_arm(name)
        for regime in protocol.regimes:
            protocol.resolved(regime, {})
    except ValidationError as error:
        lines = describe(error, Protocol)
        raise SettingsError("\n".join(f"{path}: {line}" for line in lines)) from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None
    return protocol
