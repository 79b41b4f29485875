"""Hooks into other programs."""
