"""Online softmax."""
