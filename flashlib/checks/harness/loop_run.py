"""One run of a learner's loop over tiles: its Steps, O after each of them, what it loaded, how it ended."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from flashlib.checks.engine import Finding, attempt
from flashlib.checks.engine.value_text import describe_value, show
from flashlib.checks.harness.metered import MeteredArray
from flashlib.language.texts import say
from flashlib.learner.loop import InvalidStep, Recorder

BLOCKS = ("K", "B_c", "j"), ("V", "B_c", "j"), ("Q", "B_r", "i")


class LoopSizes(NamedTuple):
    """One run: sizes, tiling and scale, how large scores are, whether they tie.

    zeros: how many of the first rows of V are 0. seed: for Q, K and V.
    """

    N_q: int
    N_k: int
    d: int
    B_r: int
    B_c: int
    scale: float
    causal: bool = False
    spread: float = 1.0
    ties: bool = False
    zeros: int = 0
    seed: int = 35  # in the first run, one row of each block is rescaled and one is not
    words: str = ""

    def __str__(self):
        special = [f"tiles of {self.B_r} x {self.B_c}"]
        special += ["causal"] if self.causal else []
        special += [f"scores {self.spread:g} times as large"] if self.spread != 1 else []
        special += ["scores that tie"] if self.ties else []
        special += [f"values that begin with {self.zeros} zeros"] if self.zeros else []
        words = ", ".join(map(say, special))
        return f"N_q = {self.N_q}, N_k = {self.N_k}, d = {self.d}, {words}{self.words}, scale = {self.scale:g}"


# From small to large, with ragged tiles, and with fewer or more keys than queries. Some overflow without a
# maximum. With seed 342 there are weights and factors near exp(-19).
RUNS = (
    LoopSizes(4, 4, 2, 2, 2, 0.3),
    LoopSizes(3, 7, 2, 2, 3, 0.4),
    LoopSizes(6, 6, 2, 3, 3, 0.5, causal=True),
    LoopSizes(3, 7, 3, 2, 3, 0.3, causal=True),
    LoopSizes(7, 4, 3, 2, 3, 0.6, causal=True),
    LoopSizes(5, 8, 4, 2, 3, 0.3, spread=1000.0),
    LoopSizes(11, 13, 4, 4, 5, 0.3, causal=True, spread=1000.0),
    LoopSizes(10, 11, 2, 2, 2, 0.7),
    LoopSizes(6, 8, 2, 2, 3, 0.5, ties=True),
    LoopSizes(3, 5, 2, 4, 7, 0.5),
    LoopSizes(3, 4, 1, 1, 1, 0.5, causal=True),
    LoopSizes(3, 0, 2, 2, 2, 0.5),
    LoopSizes(3, 6, 2, 2, 2, 0.5, zeros=3),
    LoopSizes(4, 6, 2, 2, 2, 0.5, spread=10.0, seed=342),
    LoopSizes(6, 3, 1, 6, 1, 0.5, causal=True, spread=1e6),
)


def any_sizes(rng: np.random.Generator) -> LoopSizes:
    """Return random LoopSizes."""
    N_q, N_k, B_r, B_c, d, seed = (
        int(rng.integers(*ends)) for ends in ((3, 16), (3, 16), (2, 6), (2, 6), (2, 6), (99,))
    )
    return LoopSizes(N_q, N_k, d, B_r, B_c, int(rng.integers(1, 20)) / 10, bool(rng.integers(2)), seed=seed)


def inputs(sizes: LoopSizes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Q, K and V of a run: random, but the same every time."""
    rng = np.random.default_rng(sizes.seed)
    shapes = [(N, sizes.d) for N in (sizes.N_q, sizes.N_k, sizes.N_k)]
    Q, K, V = ((rng.integers(-1, 2, s) * 1.0 if sizes.ties else rng.normal(size=s).round(2)) for s in shapes)
    V[: sizes.zeros] = 0
    return Q * sizes.spread, K, V


