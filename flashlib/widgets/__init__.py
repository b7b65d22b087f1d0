"""Widgets that play what the algorithms compute.

Each widget is one class in one .py, with a .js and a .css of its name, in a folder of its own; FlashPlayer and
ComparePlayers, which play the same recorded steps, share one, and BackwardPlayer takes its places from there. What
all have in common is in widget.py and shared/. Python computes what is shown and sends it once; JavaScript plays
it without asking again. CompilerLab, which needs Triton's compiler for every answer, is imported by itself:
`from flashlib.widgets.compiler_lab import CompilerLab`.
"""

from flashlib.widgets.backward_player import BackwardPlayer
from flashlib.widgets.flash_player import ComparePlayers, FlashPlayer
from flashlib.widgets.mask_lab import MaskLab
from flashlib.widgets.merge_tree import MergeTree
from flashlib.widgets.online_softmax_lab import OnlineSoftmaxLab
from flashlib.widgets.overflow_lab import OverflowLab
from flashlib.widgets.pages_lab import PagesLab
from flashlib.widgets.pipeline_player import PipelinePlayer
from flashlib.widgets.serve_lab import ServeLab
from flashlib.widgets.split_lab import SplitLab
from flashlib.widgets.tiling_lab import TilingLab

__all__ = [
    "BackwardPlayer",
    "ComparePlayers",
    "FlashPlayer",
    "MaskLab",
    "MergeTree",
    "OnlineSoftmaxLab",
    "OverflowLab",
    "PagesLab",
    "PipelinePlayer",
    "ServeLab",
    "SplitLab",
    "TilingLab",
]
