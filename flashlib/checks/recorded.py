"""Run a learner's loop over tiles and keep what it did: its Steps, O as it went, what it loaded, how it ended."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashlib import tiled
from flashlib.checks.examine import Finding, Raised, attempt, find_problem
from flashlib.checks.values import describe_value, show
from flashlib.memory import HBM
from flashlib.state import Step

SCALE = 0.3  # not 1 / sqrt(d): an answer that does not use the argument is found out
NAMES = "m", "l", "O_acc"


class Sizes(NamedTuple):
    """One run: sizes and tiling, and how large scores get."""

    N_q: int
    N_k: int
    d: int
    B_r: int
    B_c: int
    causal: bool = False
    spread: float = 1.0

    def __str__(self):
        causal = ", causal" if self.causal else ""
        large = "" if self.spread == 1 else f", scores {self.spread:g} times as large"
        return f"N_q = {self.N_q}, N_k = {self.N_k}, d = {self.d}, tiles of {self.B_r} x {self.B_c}{causal}{large}"


def inputs(sizes):
    """Return Q, K, V of a run: random, the same every time."""
    rng = np.random.default_rng(35)  # in the first run, one row of each block is rescaled and one is not
    Q, K, V = (rng.normal(size=(N, sizes.d)).round(2) for N in (sizes.N_q, sizes.N_k, sizes.N_k))
    return Q * sizes.spread, K, V


class Watched(HBM):
    """Slow memory that counts loads, and whose slices are views, as those of any NumPy array are.

    loads.times: how many. loads.read: numbers loaded; the same slice again, straight after, counts once.
    loads.most, loads.least: the most and the fewest at once. What is allocated like it is a plain array.
    """

    def __array_finalize__(self, parent):
        super().__array_finalize__(parent)
        self.loads = getattr(parent, "loads", None) or _Loads()

    def __getitem__(self, key):
        tile = self.view(np.ndarray)[key]
        self.loads.add(key, tile.size)
        return tile

    def __array_function__(self, func, types, args, kwargs):
        if func in (np.empty_like, np.zeros_like, np.ones_like, np.full_like):
            return func(args[0].view(np.ndarray), *args[1:], **kwargs)
        return super().__array_function__(func, types, args, kwargs)


class _Loads:
    def __init__(self):
        self.times, self.read, self.most, self.least, self.last = 0, 0, 0, np.inf, "..."

    def add(self, key, size):
        self.times += 1
        self.most, self.least = max(self.most, size), min(self.least, size)
        if key is Ellipsis or repr(key) != self.last:
            self.read += size
        self.last = repr(key)


class Run:
    """One run of an answer: what it was given, the steps that it yielded, and how it ended."""

    def __init__(self, answer, order, sizes):
        self.answer, self.order, self.sizes = answer, order, sizes
        self.Q, self.K, self.V = inputs(sizes)
        self.O = np.full_like(self.Q, np.nan)
        self.setting = {"B_r": sizes.B_r, "B_c": sizes.B_c, "causal": sizes.causal, "scale": SCALE, "order": order}
        self.right = [(step.i, step.j) for step in tiled.steps(self.Q, self.K, self.V, **self.setting)]
        self.rows, self.cols = list(tiled.blocks(sizes.N_q, sizes.B_r)), list(tiled.blocks(sizes.N_k, sizes.B_c))
        self.steps, self.stored = [], []  # the Steps, and O as it was when each was yielded
        self.given = {X: Watched.put(getattr(self, X).copy())[0] for X in "QKV"}
        self.unsolved, self.ended = False, ""
        self._run()

    def _run(self):
        made = attempt(self.answer, *self.given.values(), self.O, *self.sizes[3:6], SCALE)
        if isinstance(made, Iterator):
            made = attempt(self._take_all, made)
        elif not isinstance(made, Raised):
            what = "nothing" if made is None else describe_value(made)
            self.ended = f"returns {what}; it must yield a Step for each tile"
        if isinstance(made, Raised):
            self.unsolved, self.ended = made.unsolved, find_problem(made, None, ())

    def is_changed(self, name):
        """Return whether the answer has written to its argument Q, K or V."""
        return not np.array_equal(self.given[name].view(np.ndarray), getattr(self, name))

    def _take_all(self, made):
        most = len(self.rows) * len(self.cols)
        for given in made:
            if len(self.steps) == most:
                raise Finding(f"it goes on after {most} steps, one for each tile of S; it was stopped")
            self.steps.append(self._step(given))
            self.stored.append(self.O.copy())
        if not self.steps:
            raise Finding("it yields nothing; it must yield a Step for each tile")

    def _step(self, given):
        """Return a Step of copies of what was yielded; raise Finding if it is none."""
        if not all(hasattr(given, name) for name in ("i", "j", *NAMES)):
            raise Finding(f"yields {describe_value(given)}; yield Step(i, j, m, l, O_acc)")
        for name, blocks in (("i", self.rows), ("j", self.cols)):
            index = getattr(given, name)
            if not isinstance(index, int | np.integer) or not 0 <= index < len(blocks):
                numbers = f"the numbers of its blocks are 0 to {len(blocks) - 1}"
                raise Finding(f"yields a Step with {name} = {show(index)}; {numbers}")
        rows, cols = self.rows[given.i], self.cols[given.j]
        n_r = rows.stop - rows.start
        arrays = []
        for name, shape in zip(NAMES, ((n_r,), (n_r,), (n_r, self.sizes.d)), strict=True):
            try:
                arrays.append(np.array(getattr(given, name), float))
            except (TypeError, ValueError):
                raise Finding(f"yields a Step whose {name} is {describe_value(getattr(given, name))}") from None
            if arrays[-1].shape != shape:
                where = f"{name} of tile ({given.i}, {given.j})"
                raise Finding(f"{where} has shape {arrays[-1].shape}; expected {shape}, one for each row")
        return Step(int(given.i), int(given.j), *arrays, rows, cols)
