"""FlashPlayer: the steps of FlashAttention, tile by tile, with the real numbers."""

import numpy as np
import traitlets

from flashlib import cost, figures, tiled
from flashlib.state import check_counts, resolve_scale
from flashlib.widgets import learner
from flashlib.widgets.frames import pack, record
from flashlib.widgets.source import lines_of
from flashlib.widgets.widget import Widget, join

MAX_CELLS = 65_536  # of S
MAX_TILES = 4_096
MAX_NUMBERS = 6_000_000  # in the buffer: 48 MB
RANDOM = {"N": [1, 64], "d": [1, 16]}  # what the page offers
SETTING = ("B_r", "B_c", "causal", "order")
PLACES = "frames.js", "memory.js", "grid.js", "chip.js"
SOURCES = {"fa1": tiled._fa1_steps, "fa2": tiled._fa2_steps}


class FlashPlayer(Widget):
    """Play FlashAttention on Q (N_q, d) and K, V (N_k, d): each step is one Step of `tiled.steps`.

    Without Q, K and V they are random, (N, d), normal, float64, the same for the same seed. B_r and B_c above N_q
    and N_k are taken as N_q and N_k. capacity: bytes of SRAM to hold a tile against; default: the next power of
    two above what the first tile needs. my_steps: see `from_steps`.
    Setting `B_r`, `B_c`, `order`, `causal`, and `N`, `d`, `seed` of random inputs later, from Python or on the
    page, computes the steps anew; a size out of range is then moved into it. What `tiled.steps` refuses, and more
    than can be drawn or played, is said in the player's place.
    """

    _esm = join("shared.js", *PLACES, "words.js", "learner.js", "legend.js", "player.js")
    _css = join("shared.css", "places.css", "player.css")

    B_r = traitlets.Int().tag(sync=True)
    B_c = traitlets.Int().tag(sync=True)
    N = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    seed = traitlets.Int().tag(sync=True)
    causal = traitlets.Bool().tag(sync=True)
    order = traitlets.Enum(["fa1", "fa2"], "fa2").tag(sync=True)
    frames = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        Q=None,
        K=None,
        V=None,
        *,
        B_r=4,
        B_c=2,
        causal=False,
        order="fa2",
        scale=None,
        N=8,
        d=4,
        seed=0,
        capacity=None,
        my_steps=None,
    ):
        self._scale, self._my_steps, self._capacity = scale, my_steps, capacity
        self._random = Q is None and K is None and V is None
        setting = {"B_r": B_r, "B_c": B_c, "causal": causal, "order": order}
        try:
            self._controls = SETTING if my_steps is None else learner.accepted(my_steps)
            self._take((Q, K, V), N, d, seed)
            tiled.steps(*self._inputs, **setting, scale=scale)  # raises if one is wrong
            if capacity is not None:
                check_counts(capacity=capacity, at_least=1)
            setting |= self._into_range(None, B_r=int(B_r), B_c=int(B_c)) | {"causal": bool(causal)}
            frames = self._frames(**setting)
            state = {**frames["setting"], "frames": frames}
        except (TypeError, ValueError) as error:
            state = {"problem": str(error)}
        super().__init__(**state)
        if not self.problem:
            self.observe(self._changed, names=list(frames["setting"]))

    @classmethod
    def from_steps(cls, my_steps, Q=None, K=None, V=None, **setting):
        """Play a learner's own generator of steps, with the true values beside its own where they part.

        my_steps(Q, K, V, ...) is called with those of B_r, B_c, causal, order and scale that it takes by name, and
        yields Steps, of which i, j, m, l and O_acc are enough. The other arguments are those of FlashPlayer.
        """
        return cls(Q, K, V, my_steps=my_steps, **setting)

    def figure(self, at=None, row=None):
        """Return a matplotlib Figure of step `at`: 0 .. T - 1, or T for the end; default: one that rescales."""
        if self.problem:
            raise ValueError(self.problem)
        recording = self._recording
        if at is None:
            at = figures.telling_step(recording.steps)
        return figures.player(*self._inputs, recording.steps, at, O=recording.O_at(at), row=row)

    def _sizes(self):
        f = self.frames
        sizes = ", ".join(f"{name}={f[name]!r}" for name in ("N_q", "N_k", "d", "B_r", "B_c", "order", "causal"))
        return f"{sizes}: {len(f['steps'])} steps of {f['T_r']} x {f['T_c']} tiles"

    def _take(self, inputs, N, d, seed):
        """Keep a copy of the inputs, or random ones; raise TypeError or ValueError if they do not fit together."""
        if self._random:
            self._inputs = random_inputs(N, d, seed)
        elif any(X is None for X in inputs):
            raise TypeError("Q, K and V are given in part; pass all three, or none of them for random ones")
        else:
            tiled.steps(*inputs)  # raises if they do not fit
            self._inputs = tuple(np.array(X) for X in inputs)  # what the learner does to theirs is theirs
        self._seed = int(seed)

    def _changed(self, change):
        """Compute the steps of a new setting; where that fails, say why and go back to the one that is shown."""
        shown = self.frames["setting"]
        wanted = {name: getattr(self, name) for name in shown}
        if wanted == shown:
            return
        before = self._inputs, self._seed
        try:
            if self._random:
                sizes = {name: self._sized(name, wanted[name]) for name in RANDOM}
                self._take(self._inputs, **sizes, seed=wanted["seed"])
            wanted |= self._into_range(change.name, B_r=wanted["B_r"], B_c=wanted["B_c"])
            frames, refused = self._frames(**{name: wanted[name] for name in SETTING}), ""
        except (TypeError, ValueError) as error:
            self._inputs, self._seed = before
            frames, refused = self.frames, str(error)
        with self.hold_sync():
            self.frames, self.refused = frames, refused  # first, so that what follows finds nothing to compute
            for name, value in frames["setting"].items():
                setattr(self, name, value)

    def _largest(self):
        """Return the largest B_r and B_c."""
        return tuple(max(1, len(X)) for X in self._inputs[:2])

    def _into_range(self, changed, **blocks):
        """Return B_r and B_c moved into what can be played; raise ValueError where no block size helps."""
        for name, largest in zip(blocks, self._largest(), strict=True):
            blocks[name] = min(max(blocks[name], 1), largest)
        if changed in blocks:
            blocks[changed] = max(blocks[changed], self._smallest(changed, **blocks))
        if problem := too_much(*sizes_of(self._inputs), **blocks):
            raise ValueError(problem)
        return blocks

    def _smallest(self, name, **blocks):
        """Return the smallest B_r, or B_c, that can be played while the other one stays."""
        sizes = sizes_of(self._inputs)
        largest = dict(zip(("B_r", "B_c"), self._largest(), strict=True))[name]
        candidates = range(1, largest + 1)
        return next((n for n in candidates if not too_much(*sizes, **{**blocks, name: n})), largest)

    def _frames(self, B_r, B_c, causal, order):
        """Run the steps of a setting, keep the Recording, and return what the page is sent."""
        setting = {"B_r": B_r, "B_c": B_c, "causal": causal, "order": order}
        run = {**setting, "scale": self._scale}
        if self._my_steps is None:
            recording, source = record(*self._inputs, **run), SOURCES[order]
        else:
            recording, source = learner.record(self._my_steps, *self._inputs, **run), self._my_steps
        N_q, N_k, d = sizes_of(self._inputs)
        dtype = self._inputs[0].dtype.name
        held = cost.sram_bytes(B_r, B_c, d, dtype)
        self._capacity = self._capacity or 1 << held.bit_length()
        standard = cost.standard_traffic(N_q, N_k, d, dtype=dtype)
        self._recording = recording
        return {
            **pack(recording, *self._inputs),
            **{**setting, "N_q": N_q, "N_k": N_k, "d": d, "T_r": -(-N_q // B_r), "T_c": -(-N_k // B_c)},
            **{"dtype": dtype, "scale": resolve_scale(self._scale, d), "setting": self._setting(**setting)},
            "controls": [*self._controls, *(RANDOM if self._random else ())],
            "ranges": self._ranges(B_r=B_r, B_c=B_c),
            "standard": [standard.read, standard.written],
            "sram": [held, self._capacity],
            "lines": lines_of(source, causal=causal),
            "learner": learner.verdict(recording) if self._my_steps else None,
        }

    def _sized(self, name, value):
        """Return N or d of random inputs, moved into what the page offers, or up to what there is."""
        low, high = self.frames["ranges"][name]
        return min(max(value, low), high)

    def _setting(self, **setting):
        """Return all that the page may change, as it is now."""
        N, _, d = sizes_of(self._inputs)
        return {**setting, "N": N, "d": d, "seed": self._seed}

    def _ranges(self, **blocks):
        """Return the smallest and largest value of each slider."""
        largest = dict(zip(blocks, self._largest(), strict=True))
        ranges = {name: [self._smallest(name, **blocks), largest[name]] for name in blocks}
        N, _, d = sizes_of(self._inputs)
        return ranges | {name: [low, max(high, {"N": N, "d": d}[name])] for name, (low, high) in RANDOM.items()}


def random_inputs(N, d, seed):
    """Return Q, K and V, each (N, d), normal, float64; raises TypeError or ValueError for sizes below 1."""
    check_counts(at_least=1, N=N, d=d)
    check_counts(seed=seed)
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(N, d)) for _ in range(3))


def sizes_of(inputs):
    """Return N_q, N_k and d."""
    Q, K, _ = inputs
    return len(Q), len(K), Q.shape[1]


def too_much(N_q, N_k, d, B_r, B_c):
    """Return a sentence on why these sizes are too much to draw or play, or None."""
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
    numbers = 2 * N_q * N_k + (T_c + 1) * N_q * (4 * d + 8) + 2 * N_k * d  # S, P; states and O; K, V
    if numbers > MAX_NUMBERS:
        return (
            f"With d={d}, B_r={B_r} and B_c={B_c} the steps hold up to {numbers} numbers; the player takes at "
            f"most {MAX_NUMBERS}: pass a larger B_c, a smaller d or fewer rows"
        )
    return None
