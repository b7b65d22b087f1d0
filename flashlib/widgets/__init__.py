"""Widgets that play what the algorithms compute.

Each widget is one class in one .py, with a .js and a .css of its name, in a folder of its own; FlashPlayer and
ComparePlayers, which play the same recorded steps, share one, and BackwardPlayer takes its places from there. What
all have in common is in widget.py and shared/. Python computes what is shown and sends it once; JavaScript plays
it without asking again. CompilerLab, which needs Triton's compiler for every answer, is imported by itself:
`from flashlib.widgets.compiler import CompilerLab`.
"""

from flashlib.widgets.backward import BackwardPlayer
from flashlib.widgets.masking import MaskLab
from flashlib.widgets.merge import MergeTree
from flashlib.widgets.online import OnlineSoftmaxLab
from flashlib.widgets.overflow import OverflowLab
from flashlib.widgets.paging import PagesLab
from flashlib.widgets.pipelining import PipelinePlayer
from flashlib.widgets.player import ComparePlayers, FlashPlayer
from flashlib.widgets.serving import ServeLab
from flashlib.widgets.splitting import SplitLab
from flashlib.widgets.tiling import TilingLab

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
