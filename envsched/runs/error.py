"""What can be wrong with a run on disk."""


class RunError(RuntimeError):
    """A run cannot be opened, continued or committed to; one line a reason."""
