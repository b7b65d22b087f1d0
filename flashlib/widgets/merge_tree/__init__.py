"""MergeTree: see merge.py."""

from flashlib.widgets.merge_tree.merge_tree import MergeTree

__all__ = ["MergeTree"]
