"""What a run looks like: numbers, tables and lines for people."""
