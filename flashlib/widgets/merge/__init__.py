"""MergeTree: see merge.py."""

from flashlib.widgets.merge.merge import MergeTree

__all__ = ["MergeTree"]
