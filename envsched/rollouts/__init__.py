"""An agent plays tasks: chat format, engines, and the collector."""
