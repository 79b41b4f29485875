"""What happened: rollout records on disk, and the statistics of every node."""
