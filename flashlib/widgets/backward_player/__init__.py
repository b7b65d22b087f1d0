"""BackwardPlayer: recorded steps of the backward pass, on the places of FlashPlayer."""

from flashlib.widgets.backward_player.backward_player import BackwardPlayer

__all__ = ["BackwardPlayer"]
