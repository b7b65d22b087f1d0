"""EightBitsLab: attention with eight-bit numbers, its error, and where the error comes from."""

from flashlib.widgets.eight_bits_lab.eight_bits_lab import EightBitsLab

__all__ = ["EightBitsLab"]
