"""Kernels with a switch that takes back each idea, to measure what the idea gains."""
