"""The embedded suite: a generator of executable tool environments."""
