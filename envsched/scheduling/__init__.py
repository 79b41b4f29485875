"""Which tasks to roll out next."""
