"""The backward kernels."""
