"""Gluon kernels run on a CPU, their roles as threads."""
