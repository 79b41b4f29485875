"""EnvSched: decides which tasks to roll out next when a language agent is trained by reinforcement learning."""

__version__ = "0.1.0"
