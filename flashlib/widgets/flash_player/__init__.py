"""FlashPlayer and ComparePlayers: recorded steps of a tiling, and the places they are played in."""

from flashlib.widgets.flash_player.compare import ComparePlayers
from flashlib.widgets.flash_player.flash_player import FlashPlayer

__all__ = ["ComparePlayers", "FlashPlayer"]
