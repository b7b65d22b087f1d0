"""FlashPlayer and ComparePlayers: recorded steps of a tiling, and the places they are played in."""

from flashlib.widgets.player.compare import ComparePlayers
from flashlib.widgets.player.player import FlashPlayer

__all__ = ["ComparePlayers", "FlashPlayer"]
