"""The learning rate over a run: warm-up, stable, cooldown."""

from __future__ import annotations

from envsched.config import UpdateSettings


def learning_rate(settings: UpdateSettings, step: int, steps: int) -> float:
    """Rate of step `step`, from 1 on, in a run of `steps`; above 0.

    It rises over `warmup_steps` and falls over the share `cooldown` of the steps, both linearly: the
    warm-up-stable-decay schedule of arXiv 2404.06395.
    """
    rising = step / max(settings.warmup_steps, 1)
    falling = (steps + 1 - step) / (int(settings.cooldown * steps) + 1)
    return settings.learning_rate * min(1.0, rising, max(falling, 1 / (steps + 1)))
