"""The base of the widgets that play a tiling: inputs, settings and their ranges, limits."""

from collections.abc import Sequence

import numpy as np
import traitlets

from flashlib import cost, masks, tiled
from flashlib.inputs import check_counts, check_floating, check_shapes, resolve_scale
from flashlib.masks import Mask
from flashlib.widgets.flash_player.frames import pack
from flashlib.widgets.lab import Lab

MAX_CELLS = 65_536  # of S
MAX_TILES = 4_096
MAX_NUMBERS = 6_000_000  # numbers in the buffer: 48 MB
RANDOM = {"N": [1, 64], "d": [1, 16]}  # the range offered on the page


class TiledWidget(Lab):
    """A widget that shows the steps of a tiling of Q (N_q, d), K and V (N_k, d), given or random.

    A subclass has `_frames(**setting)`, which runs the steps and returns what is sent to the page; `setting` holds
    B_r, B_c, causal and the subclass's own settings. A subclass that takes more inputs than Q, K and V names all
    of them in `_names`, and has its own `_check` and `_numbers`. With a mask of `flashlib.masks` there is no
    control for causal.
    """

    _shows = "frames"
    _names: tuple[str, ...] = ("Q", "K", "V")
    _relief = "a larger B_c"  # which means fewer numbers
    _opens_at, _seed = None, 0
    _inputs: tuple[np.ndarray, ...] = ()

    B_r = traitlets.Int().tag(sync=True)
    B_c = traitlets.Int().tag(sync=True)
    N = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    seed = traitlets.Int().tag(sync=True)
    causal = traitlets.Bool().tag(sync=True)
    frames = traitlets.Dict().tag(sync=True)

    def __init__(self, inputs, *, N, d, seed, scale, capacity=None, mask=None, **setting):
        self._scale, self._capacity, self._mask = scale, capacity, mask
        self._random = all(X is None for X in inputs)
        super().__init__({**setting, "N": N, "d": d, "seed": seed}, inputs=inputs)

    def _take(self, inputs):
        """Keep a copy of the given inputs."""
        if self._random:
            return
        if any(X is None for X in inputs):
            names = f"{', '.join(self._names[:-1])} and {self._names[-1]}"
            raise TypeError(f"{names} are given in part; pass all, or none of them for random ones")
        self._check(*inputs)
        self._inputs = tuple(np.array(X) for X in inputs)  # the learner may change the originals later

    def _checked(self, name, value):
        """Return a setting; once something is shown, N and d are clamped to the page's range."""
        if name in RANDOM and self._setting:
            low, high = self.frames["ranges"][name]
            return min(max(value, low), high)
        return value

    def _computed(self, setting):
        before = self._inputs, self._seed
        tiling = {name: value for name, value in setting.items() if name not in (*RANDOM, "seed")}
        try:
            if self._random:
                self._inputs = random_inputs(setting["N"], setting["d"], setting["seed"], len(self._names))
            self._seed = int(setting["seed"])
            if not self._setting:
                self._check(*self._inputs, **tiling, scale=self._scale, mask=self._mask)
                if self._capacity is not None:
                    check_counts(capacity=self._capacity, at_least=1)
            blocks = self._into_range(int(setting["B_r"]), int(setting["B_c"]))
            return self._frames(**tiling | blocks | {"causal": bool(setting["causal"])})
        except (TypeError, ValueError):
            self._inputs, self._seed = before
            raise

    def _frames(self, **setting):
        raise NotImplementedError

    def _check(self, *inputs, **setting):
        """Raise TypeError or ValueError if the inputs or the setting are not accepted, before any work."""
        Q, K, V = inputs
        check_floating(Q=Q, K=K, V=V)
        check_shapes(Q, K, V, axes="(N, d)")  # V is drawn like K
        tiled.steps(Q, K, V, **setting)

    def _numbers(self, N_q, N_k, d, T_r, T_c):
        """Return the most numbers that would be sent to the page."""
        return 2 * N_q * N_k + (T_c + 1) * N_q * (4 * d + 8) + 2 * N_k * d  # S, P; states and O; K, V

    def _shown(self, controls, **setting):
        """Return the setting in the page's form: its values, which of them can be changed, and their ranges."""
        N, _, d = sizes_of(self._inputs)
        return {
            "setting": {**setting, "N": N, "d": d, "seed": self._seed},
            "controls": [*self._changeable(controls), *(RANDOM if self._random else ())],
            "ranges": self._ranges(B_r=setting["B_r"], B_c=setting["B_c"]),
        }

    def _changeable(self, controls):
        return [name for name in controls if name != "causal" or self._mask is None]

    def _played(self, recording, B_r, B_c, **setting):
        """Return what is sent to the page about one run."""
        N_q, N_k, d = sizes_of(self._inputs)
        dtype = self._inputs[0].dtype.name
        standard = cost.standard_traffic(N_q, N_k, d, dtype=dtype)
        held = cost.sram_bytes(B_r, B_c, d, dtype)
        self._capacity = self._capacity or 1 << held.bit_length()
        return {
            **pack(recording, *self._inputs),
            **self._tiled(B_r, B_c, **setting),
            "standard": [standard.read, standard.written],
            "sram": [held, self._capacity],
        }

    def _opened(self, T):
        """Return which of T steps to open at, or None; only once, since another tiling has different steps."""
        at, self._opens_at = self._opens_at, None
        return at if at is not None and at < T else None

    def _tiled(self, B_r, B_c, **setting):
        """Return the sizes of everything that is tiled, and the setting."""
        N_q, N_k, d = sizes_of(self._inputs)
        sizes = {"N_q": N_q, "N_k": N_k, "d": d, "T_r": -(-N_q // B_r), "T_c": -(-N_k // B_c)}
        setting |= {"dtype": self._inputs[0].dtype.name, "scale": resolve_scale(self._scale, d)}
        return {**sizes, "B_r": B_r, "B_c": B_c, **setting, **self._masked(N_q, N_k, setting["causal"])}

    def _masked(self, N_q, N_k, causal):
        """Return each row's hidden scores, [first, last + 1, first, ...], and whether the mask changes scores."""
        tiles = masks.resolve(self._mask, causal, N_q, N_k)
        changes = np.diff(~tiles.seen(*tiles.all), axis=1, prepend=False, append=False)
        return {
            "masked": [np.flatnonzero(row).tolist() for row in changes],
            "changed": tiles.mask.changes_scores,
        }

    def _mask_name(self):
        """Return the text of a mask in `repr`, "" without one."""
        return "" if self._mask is None else f", mask={name_of(self._mask)}"

    def _largest(self):
        """Return the largest B_r and B_c."""
        return tuple(max(1, len(X)) for X in self._inputs[:2])

    def _into_range(self, B_r, B_c):
        """Return B_r and B_c clamped to what can be played; raise ValueError if no block size can be."""
        blocks = {"B_r": B_r, "B_c": B_c}
        for name, largest in zip(blocks, self._largest(), strict=True):
            blocks[name] = min(max(blocks[name], 1), largest)
        shown = self._setting or blocks
        for name in [name for name in blocks if blocks[name] != shown[name]]:
            blocks[name] = max(blocks[name], self._smallest(name, **blocks))
        if problem := self._too_much(**blocks):
            raise ValueError(problem)
        return blocks

    def _smallest(self, name, **blocks):
        """Return the smallest B_r, or B_c, that can be played with the other one unchanged."""
        largest = dict(zip(("B_r", "B_c"), self._largest(), strict=True))[name]
        candidates = range(1, largest + 1)
        return next((n for n in candidates if not self._too_much(**{**blocks, name: n})), largest)

    def _too_much(self, B_r, B_c):
        """Return a sentence on why these block sizes give too much to draw or play, or None."""
        N_q, N_k, d = sizes_of(self._inputs)
        T_r, T_c = -(-N_q // B_r), -(-N_k // B_c)
        if N_q * N_k > MAX_CELLS:
            rows = ", ".join(f"{name}[:64]" for name in self._names)
            return (
                f"S would have {N_q} x {N_k} = {N_q * N_k} cells; the player draws at most {MAX_CELLS}: "
                f"pass fewer rows, e.g. {rows}"
            )
        if T_r * T_c > MAX_TILES:
            return (
                f"B_r={B_r} and B_c={B_c} cut S into {T_r} x {T_c} = {T_r * T_c} tiles; the player plays at most "
                f"{MAX_TILES}: pass larger blocks or fewer rows"
            )
        if (numbers := self._numbers(N_q, N_k, d, T_r, T_c)) > MAX_NUMBERS:
            return (
                f"With d={d}, B_r={B_r} and B_c={B_c} the steps hold up to {numbers} numbers; the player takes at "
                f"most {MAX_NUMBERS}: pass {self._relief}, a smaller d or fewer rows"
            )
        return None

    def _ranges(self, **blocks):
        """Return the smallest and largest value of each slider."""
        largest = dict(zip(blocks, self._largest(), strict=True))
        ranges = {name: [self._smallest(name, **blocks), largest[name]] for name in blocks}
        N, _, d = sizes_of(self._inputs)
        return ranges | {name: [low, max(high, {"N": N, "d": d}[name])] for name, (low, high) in RANDOM.items()}


def name_of(mask: Mask) -> str:
    """Return a mask's name, such as "window & softcap"."""
    sign = {masks.Both: " & ", masks.Either: " | "}.get(type(mask))
    return sign.join(map(name_of, mask.parts)) if sign else type(mask).__name__.lower()  # type: ignore[attr-defined]


def random_inputs(N: int, d: int, seed: int, count: int) -> tuple[np.ndarray, ...]:
    """Return Q, K, V, ..., each (N, d), normal, float64; raises TypeError or ValueError for sizes below 1."""
    check_counts(at_least=1, N=N, d=d)
    check_counts(seed=seed)
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(N, d)) for _ in range(count))


def sizes_of(inputs: Sequence[np.ndarray]) -> tuple[int, int, int]:
    """Return N_q, N_k and d."""
    Q, K, *_ = inputs
    return len(Q), len(K), Q.shape[1]
