"""BackwardPlayer: the steps of the backward pass, tile by tile, with the real numbers and their error."""

import numpy as np
import traitlets

from flashlib import cost, tiled
from flashlib.inputs import check_floating, check_gradient_inputs, resolve_scale
from flashlib.pictures.canvas import Picture
from flashlib.widgets.backward_player import figure
from flashlib.widgets.backward_player.frames import GRADIENTS, errors, exact_gradients, in_words, pack, record
from flashlib.widgets.flash_player.source import lines_of
from flashlib.widgets.flash_player.tiled_widget import TiledWidget, sizes_of
from flashlib.widgets.widget import script, style

SETTING = ("B_r", "B_c", "causal", "wrt")
SOURCES = {"kv": tiled.dkv_steps, "q": tiled.dq_steps}
PARTS = {
    "load": ("Q_i", "dO_i", "lse_i", "K_j", "V_j"),
    "scores": ("S_raw", "S_ij"),
    "weights": ("P_ij",),
    "dP": ("dP_ij",),
    "dS": ("dS_ij",),
    "add": ("dV_j", "dK_j", "dQ_i"),
    "store": ("dK", "dQ"),
}
"""The parts of a step, in order, and the names that each assigns."""


class BackwardPlayer(TiledWidget):
    """Play one pass of FlashAttention's backward: each step is one BackwardStep of `tiled.backward_steps`.

    Q, dO: (N_q, d); K, V: (N_k, d). Without them they are random, (N, d), normal, float64, the same for the same
    seed; Q, K and V are then those of FlashPlayer. wrt: "kv" (dK and dV, column blocks stay) or "q" (dQ, row
    blocks stay). B_r and B_c are clamped to N_q and N_k. opens_at: the step to open at, at its end.
    Setting `B_r`, `B_c`, `causal`, `wrt`, and `N`, `d`, `seed` of random inputs later, from Python or on the page,
    computes the steps again; sizes are then clamped to their range. If `tiled.backward_steps` refuses the
    arguments, or there is too much to draw or play, a sentence appears in place of the player.
    """

    _esm = script("backward_player/backward_player.js")
    _css = style("flash_player/places.css", "flash_player/stepped.css", "backward_player/backward_player.css")
    _names = ("Q", "K", "V", "dO")
    _relief = "larger blocks"

    wrt = traitlets.Enum(list(GRADIENTS), "kv").tag(sync=True)

    def __init__(
        self,
        Q=None,
        K=None,
        V=None,
        dO=None,
        *,
        B_r=4,
        B_c=2,
        causal=False,
        wrt="kv",
        scale=None,
        N=8,
        d=4,
        seed=0,
        opens_at=None,
    ):
        self._opens_at = opens_at
        setting = {"B_r": B_r, "B_c": B_c, "causal": causal, "wrt": wrt}
        super().__init__((Q, K, V, dO), N=N, d=d, seed=seed, scale=scale, **setting)

    def figure(self, at: int | None = None) -> Picture:
        """Return a picture of step `at`, 0 .. T - 1; default: one about two thirds through."""
        if self.problem:
            raise ValueError(self.problem)
        return figure.draw(self._recording, self._errors, self.frames, at)

    def _check(self, Q, K, V, dO, *, wrt="kv", **setting):
        super()._check(Q, K, V, **setting)
        check_floating(Q=Q, dO=dO)
        lse = np.zeros(len(Q), np.promote_types(Q.dtype, np.float32))
        check_gradient_inputs(Q, Q, lse, dO, lse.dtype)
        tiled.backward_steps(Q[:0], K[:0], V[:0], Q[:0], lse[:0], Q[:0], wrt=wrt)  # no rows: only wrt is checked

    def _numbers(self, N_q, N_k, d, T_r, T_c):
        # For dK and dV, or for dQ: what each step adds and the sum, the first sum, and what is stored.
        sums = max(4 * (T_r + 1) * N_k, 2 * (T_c + 1) * N_q) * d
        inputs = 2 * (N_q + N_k) * d + 2 * N_q
        return 4 * N_q * N_k + sums + inputs + 3 * T_r * T_c + 1  # S, P, dP, dS; errors

    def _sizes(self):
        f = self.frames
        sizes = ", ".join(f"{name}={f[name]!r}" for name in ("N_q", "N_k", "d", "B_r", "B_c", "wrt", "causal"))
        first, last = (in_words(self._errors.whole[k], f["dtype"]) for k in (0, -1))
        return f"{sizes}: {len(f['steps'])} steps of {f['T_r']} x {f['T_c']} tiles, error from {first} to {last}"

    def _frames(self, **setting):
        wrt, tiling = setting["wrt"], {name: setting[name] for name in ("B_r", "B_c")}
        N_q, N_k, d = sizes_of(self._inputs)
        exact = exact_gradients(*self._inputs, causal=setting["causal"], scale=self._scale)
        self._recording = record(*self._inputs, **setting, scale=self._scale)
        self._errors = errors(self._recording, exact, wrt=wrt, scale=resolve_scale(self._scale, d))
        dtype = self._inputs[0].dtype.name
        both = cost.fa2_backward_traffic(N_q, N_k, d, **tiling, causal=setting["causal"], dtype=dtype)
        standard = cost.standard_backward_traffic(N_q, N_k, d, dtype=dtype)
        return {
            **pack(self._recording, self._errors, *self._inputs, wrt=wrt),
            **self._tiled(**setting),
            **self._shown(SETTING, **setting),
            "both": [both.read, both.written],
            "standard": [standard.read, standard.written],
            "lines": lines_of(SOURCES[wrt], causal=setting["causal"], parts=PARTS),
            "opens_at": self._opened(len(self._recording.steps)),
        }
