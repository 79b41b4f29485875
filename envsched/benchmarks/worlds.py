"""The worlds by name.

They are calibrated on a small transformer trained by GRPO. In `mixed`, with batches of 64 groups of 8:
uniform selection climbs from .22 to about .40 in 120 steps, flattening a little; the rate is the one at which
it climbs highest; selection by the true variance is there in 1.6 times fewer steps. Nothing but these two was
looked at in setting the constants. More numbers are in the README of this room.
"""

from __future__ import annotations

from collections.abc import Mapping

from envsched.benchmarks.structure import IMPOSSIBLE
from envsched.benchmarks.world import World, WorldKind

WORLDS: Mapping[str, WorldKind] = {
    "mixed": WorldKind(),
    "environment": WorldKind(relations=("environment",)),
    "topology": WorldKind(relations=("topology",)),
    "text": WorldKind(relations=("text",)),
    "none": WorldKind(relations=()),
    "impossible": WorldKind(quantiles=IMPOSSIBLE),
    "graded": WorldKind(graded=True),
    "broken": WorldKind(slow=True, erroring=True),
    "growing": WorldKind(growing=True),
    "grader": WorldKind(grader=True),
}
"""`environment`, `topology` and `text` have one structure, `none` has none, all others have all three."""


def make_world(name: str, seed: int, full_batch: int = 64 * 8) -> World:
    """The world called `name`, for batches of so many rollouts; ValueError lists the names there are."""
    if name not in WORLDS:
        raise ValueError(f"world: found {name!r}; allowed: {', '.join(WORLDS)}")
    return World(WORLDS[name], seed, full_batch)
