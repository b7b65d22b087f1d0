"""First steps in Triton."""
