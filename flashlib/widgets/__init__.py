"""Widgets that play what the algorithms compute.

Each widget is one class in one .py, with a .js and a .css of its name; what all share is in widget.py, shared.js
and shared.css. Python computes what is shown and sends it once; JavaScript plays it without asking again.
FlashPlayer and ComparePlayers play recorded steps (frames.py, frames.js) in places (memory.js, grid.js, chip.js).
"""

from flashlib.widgets.compare import ComparePlayers
from flashlib.widgets.online import OnlineSoftmaxLab
from flashlib.widgets.overflow import OverflowLab
from flashlib.widgets.player import FlashPlayer
from flashlib.widgets.tiling import TilingLab

__all__ = ["ComparePlayers", "FlashPlayer", "OnlineSoftmaxLab", "OverflowLab", "TilingLab"]
