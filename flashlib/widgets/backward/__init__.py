"""BackwardPlayer: recorded steps of the backward pass, on the places of FlashPlayer."""

from flashlib.widgets.backward.backward import BackwardPlayer

__all__ = ["BackwardPlayer"]
