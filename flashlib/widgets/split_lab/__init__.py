"""SplitLab: the keys of one query, split over programs, and the merge."""

from flashlib.widgets.split_lab.split_lab import SplitLab

__all__ = ["SplitLab"]
