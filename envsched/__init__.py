"""EnvSched decides which tasks to roll out next when a language agent learns by reinforcement."""

__version__ = "0.1.0"
