"""Schedulers compared by real training: `envsched bench efficiency`."""
