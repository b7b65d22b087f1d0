"""ComparePlayers: both loop orders on the same inputs, side by side, each with its own meters."""

from flashlib import figures
from flashlib.state import Traffic
from flashlib.widgets.player.frames import record
from flashlib.widgets.player.tiled_widget import PLACES, TiledWidget
from flashlib.widgets.widget import script, style

ORDERS = ("fa1", "fa2")


class ComparePlayers(TiledWidget):
    """Play the steps of FlashAttention 1 and 2 at once on Q (N_q, d) and K, V (N_k, d), and count their bytes.

    The arguments, and what may be set later, are those of FlashPlayer, less the order.
    """

    _esm = script(*PLACES, "player/legend.js", "player/stepped.js", "player/compare.js")
    _css = style("player/places.css", "player/stepped.css", "player/compare.css")

    def __init__(self, Q=None, K=None, V=None, *, B_r=4, B_c=2, causal=False, scale=None, N=8, d=4, seed=0):
        super().__init__((Q, K, V), N=N, d=d, seed=seed, scale=scale, B_r=B_r, B_c=B_c, causal=causal)

    def figure(self):
        """Return a picture of the order in which each computes the tiles, and of the bytes that it moves."""
        if self.problem:
            raise ValueError(self.problem)
        picture = figures.Picture(7.4, 4.2)
        N_q, N_k = len(self._inputs[0]), len(self._inputs[1])
        for n, order in enumerate(ORDERS):
            ax = picture.add_axes((0.06 + 0.5 * n, 0.12, 0.42, 0.7))
            moved = self._traffic(order)
            title = f"{order.upper()}: {moved.read:,} B read, {moved.written:,} B written"
            figures.tile_order(self._recordings[order].steps, N_q, N_k, ax=ax, title=title)
            ax.title.set_size(9.5)
        standard = sum(self.frames["fa1"]["standard"])
        words = f"Tiles of S in the order in which they are computed. Standard attention moves {standard:,} B."
        picture.text(0.06, 0.03, words, size=9.5, color=figures.TEXT)
        return picture

    def _sizes(self):
        f = self.frames["fa1"]
        sizes = ", ".join(f"{name}={f[name]!r}" for name in ("N_q", "N_k", "d", "B_r", "B_c", "causal"))
        moved = ", ".join(f"{order} moves {self._traffic(order).total} bytes" for order in ORDERS)
        return f"{sizes}: {moved}, standard attention {sum(f['standard'])}"

    def _traffic(self, order):
        return Traffic(*self.frames[order]["all"])

    def _frames(self, **setting):
        self._recordings = {o: record(*self._inputs, **setting, order=o, scale=self._scale) for o in ORDERS}
        played = {o: self._played(recording, **setting, order=o) for o, recording in self._recordings.items()}
        return {**played, **self._shown(("B_r", "B_c", "causal"), **setting)}