class LoopRun:
    """One run of an answer.

    recorder: a Recorder of its Steps. stored: O at each Step. given: its Q, K and V, in slow memory. times: for
    each of them, in how many intervals between two Steps each number was loaded. early: how many numbers of each
    were loaded before the first Step. ended: the Finding that ended the run, or None.
    """

    def __init__(self, answer: Callable, order: str, sizes: LoopSizes, O_lost: bool = False) -> None:
        """O_lost: whether O is overwritten with nan after each Step."""
        self.answer, self.order, self.sizes, self.O_lost = answer, order, sizes, O_lost
        self.inputs = dict(zip("QKV", inputs(sizes), strict=True))
        self.O = np.full((sizes.N_q, sizes.d), np.nan)
        tiling = {"B_r": sizes.B_r, "B_c": sizes.B_c, "causal": sizes.causal, "scale": sizes.scale}
        self.setting = tiling | {"order": order}
        self.recorder = Recorder(**self.inputs, others=(), **self.setting)
        self.stored = []
        self.given = {name: MeteredArray(X) for name, X in self.inputs.items()}
        self.times = {name: np.zeros(X.shape, int) for name, X in self.inputs.items()}
        self._read = {name: np.zeros(X.shape, int) for name, X in self.inputs.items()}
        made = attempt(answer, *self.given.values(), self.O, *tiling.values())
        if isinstance(made, Iterator):
            made = attempt(self._take_all, made)
        elif not isinstance(made, Finding):
            made = Finding("not_a_generator", given="nothing" if made is None else describe_value(made))
        self.ended = made
        self._tally()

    def changed(self) -> str:
        """Return the name of an argument that the answer has written to, or ""."""
        return next((name for name, X in self.inputs.items() if not np.array_equal(self.given[name]._data, X)), "")

    def about_blocks(self) -> Finding | None:
        """Return a Finding about a load of more than a block, or None."""
        for name, B, _ in BLOCKS:
            if self.given[name].loads.most > self._block(B):
                return Finding("loaded_at_once", name=name, B=B)
        return None

    def about_loads(self) -> Finding | None:
        """Return a Finding unless blocks are loaded one at a time, and once for each tile or for its loop."""
        if found := self.about_blocks():
            return found
        for name, B, block in BLOCKS:
            stays, times, needed = (name == "Q") == (self.order == "fa2"), self.times[name], self._needed(name)
            if self._holds(name, stays, self._block(B), needed):
                return Finding("all_held", name=name)
            if stays and (times > 1).any():
                return Finding("block_again", name=name, block=block)
            if not stays and (times > needed).any():
                return Finding("hidden_loaded" if self.sizes.causal else "load_again", name=name)
        return None

    def needs_O(self) -> bool:
        """Return whether later tiles start from O in memory: if it is lost after each Step, other steps follow."""
        steps = self.recorder.steps
        without = LoopRun(self.answer, self.order, self.sizes, O_lost=True).recorder.steps
        if len(without) < len(steps):
            return True
        return not all(np.array_equal(x.O_acc, y.O_acc) for x, y in zip(without, steps, strict=True))

    def _holds(self, name, stays, block, needed):
        """Return whether more than a block is kept; loading one block ahead is allowed."""
        X = self.given[name]
        if self.sizes.causal:  # hidden keys of a tile on the diagonal need not be loaded
            return X.loads.held > 3 * block
        ahead = self.early[name] > 2 * block and np.isnan(self.stored[0]).any()
        return X.loads.held > 3 * block or ahead or (not stays and (X.reads < needed).any())

    def _block(self, B):
        return self.setting[B] * self.sizes.d

    def _needed(self, name):
        """Return how many tiles need each number of Q, K or V."""
        found = np.zeros(self.inputs[name].shape, int)
        for step in self.recorder.tiles.values():
            found[step.rows if name == "Q" else step.cols] += 1
        return found

    def _take_all(self, made):
        try:
            for _ in self.recorder.follow(made):
                self.stored.append(self.O.copy())
                if self.O_lost:
                    self.O.fill(np.nan)
                self._tally()
        except InvalidStep as error:
            raise _finding(error) from None
        if not self.stored and self.recorder.tiles and not self.sizes.causal:
            raise Finding("yields_nothing")

    def _tally(self):
        """Count the loads of the interval that ends here."""
        for name, X in self.given.items():
            self.times[name] += X.reads > self._read[name]
            self._read[name] = X.reads.copy()
        if len(self.stored) < 2:
            self.early = {name: int(times.sum()) for name, times in self.times.items()}


def _finding(error):
    """Return the Finding about an object that was yielded but is not a step."""
    fields = dict(error.fields)
    if error.why == "no_block":
        fields |= {"given": show(fields["given"]), "last": fields["count"] - 1}
    elif error.why != "goes_on":
        fields["given"] = describe_value(fields["given"])
    return Finding(error.why, **fields)
