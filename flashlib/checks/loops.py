"""Examine a learner's loop over tiles, a generator of Steps: find the first step that is wrong, and why."""

import numpy as np

from flashlib import naive
from flashlib.checks import updates
from flashlib.checks.examine import same as same_to
from flashlib.checks.process import announce
from flashlib.checks.recorded import NAMES, SCALE, Run, Sizes
from flashlib.checks.values import show
from flashlib.checks.verdict import Verdict
from flashlib.state import Step

UNNORMALISED = "O lies unnormalised in memory until the end: in this order store O_acc / l after each tile"
OUTER = {"fa2": "over Q, the inner one over K and V", "fa1": "over K and V, the inner one over Q"}


# From small to large; coprime, ragged, fewer keys than queries and more; the last two overflow without a maximum.
RUNS = (
    Sizes(4, 4, 2, 2, 2),
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
    for sizes in RUNS:
        announce(str(sizes))
        if found := _Examined(Run(answer, order, sizes)).verdict():
            return found
    return Verdict("", "right", f"every step and O, in all {len(RUNS)} runs")


class _Examined:
    """What is wrong with a run."""

    def __init__(self, run):
        self.run, self.sizes, self.steps = run, run.sizes, run.steps
        r, c = np.ogrid[: run.sizes.N_q, : run.sizes.N_k]
        self.seen = c <= r + run.sizes.N_k - run.sizes.N_q if run.sizes.causal else np.full((len(r), c.size), True)
        self.true = self._truth([(step.i, step.j) for step in self.steps])

    def verdict(self):
        """Return the Verdict if something is wrong, or None."""
        run = self.run
        if run.unsolved:
            return Verdict("", "not solved yet", "")
        if changed := next((X for X in "QKV" if run.is_changed(X)), ""):
            return self._wrong(f"its argument {changed} is changed: a slice is a view of it, so make a new array")
        if first := self._first():
            return self._wrong_step(*first)
        if run.ended:
            return self._wrong(run.ended)
        if found := self._about_tiles():
            visited = [(step.i, step.j) for step in self.steps]
            return self._wrong(found, ("expected", _list(run.right)), ("given", _list(visited)))
        return self._about_O() or self._about_loads()

    def _wrong(self, sentence, *details, opens_at=None):
        setting = {name: getattr(self.run, name) for name in "QKV"} | self.run.setting | {"opens_at": opens_at}
        run = setting if self.steps else None  # without a step there is nothing to play
        return Verdict("", "wrong", sentence, (("run", f"{self.sizes}, scale = {SCALE}"), *details), run=run)

    def _truth(self, tiles):
        """Return the State of each tile's row block once it has seen the tiles so far, each once."""
        S = np.where(self.seen, self.run.Q @ self.run.K.T * SCALE, -np.inf)
        visited, found = np.zeros_like(self.seen), []
        for i, j in tiles:
            rows = self.run.rows[i]
            visited[rows, self.run.cols[j]] = True
            found.append(updates.state(np.where(visited[rows], S[rows], -np.inf), self.run.V))
        return found

    def _first(self):
        """Return the number of the first wrong step, what of it is wrong and in which of its rows, or None."""
        for k, (step, true) in enumerate(zip(self.steps, self.true, strict=True)):
            for name in NAMES:
                right = np.isclose(getattr(step, name), getattr(true, name), rtol=1e-8, atol=1e-10)
                if not right.all():
                    return k, name, int(np.argwhere(~right)[0][0])
        return None

    def _wrong_step(self, k, name, r):
        step = self.steps[k]
        tile = f"tile ({step.i}, {step.j})"
        reason = self._reason(k, r) or self.run.ended or f"{name} is wrong"
        return self._wrong(
            f"{reason} (first seen at {tile})",
            ("first wrong", f"step {k + 1}, {tile}, row {step.rows.start + r}: {name}"),
            ("expected", _row(self.true[k], r)),
            ("given", _row(step, r)),
            opens_at=k,
        )

    def _reason(self, k, r):
        """Return the sentence of the first mistake that leads from each step to the next, or ""."""
        if found := self._misplaced():
            return found
        fa1 = (updates.FA1,) if self.run.order == "fa1" else ()
        known = updates.LOOPS, updates.SCORES, updates.MASKS, updates.UPDATES
        ks = sorted(range(len(self.steps)), key=lambda n: n != k)  # k first: most mistakes fail to explain it
        fits = lambda lines: all(self._fits(n, lines) for n in ks)  # noqa: E731
        return updates.named((*fa1, *known), fits, alone=self._estimated(k, r))

    def _misplaced(self):
        """Return what is wrong if what was yielded is right elsewhere."""
        ks, swapped = range(len(self.steps)), [(step.j, step.i) for step in self.steps]
        if all(_are_same(self.steps[k], self._before(k, self.true)) for k in ks):
            return "the Step is yielded before m, l and O_acc are updated: yield it after"
        if all(i < len(self.run.rows) and j < len(self.run.cols) for i, j in swapped):
            if all(map(_are_same, self.steps, self._truth(swapped))):
                return "i and j are exchanged: Step(i, j, ...), i the number of the row block"
        return ""

    def _before(self, k, states):
        """Return that of `states` which the row block of step k had before, as the steps came."""
        earlier = [n for n in range(k) if self.steps[n].i == self.steps[k].i]
        return states[earlier[-1]] if earlier else updates.start(*self.steps[k].O_acc.shape)

    def _estimated(self, k, r):
        """Return mistakes whose number is read off row r of step k: a wrong scale, a wrong start of m."""
        step = self.steps[k]
        m, raw = step.m[r], (self.run.Q[step.rows] @ self.run.K[step.cols].T)[r]
        if not np.isfinite(m):
            return ()
        times = m / raw.max() / SCALE
        scaled = {"S_ij": lambda s: np.where(s.seen, s.raw * s.scale * times, -np.inf)}
        start = {"m_old": lambda s: np.where(s.before.m == -np.inf, m, s.before.m)}
        return (
            updates.Slip(f"the scores are {times:.3g} times as large as Q_i @ K_j.T * scale", scaled),
            updates.Slip(f"m starts at {m:g}: it starts at -inf, or lower scores are not counted", start),
        )

    def _fits(self, k, lines):
        """Return whether `lines` lead from the State that the answer had before step k to the one it gave."""
        step, run = self.steps[k], self.run
        before = self._before(k, self.steps)
        first = not isinstance(before, Step)
        last = self.steps[k - 1] if first and k else before
        r, c = np.ogrid[step.rows, step.cols]
        try:
            after = updates.update(
                lines,
                **{"Q_i": run.Q[step.rows], "K_j": run.K[step.cols], "V_j": run.V[step.cols], "scale": SCALE},
                **{"before": before, "last": last, "first": first},
                **{"seen": self.seen[step.rows, step.cols], "r": r, "c": c, "past": len(run.K) - len(run.Q)},
                **{"K": run.K, "V": run.V, "j": step.j},
            )
        except ValueError:  # shapes that do not fit
            return False
        return _are_same(step, after)

    def _about_tiles(self):
        """Return what is wrong with the tiles that were visited, or ""."""
        right, visited = self.run.right, [(step.i, step.j) for step in self.steps]
        if missed := sorted(set(right) - set(visited)):
            return self._about_missed(missed)
        if extra := sorted(set(visited) - set(right)):
            return f"tile {extra[0]} is computed though the mask hides all of it: skip it"
        if len(visited) > len(right):
            twice = next(tile for tile in visited if visited.count(tile) > 1)
            return f"tile {twice} is computed twice"
        if visited != right:
            other = sorted(right, key=lambda tile: tile[::-1] if self.run.order == "fa2" else tile)
            what = "the loops are the other way round" if visited == other else "the tiles come in another order"
            return f"{what}: the outer one is {OUTER[self.run.order]}, each from its first block on"
        return ""

    def _about_missed(self, missed):
        (i, j), last_i, last_j = missed[0], len(self.run.rows) - 1, len(self.run.cols) - 1
        never = f"tile ({i}, {j}) is never computed"
        if all(j == last_j for _, j in missed) and self.sizes.N_k % self.sizes.B_c:
            return f"the last, shorter block of keys is dropped: {never}"
        if all(i == last_i for i, _ in missed) and self.sizes.N_q % self.sizes.B_r:
            return f"the last, shorter block of queries is dropped: {never}"
        hidden = [(i, j) for i in range(last_i + 1) for j in range(last_j + 1) if (i, j) not in self.run.right]
        if self.run.order == "fa1" and all(any(h < i and k == j for h, k in hidden) for i, j in missed):
            return f"the inner loop ends at a hidden tile: use continue, a later block may see its keys; {never}"
        if hidden and missed == [tile for tile in self.run.right if tile > min(hidden)]:
            return f"all ends at the first hidden tile: leave the inner loop alone, with break; {never}"
        if hidden and self.sizes.causal:
            return f"{never}, though some of its scores are visible: is_hidden(rows, cols, past), past = N_k - N_q"
        return never

    def _about_O(self):
        """Return the Verdict if O is wrong though all steps are right, or None."""
        run = self.run
        exact = naive.attention(run.Q, run.K, run.V, causal=self.sizes.causal, scale=SCALE)
        if same(run.O, exact.O):
            return self._wrong(UNNORMALISED) if self._is_stored_unnormalised() else None
        apart = np.array([not same(*rows) for rows in zip(run.O, exact.O, strict=True)])
        row = int(np.flatnonzero(apart)[0])
        rows = ("first wrong", f"O, row {row}"), ("expected", show(exact.O[row])), ("given", show(run.O[row]))
        return self._wrong(self._reason_of_O(apart, exact), *rows)

    def _reason_of_O(self, apart, exact):
        O, nan = self.run.O, np.isnan(self.run.O).all(axis=1)
        l, O_acc = np.zeros(len(O)), np.zeros_like(O)
        for step in self.steps:
            l[step.rows], O_acc[step.rows] = step.l, step.O_acc
        if nan.all():
            return "O is not filled: O[rows] = O_acc / l[:, None]"
        unseen = exact.lse == -np.inf
        if not (apart & ~unseen).any():
            return self._about_unseen(apart, nan)
        with np.errstate(all="ignore"):
            l = np.where(l == 0, 1, l)
            for sentence, wrong in (
                ("the final division by l is missing: O is O_acc / l", O_acc),
                ("O is divided by l twice", O_acc / (l * l)[:, None]),
                ("O is multiplied by l: O is O_acc / l", O_acc * l[:, None]),
                ("O is divided by the sum of all l: each row has its own", O_acc / l.sum()),
            ):
                if same(O[~unseen], wrong[~unseen]):
                    return sentence
        if nan[apart].all():
            return f"row {np.flatnonzero(apart)[0]} of O is not filled: every row block must be written"
        return "the steps are right, but O is not O_acc / l in all rows"

    def _about_unseen(self, apart, nan):
        """Return what is wrong with O in rows that see no key."""
        with_tile = np.zeros_like(apart)
        for step in self.steps:
            with_tile[step.rows] = True
        if not nan[apart].all():
            return "O is not 0 in a row that sees no key"
        if (apart & with_tile).any():
            return "O is nan in a row that sees no key: divide by 1 where l is 0"
        where = {"fa1": "O[:] = 0 comes before the loops", "fa2": "write it after the inner loop in any case"}
        return f"O is not filled in a row block without a tile: {where[self.run.order]}"

    def _is_stored_unnormalised(self):
        """Return whether O held O_acc between the tiles of the order FA1, and was divided at the end."""
        for n, step in enumerate(self.steps[:-1]):
            if self.run.order == "fa1" and self.steps[n + 1].i != step.i:  # else it may be a tile further by then
                O = self.run.stored[n + 1][step.rows]
                if same(O, step.O_acc) and not same(O, step.O_acc / np.where(step.l == 0, 1, step.l)[:, None]):
                    return True
        return False

    def _about_loads(self):
        """Return the Verdict if Q, K or V is not loaded block by block, or None."""
        for name, B, block in (("K", "B_c", "cols"), ("V", "B_c", "cols"), ("Q", "B_r", "rows")):
            given = self.run.given[name]
            if given.loads.most > self.run.setting[B] * self.sizes.d:
                return self._wrong(f"more than {B} rows of {name} are loaded at once: take one block at a time")
            if not given.loads.read:
                return self._wrong(f"{name} is copied as a whole: take a block at a time, {name}[{block}]")
            often = given.loads.times > 2 * len(
                self.run.cols
            )  # twice is once, for whoever asks K[cols] for its shape
            if self.run.order == "fa1" and name != "Q" and often:
                return self._wrong(f"{name}_j is loaded for each tile: load it once, before the inner loop")
        return None


def player(answer, run):
    """Return a FlashPlayer of the failing run of an answer."""
    from flashlib.widgets import FlashPlayer

    def my_steps(Q, K, V, B_r, B_c, causal, scale):  # as FlashPlayer takes a loop: without O
        return answer(Q, K, V, np.full(Q.shape, np.nan), B_r, B_c, causal, scale)

    return FlashPlayer.from_steps(my_steps, **run)


def same(x, y):
    return same_to(x, y, 1e-6)


def _are_same(state, other):
    return all(same(getattr(state, name), getattr(other, name)) for name in NAMES)


def _list(tiles):
    return ", ".join(map(str, tiles))


def _row(state, r):
    return "  ".join(f"{name} = {show(getattr(state, name)[r])}" for name in NAMES)
