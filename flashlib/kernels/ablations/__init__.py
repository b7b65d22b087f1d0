"""Kernels with a switch for each idea that takes it back: what an idea gains is measured by its absence."""
