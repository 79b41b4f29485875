"""From the graph and the history to each node's reward distribution."""
