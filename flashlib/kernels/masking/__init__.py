"""Masks in the kernels: how the host prepares a mask, and what a kernel asks of it as it runs."""
