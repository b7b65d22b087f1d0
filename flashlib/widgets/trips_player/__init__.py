"""TripsPlayer: what standard attention and FlashAttention move between memory and chip."""

from flashlib.widgets.trips_player.trips_player import TripsPlayer

__all__ = ["TripsPlayer"]
