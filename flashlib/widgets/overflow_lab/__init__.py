"""OverflowLab: see overflow.py."""

from flashlib.widgets.overflow_lab.overflow_lab import OverflowLab

__all__ = ["OverflowLab"]
