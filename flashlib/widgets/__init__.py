"""Widgets that play what the algorithms compute.

Each widget is one class in one .py, with a .js and a .css of its name; what two of them share is in shared.js
and shared.css. The player's parts that can be read on their own are frames.js (what frames.py packed) and
places.js (HBM, S, SRAM). Python joins the files and sends the frames once; JavaScript plays them without asking
again.
"""

from flashlib.widgets.player import FlashPlayer

__all__ = ["FlashPlayer"]
