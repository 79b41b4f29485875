"""The embedded suite: a generator of executable tool environments."""

from envsched.environments.synthetic.suite import Suite, generate, write

__all__ = ["Suite", "generate", "write"]
