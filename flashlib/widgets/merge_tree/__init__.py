"""MergeTree: the States of the parts of a row, merged in any order."""

from flashlib.widgets.merge_tree.merge_tree import MergeTree

__all__ = ["MergeTree"]
