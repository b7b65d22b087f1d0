"""A Hopper kernel."""
