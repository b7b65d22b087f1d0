"""Widgets that play what the algorithms compute.

Each widget is one class in one .py, with a .js and a .css of its name; what two of them share is in shared.js
and shared.css. Python joins the two and sends the frames once; JavaScript plays them without asking again.
"""

from flashlib.widgets.player import FlashPlayer

__all__ = ["FlashPlayer"]
