"""EightBitsLab: attention with numbers of eight bits, its error, and where that comes from."""

from flashlib.widgets.eight_bits_lab.eight_bits_lab import EightBitsLab

__all__ = ["EightBitsLab"]
