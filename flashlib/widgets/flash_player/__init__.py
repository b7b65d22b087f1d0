"""FlashPlayer and ComparePlayers: recorded steps of a tiling, and the views that play them."""

from flashlib.widgets.flash_player.compare import ComparePlayers
from flashlib.widgets.flash_player.flash_player import FlashPlayer

__all__ = ["ComparePlayers", "FlashPlayer"]
