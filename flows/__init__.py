"""Flows: one file each."""
