"""Benchmarks: `python -m flashlib.bench` verifies, then times the forward kernel and its peers side by side.

`bench.mine(my_attention)` compares your own kernel with them.
"""

from flashlib.bench.learner import mine

__all__ = ["mine"]
