"""Attention over ranks: each holds a part of the sequence."""
