"""Softmax, from naive to safe."""
