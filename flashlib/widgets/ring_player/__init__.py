"""RingPlayer: attention over ranks, whose keys and values travel round the ring while tiles are computed."""

from flashlib.widgets.ring_player.ring_player import RingPlayer

__all__ = ["RingPlayer"]
