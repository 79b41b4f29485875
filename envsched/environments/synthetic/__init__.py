"""The embedded suite: a generator of executable tool environments."""

from envsched.environments.synthetic.noise import Turn, noisy_demonstration
from envsched.environments.synthetic.suite import Suite, generate, practice, write

__all__ = ["Suite", "Turn", "generate", "noisy_demonstration", "practice", "write"]
