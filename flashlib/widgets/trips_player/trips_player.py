"""TripsPlayer: standard attention's six trips between HBM and the chip, and FlashAttention's, in one scale."""

import numpy as np
import traitlets

from flashlib import cost
from flashlib.pictures.canvas import Picture
from flashlib.widgets.flash_player.frames import PackedArrays
from flashlib.widgets.lab import Lab
from flashlib.widgets.settings import whole
from flashlib.widgets.trips_player import figure
from flashlib.widgets.trips_player.trips import AttentionTrips, flash, standard
from flashlib.widgets.widget import script, style

RANGES = {"N": (1, 48), "d": (1, 8)}  # so that what is drawn can be seen
CAPACITY = 1536  # bytes of the chip
B = 8  # rows of a block: with the largest d, a tile fits


class TripsPlayer(Lab):
    """Play what attention moves between HBM and the chip: standard attention, and FlashAttention beside it.

    Q, K and V are random, (N, d) each, normal, fp32. Standard attention is `naive.attention_passes`,
    FlashAttention is `tiled.steps` in tiles of 8 x 8; each trip is what `memory.HBM` metered. Both sides take the
    same time for a byte. N: 1 to 48. d: 1 to 8. Both can be set later, from Python or on the page; a value that is
    not accepted then changes nothing and is answered in `refused`.
    """

    _esm = script("trips_player/trips_player.js")
    _css = style("flash_player/places.css", "trips_player/trips_player.css")
    _shows = "frames"

    N = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    frames = traitlets.Dict().tag(sync=True)

    def __init__(self, N=24, d=4):
        super().__init__({"N": N, "d": d})

    def _checked(self, name, value):
        return whole(name, value, *RANGES[name])

    def _computed(self, setting):
        N, d = setting["N"], setting["d"]
        rng = np.random.default_rng(0)
        Q, K, V = (rng.normal(size=(N, d)).astype(np.float32) for _ in range(3))
        self._runs = {"standard": standard(Q, K, V), "flash": flash(Q, K, V, B=B)}
        buffer = PackedArrays()
        sides = {name: _packed(run, buffer) for name, run in self._runs.items()}
        rows = min(B, N)
        return {
            "setting": dict(setting),
            "ranges": {name: list(ends) for name, ends in RANGES.items()},
            "capacity": CAPACITY,
            "tile": [rows, cost.sram_bytes(rows, rows, d, Q.dtype)],
            **sides,
            "buffer": buffer.bytes(),
        }

    def figure(self) -> Picture:
        """Return a picture of all trips, as long as the bytes that they move."""
        if self.problem:
            raise ValueError(self.problem)
        return figure.draw({name: run.trips for name, run in self._runs.items()}, **self._setting)

    def _sizes(self):
        (trips, moved), (flash_trips, flash_moved) = (
            (len(run.trips), sum(trip.nbytes for trip in run.trips)) for run in self._runs.values()
        )
        return (
            f"N={self.N}, d={self.d}: standard attention moves {moved} bytes in {trips} trips, "
            f"FlashAttention {flash_moved} bytes in {flash_trips}"
        )


def _packed(run: AttentionTrips, buffer: PackedArrays) -> dict:
    """Return the arrays of a run as offsets in the buffer, and its trips.

    A trip is whether it loads, its moves [name, first row, last row + 1, bytes], and the offsets of S_ij, P_ij and
    O_acc if it is one of FlashAttention that loads.
    """
    trips = [
        {
            "loads": trip.loads,
            "moves": [[move.name, move.rows.start, move.rows.stop, move.nbytes] for move in trip.moves],
            "computed": trip.step and [buffer.put(X) for X in (trip.step.S_ij, trip.step.P_ij, trip.step.O_acc)],
        }
        for trip in run.trips
    ]
    return {"arrays": {name: buffer.put(X) for name, X in run.arrays.items()}, "trips": trips}
