"""OverflowLab: see overflow.py."""

from flashlib.widgets.overflow.overflow import OverflowLab

__all__ = ["OverflowLab"]
