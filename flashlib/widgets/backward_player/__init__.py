"""BackwardPlayer: recorded steps of the backward pass, shown in the same places as FlashPlayer's."""

from flashlib.widgets.backward_player.backward_player import BackwardPlayer

__all__ = ["BackwardPlayer"]
