"""Masks in the kernels: what the host says of a mask, and what a kernel asks of it as it runs."""
