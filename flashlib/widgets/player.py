"""FlashPlayer: the steps of FlashAttention, tile by tile, with the real numbers."""

import numpy as np
import traitlets

from flashlib import figures, tiled
from flashlib.state import resolve_scale
from flashlib.widgets.frames import pack, record
from flashlib.widgets.widget import Widget, join

MAX_CELLS = 65_536  # of S
MAX_TILES = 4_096
MAX_NUMBERS = 4_000_000  # in the buffer: 32 MB


class FlashPlayer(Widget):
    """Play FlashAttention on Q (N_q, d) and K, V (N_k, d): each step is one Step of `tiled.steps`.

    B_r and B_c above N_q and N_k are taken as N_q and N_k. Setting `B_r`, `B_c`, `order` or `causal` later, from
    Python or on the page, computes the steps anew; a block size out of range is then moved into it.
    Raises what `tiled.steps` raises, and ValueError for more than can be drawn or played.
    """

    _esm = join("shared.js", "frames.js", "places.js", "player.js")
    _css = join("shared.css", "player.css")

    B_r = traitlets.Int().tag(sync=True)
    B_c = traitlets.Int().tag(sync=True)
    causal = traitlets.Bool().tag(sync=True)
    order = traitlets.Enum(["fa1", "fa2"]).tag(sync=True)
    frames = traitlets.Dict().tag(sync=True)

    def __init__(self, Q, K, V, *, B_r=4, B_c=2, causal=False, order="fa2", scale=None):
        tiled.steps(Q, K, V, B_r=B_r, B_c=B_c, causal=causal, order=order, scale=scale)  # raises if one is wrong
        self._Q, self._K, self._V = (np.array(X) for X in (Q, K, V))  # what the learner does to theirs is theirs
        self._scale = scale
        B_r, B_c = min(int(B_r), self._largest("B_r")), min(int(B_c), self._largest("B_c"))
        if problem := self._problem(B_r, B_c):
            raise ValueError(problem)
        setting = {"B_r": B_r, "B_c": B_c, "causal": bool(causal), "order": order}
        super().__init__(**setting, frames=self._frames(**setting))
        self.observe(self._compute, names=list(setting))

    def _compute(self, change):
        self.frames = self._frames(self.B_r, self.B_c, self.causal, self.order)

    def _frames(self, B_r, B_c, causal, order):
        setting = {"B_r": B_r, "B_c": B_c, "causal": causal, "order": order}
        self._recording = record(self._Q, self._K, self._V, **setting, scale=self._scale)
        (N_q, d), N_k = self._Q.shape, len(self._K)
        return {
            **pack(self._recording, self._Q, self._K, self._V),
            **setting,
            **{"N_q": N_q, "N_k": N_k, "d": d, "T_r": -(-N_q // B_r), "T_c": -(-N_k // B_c)},
            **{"dtype": self._Q.dtype.name, "scale": resolve_scale(self._scale, d)},
            "range_B_r": [self._smallest("B_r", B_r, B_c), self._largest("B_r")],
            "range_B_c": [self._smallest("B_c", B_r, B_c), self._largest("B_c")],
        }

    def _largest(self, name):
        return max(1, len(self._Q if name == "B_r" else self._K))

    def _smallest(self, name, B_r, B_c):
        """Return the smallest B_r, or B_c, that can be played while the other one stays."""
        size = {"B_r": B_r, "B_c": B_c}
        candidates = range(1, size[name] + 1)
        return next((n for n in candidates if not self._problem(**{**size, name: n})), size[name])

    @traitlets.validate("B_r", "B_c")
    def _into_range(self, proposal):
        name, value = proposal.trait.name, proposal.value
        if not self.frames:  # under construction, and checked there
            return value
        size = {"B_r": self.B_r, "B_c": self.B_c, name: self._largest(name)}
        return min(max(value, self._smallest(name, **size)), self._largest(name))

    def _problem(self, B_r, B_c):
        """Return a sentence on why these block sizes are too much to draw or play, or None."""
        (N_q, d), N_k = self._Q.shape, len(self._K)
        if N_q * N_k > MAX_CELLS:
            return (
                f"S would have {N_q} x {N_k} = {N_q * N_k} cells; the player draws at most {MAX_CELLS}: "
                "pass fewer rows, e.g. Q[:64], K[:64], V[:64]"
            )
        T_r, T_c = -(-N_q // B_r), -(-N_k // B_c)
        if T_r * T_c > MAX_TILES:
            return (
                f"B_r={B_r} and B_c={B_c} cut S into {T_r} x {T_c} = {T_r * T_c} tiles; the player plays at most "
                f"{MAX_TILES}: pass larger blocks or fewer rows"
            )
        numbers = 2 * N_q * N_k + (T_c + 1) * N_q * (3 * d + 5) + 2 * N_k * d  # S, P; states and O; K, V
        if numbers > MAX_NUMBERS:
            return (
                f"With d={d}, B_r={B_r} and B_c={B_c} the steps hold up to {numbers} numbers; the player takes at "
                f"most {MAX_NUMBERS}: pass a larger B_c, a smaller d or fewer rows"
            )
        return None

    def figure(self, at=None, row=None):
        """Return a matplotlib Figure of step `at`: 0 .. T - 1, or T for the end; default: one that rescales."""
        recording = self._recording
        if at is None:
            at = figures.telling_step(recording.steps)
        return figures.player(self._Q, self._K, self._V, recording.steps, at, O=recording.O_at(at), row=row)

    def _sizes(self):
        f = self.frames
        sizes = ", ".join(f"{name}={f[name]!r}" for name in ("N_q", "N_k", "d", "B_r", "B_c", "order", "causal"))
        return f"{sizes}: {len(f['steps'])} steps of {f['T_r']} x {f['T_c']} tiles"
