"""Simulated and logged worlds in which schedulers are compared, in seconds instead of GPU days."""
