"""What the compiler makes of a kernel, for any GPU, present or not."""
