"""One file a source: where environments come from and how they run."""
