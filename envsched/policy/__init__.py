"""Making, warm-starting and updating the policy."""
