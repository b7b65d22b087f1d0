"""Examine a learner's loop over tiles, a generator of Steps: find the first step that is wrong, and why."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashlib import naive, tiled
from flashlib.checks import updates
from flashlib.checks.examine import Raised, attempt, describe_value, not_callable, same, show
from flashlib.checks.process import announce
from flashlib.checks.verdict import Verdict
from flashlib.memory import HBM
from flashlib.widgets.player import learner

TOLERANCE = 1e-6


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
        large = "" if self.spread == 1 else f", scores about {self.spread:g} times as large"
        return f"N_q = {self.N_q}, N_k = {self.N_k}, d = {self.d}, tiles of {self.B_r} x {self.B_c}{causal}{large}"


# From small to large; coprime, ragged, fewer keys than queries and more; the last two overflow without a maximum.
RUNS = (
    Sizes(2, 4, 2, 2, 2),
    Sizes(3, 7, 2, 2, 3),
    Sizes(6, 6, 2, 2, 2, causal=True),
    Sizes(3, 7, 3, 2, 3, causal=True),
    Sizes(7, 4, 3, 2, 3, causal=True),
    Sizes(5, 8, 4, 2, 3, spread=1000.0),
    Sizes(11, 13, 4, 4, 5, causal=True, spread=1000.0),
)


def examine(answer, order) -> Verdict:
    """Return the Verdict on answer(Q, K, V, O, B_r, B_c, causal, scale), which yields Steps and fills O.

    order: "fa2" or "fa1", the order in which it must visit the tiles.
    """
    if problem := not_callable(answer):
        return Verdict("", "wrong", problem)
    for sizes in RUNS:
        announce(str(sizes))
        if found := _Examined(answer, order, sizes).problem():
            return found
    return Verdict("", "right", f"every step and O, in all {len(RUNS)} runs")


def inputs(sizes):
    """Return Q, K, V of a run: random, the same every time."""
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(N, sizes.d)).round(2) for N in (sizes.N_q, sizes.N_k, sizes.N_k))
    return Q * sizes.spread, K, V


class _Tiles(HBM):
    """Slow memory that remembers the most rows loaded at once."""

    def __array_finalize__(self, parent):
        super().__array_finalize__(parent)
        self.most = getattr(parent, "most", None) or [0]

    def __getitem__(self, key):
        tile = super().__getitem__(key)
        self.most[0] = max(self.most[0], tile.size)
        return tile


class _Examined:
    """One run of an answer, and what is wrong with it."""

    def __init__(self, answer, order, sizes):
        self.answer, self.order, self.sizes = answer, order, sizes
        self.Q, self.K, self.V = inputs(sizes)
        self.scale = 1 / np.sqrt(sizes.d)
        self.setting = {"B_r": sizes.B_r, "B_c": sizes.B_c, "causal": sizes.causal, "order": order}
        self.O = np.full_like(self.Q, np.nan)
        self.unsolved, self.said, self.loaded = False, "", {}

    def problem(self):
        """Return the Verdict if something is wrong, or None."""
        try:
            recording = learner.record(self._steps, self.Q, self.K, self.V, **self.setting, scale=None)
        except ValueError as error:
            if self.unsolved:
                return Verdict("", "not solved yet", "")
            return self._wrong(self.said or self._named(str(error)))
        said = learner.verdict(recording)
        if said["first"]:
            return self._at_step(recording, *said["first"])
        found = self._about_tiles(recording) or self._about_O(recording)
        return found and self._wrong(found)

    def _steps(self, Q, K, V, B_r, B_c, causal):
        """Run the answer on metered arrays, so that the recorder sees a function of Q, K, V."""
        arrays = {name: _Tiles.put(X.copy())[0] for name, X in (("Q", Q[:]), ("K", K[:]), ("V", V[:]))}
        O = HBM.put(self.O)[0]
        made = attempt(self.answer, *arrays.values(), O, B_r, B_c, causal, self.scale)
        self.unsolved = getattr(made, "unsolved", False)
        if isinstance(made, Raised):
            self.said = f"raises {made.error}"
        elif not isinstance(made, Iterator):
            self.said = f"returned {describe_value(made)}; it should yield a Step for each tile"
        if self.said:
            return
        try:
            yield from made
        except NotImplementedError:
            self.unsolved = True
            raise
        finally:
            self.loaded = {name: X.most[0] for name, X in arrays.items()}

    def _at_step(self, recording, k, name, row):
        step, true = recording.steps[k], recording.true[k]
        rows = step.rows
        where = f"step {k + 1}, tile ({step.i}, {step.j})"
        reason = self._reason(recording, k) or f"{name} is wrong at this tile"
        r = row - rows.start
        details = (
            ("run", str(self.sizes)),
            ("first wrong", f"{where}: {name} of row {row}"),
            ("expected", show(getattr(true, name)[r])),
            ("given", show(getattr(step, name)[r])),
        )
        return self._wrong(f"{reason} (first seen at tile ({step.i}, {step.j}))", details)

    def _reason(self, recording, k):
        """Return the sentence of the first mistake that leads from the state before step k to what was given."""
        step = recording.steps[k]
        given = step.m, step.l, step.O_acc
        before = self._state_before(recording, k)
        V_j = tiled.load(self.V, step.cols)
        for sentence, S_ij in self._scores(step):
            if _fits(updates.right, S_ij, V_j, before, given):
                return sentence
        S_ij = dict(self._scores(step))[""]
        for sentence, update in updates.MISTAKES:
            if _fits(update, S_ij, V_j, before, given):
                return sentence
        if k and recording.steps[k - 1].i != step.i:
            last = recording.steps[k - 1]
            if _fits(updates.right, S_ij, V_j, (last.m, last.l, last.O_acc), given):
                return "the state of the row block before is carried on: start each row block at m = -inf, l = 0, O_acc = 0"
        if _fits(updates.right, S_ij, V_j, (np.zeros_like(before[0]), *before[1:]), given):
            return "m starts at 0: it starts at -inf, or scores below 0 are lost"
        return ""

    def _state_before(self, recording, k):
        i = recording.steps[k].i
        earlier = [n for n in range(k) if recording.steps[n].i == i]
        if earlier:
            step = recording.steps[earlier[-1]]
            return step.m, step.l, step.O_acc
        n_r, d = recording.steps[k].O_acc.shape
        return np.full(n_r, -np.inf), np.zeros(n_r), np.zeros((n_r, d))

    def _scores(self, step):
        """Yield (what is wrong with them, the scores) of the tile of a step; the right ones come last."""
        raw = self.Q[step.rows] @ self.K[step.cols].T
        past = len(self.K) - len(self.Q)
        mask = tiled.is_visible(step.rows, step.cols, past)
        r, c = np.ogrid[step.rows, step.cols]
        seen = mask if self.sizes.causal else np.ones_like(mask)
        hide = lambda S, visible: np.where(visible, S, -np.inf)  # noqa: E731
        S = raw * self.scale
        yield "the scale is missing: S_ij = Q_i @ K_j.T * scale", hide(raw, seen)
        yield "the scale is applied twice", hide(S * self.scale, seen)
        if self.sizes.causal:
            yield "the causal mask is missing", S
            yield "the causal mask is aligned top left: query r sees keys up to r + N_k - N_q", hide(S, c <= r)
            yield "a query must see its own key too: the mask is c <= r + N_k - N_q", hide(S, c < r + past)
            yield (
                "the causal mask is upside down: hidden scores are kept, visible ones become -inf",
                hide(S, ~mask),
            )
            yield (
                "hidden scores become 0: they must become -inf, since exp(0 - m) is a weight",
                np.where(mask, S, 0),
            )
            yield (
                "-1e6 is added to hidden scores: a row that sees no key then sees them all",
                np.where(mask, S, S - 1e6),
            )
            yield "hidden scores become -1e6: a row that sees no key then sees them all", np.where(mask, S, -1e6)
        else:
            yield "a causal mask is applied though causal is False", hide(S, mask)
        yield "", hide(S, seen)

    def _about_tiles(self, recording):
        visited = [(step.i, step.j) for step in recording.steps]
        right = [(step.i, step.j) for step in tiled.steps(self.Q, self.K, self.V, **self.setting)]
        T_c = -(-self.sizes.N_k // self.sizes.B_c)
        T_r = -(-self.sizes.N_q // self.sizes.B_r)
        if recording.remark:
            return self._named(recording.remark)
        if missed := sorted(set(right) - set(visited)):
            i, j = missed[0]
            if all(j == T_c - 1 for _, j in missed) and self.sizes.N_k % self.sizes.B_c:
                return f"the last, shorter block of keys is dropped: tile ({i}, {j}) is never computed"
            if all(i == T_r - 1 for i, _ in missed) and self.sizes.N_q % self.sizes.B_r:
                return f"the last, shorter block of queries is dropped: tile ({i}, {j}) is never computed"
            return f"tile ({i}, {j}) is never computed; some of its scores are visible"
        if extra := sorted(set(visited) - set(right)):
            return f"tile {extra[0]} is computed though the mask hides all of it: skip it"
        if len(visited) > len(right):
            twice = next(tile for tile in visited if visited.count(tile) > 1)
            return f"tile {twice} is computed twice"
        if visited != right:
            outside = {"fa2": "rows of Q outside, keys inside", "fa1": "keys outside, rows of Q inside"}[
                self.order
            ]
            return f"the tiles come in another order than asked for, which is {outside}: {visited[:4]} ..."
        return ""

    def _about_O(self, recording):
        exact = naive.attention(self.Q, self.K, self.V, causal=self.sizes.causal)
        O_acc = np.zeros_like(self.O)
        for step in recording.steps:
            O_acc[step.rows] = step.O_acc
        if same(self.O, exact.O, TOLERANCE):
            return self._about_loads()
        unseen = exact.lse == -np.inf
        if np.isnan(self.O).all():
            return "O is not filled: after the last tile of a row block, O[rows] = O_acc / l"
        if same(self.O, O_acc, TOLERANCE):
            return "the final division by l is missing: O is O_acc / l"
        if same(self.O[~unseen], exact.O[~unseen], TOLERANCE):
            what = "nan" if np.isnan(self.O[unseen]).any() else "not 0"
            return f"O is {what} in a row that sees no key: divide by 1 where l is 0, and write row blocks without a tile"
        row = int(np.flatnonzero(~np.isclose(self.O, exact.O).all(axis=1))[0])
        return f"the steps are right, but row {row} of O is not"

    def _about_loads(self):
        for name, B in (("K", "B_c"), ("V", "B_c"), ("Q", "B_r")):
            if self.loaded[name] > self.setting[B] * self.sizes.d:
                return f"more than {B} rows of {name} are loaded at once: take one block at a time"
        return ""

    def _wrong(self, sentence, details=()):
        run = {"Q": self.Q, "K": self.K, "V": self.V, **self.setting}
        return Verdict("", "wrong", sentence, details or (("run", str(self.sizes)),), run=run)

    def _named(self, text):
        return text.replace("_steps", getattr(self.answer, "__name__", "the function"))


def player(answer, run):
    """Return a FlashPlayer of the failing run of an answer."""
    from flashlib.widgets import FlashPlayer

    def my_steps(Q, K, V, B_r, B_c, causal):  # as FlashPlayer takes a loop: without O
        return answer(Q, K, V, np.full_like(Q, np.nan), B_r, B_c, causal, 1 / np.sqrt(Q.shape[1]))

    return FlashPlayer.from_steps(my_steps, **run)


def _fits(update, S_ij, V_j, before, given):
    with np.errstate(all="ignore"):
        guess = update(S_ij, V_j, *before)
    return all(same(x, y, TOLERANCE) for x, y in zip(given, guess, strict=True))
