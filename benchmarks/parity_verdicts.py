"""What the parity of a suite comes to, and how transcripts are put wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from envsched.environments.episode import Action, ToolCall

VERBS = ("drop", "twice", "swap", "change", "foreign")


@dataclass(frozen=True)
class Verdicts:
    """Whether transcripts earn everything: by ours and by the package's own checker, in the same order."""

    ours: tuple[bool, ...] = ()
    official: tuple[bool, ...] = ()

    @property
    def equal(self) -> int:
        """How many transcripts are judged alike."""
        return sum(ours == official for ours, official in zip(self.ours, self.official, strict=True))

    @property
    def agree(self) -> bool:
        """Whether all are."""
        return self.equal == len(self.ours)


@dataclass(frozen=True)
class Parity:
    """A suite's verdicts on three kinds of transcripts."""

    suite: str
    version: str
    replays: Verdicts
    """Of each task's ground truth."""
    truncated: Verdicts
    """Of ground truths without the calls of their last turn that has any."""
    perturbed: Verdicts
    seconds: float
    """In which ours judged the replays."""
    notes: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        """Whether all verdicts are equal."""
        return self.replays.agree and self.truncated.agree and self.perturbed.agree


def perturb(actions: Sequence[Action], others: Sequence[ToolCall], rng: random.Random) -> list[Action]:
    """The actions with one change, or two. `others` are calls of other tasks."""
    changed = list(actions)
    for _ in range(rng.randint(1, 2)):
        if changed:
            _change(changed, others, rng)
    return changed


def _change(actions: list[Action], others: Sequence[ToolCall], rng: random.Random) -> None:
    place = rng.randrange(len(actions))
    chosen = actions[place]
    verb = rng.choice(VERBS)
    if verb == "drop":
        del actions[place]
    elif verb == "twice":
        actions.insert(place, chosen)
    elif verb == "swap":
        other = rng.randrange(len(actions))
        actions[place], actions[other] = actions[other], actions[place]
    elif verb == "foreign":
        actions.insert(place, rng.choice(others))
    elif isinstance(chosen, ToolCall) and chosen.arguments:
        name = rng.choice(sorted(chosen.arguments))
        value = rng.choice(["nonsense", 7, None, [], chosen.arguments[name]])
        actions[place] = ToolCall(chosen.name, {**chosen.arguments, name: value})
