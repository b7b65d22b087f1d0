"""Benchmarks: `python -m flashlib.bench` verifies, then times the forward kernel and its peers side by side."""
