"""OverflowLab: where exp and its sum leave the range of a floating-point format."""

from flashlib.widgets.overflow_lab.overflow_lab import OverflowLab

__all__ = ["OverflowLab"]
