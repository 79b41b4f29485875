"""Environments and tasks: what can be rolled out, from several sources through one interface."""
