"""ComparePlayers: both loop orders on the same inputs, side by side, each with its own meters."""

from flashlib.pictures.canvas import Picture
from flashlib.pictures.tile_order import draw_tile_orders
from flashlib.types import Traffic
from flashlib.widgets.flash_player.frames import record
from flashlib.widgets.flash_player.tiled_widget import TiledWidget
from flashlib.widgets.widget import script, style

ORDERS = ("fa1", "fa2")


class ComparePlayers(TiledWidget):
    """Play the steps of FlashAttention 1 and 2 at once on Q (N_q, d) and K, V (N_k, d), and count their bytes.

    The arguments and settings are those of FlashPlayer without order.
    """

    _esm = script("flash_player/compare.js")
    _css = style("flash_player/places.css", "flash_player/stepped.css", "flash_player/compare.css")

    def __init__(
        self, Q=None, K=None, V=None, *, B_r=4, B_c=2, causal=False, mask=None, scale=None, N=8, d=4, seed=0
    ):
        setting = {"B_r": B_r, "B_c": B_c, "causal": causal}
        super().__init__((Q, K, V), N=N, d=d, seed=seed, scale=scale, mask=mask, **setting)

    def figure(self) -> Picture:
        """Return a picture of the order in which each computes the tiles, and of the bytes it moves."""
        if self.problem:
            raise ValueError(self.problem)
        traces = {}
        for order in ORDERS:
            moved = self._traffic(order)
            title = f"{order.upper()}: {moved.read:,} B read, {moved.written:,} B written"
            traces[title] = self._recordings[order].steps
        standard = sum(self.frames["fa1"]["standard"])
        words = f"The tiles of S in their order. Standard attention moves {standard:,} B."
        return draw_tile_orders(traces, len(self._inputs[0]), len(self._inputs[1]), words)

    def _sizes(self):
        f = self.frames["fa1"]
        sizes = ", ".join(f"{name}={f[name]!r}" for name in ("N_q", "N_k", "d", "B_r", "B_c", "causal"))
        moved = ", ".join(f"{order} moves {self._traffic(order).total} bytes" for order in ORDERS)
        sizes += self._mask_name()
        return f"{sizes}: {moved}, standard attention {sum(f['standard'])}"

    def _traffic(self, order):
        return Traffic(*self.frames[order]["all"])

    def _frames(self, **setting):
        run = {**setting, "scale": self._scale, "mask": self._mask}
        self._recordings = {o: record(*self._inputs, **run, order=o) for o in ORDERS}
        played = {o: self._played(recording, **setting, order=o) for o, recording in self._recordings.items()}
        return {**played, **self._shown(("B_r", "B_c", "causal"), **setting)}
