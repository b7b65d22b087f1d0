"""SplitLab: see splitting.py."""

from flashlib.widgets.split_lab.split_lab import SplitLab

__all__ = ["SplitLab"]
