"""The dual-relation graph over environment-task pairs."""
