"""Examine a learner's loop over tiles, a generator of Steps: find the first step that is wrong, and why.

Each step is a Case for `diagnosis`: the update by a tile leads from the answer's previous State of the row block
to the State in the step.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flashlib import naive, tiled
from flashlib.checks.engine import Known, Outcome, ProgramText, Verdict, announce, diagnose, random_cases, written
from flashlib.checks.engine.cases import UNSOLVED, Case, Finding, Tried, attempt, find_problem
from flashlib.checks.engine.equality import same
from flashlib.checks.engine.mistake_tables import Mistake
from flashlib.checks.engine.value_text import distinct_texts, show
from flashlib.checks.harness import update
from flashlib.checks.harness.loop_run import RUNS, LoopRun, any_sizes
from flashlib.learner.loop import STATE, Truth
from flashlib.types import Step

if TYPE_CHECKING:
    from flashlib.widgets import FlashPlayer

OUTER = {"fa2": "over Q, the inner one over K and V", "fa1": "over K and V, the inner one over Q"}
UNTILED = {"fa1": "O[:] = 0 comes before the loops", "fa2": "write it after the inner loop in any case"}
STEP = "step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, causal, seen, r, c, past, K, V, j, first, last)"
BEFORE = "m_old = m_old", "l_old = l_old", "O_acc_old = O_acc_old"

UPDATE = update.program(STEP, *BEFORE)


def program(text: str, **names: object) -> ProgramText:
    """Return the ProgramText of a loop whose tiles are updated by `step`, which its known mistakes edit."""
    return update.looped(text, signature=STEP, before=BEFORE, **names)


def examine(answer: Callable, order: str, known: Known) -> Verdict:
    """Return the Verdict on answer(Q, K, V, O, B_r, B_c, causal, scale), which yields Steps and fills O.

    order: "fa2" or "fa1", the order in which it must visit the tiles. known: a Known whose program was made by
    `program`.
    """
    runs = (*RUNS, *random_cases.cases(any_sizes))
    for sizes in runs:
        announce(str, sizes)
        if found := _Examination(LoopRun(answer, order, sizes), known).verdict():
            return found
    if order == "fa1" and (found := _Examination(LoopRun(answer, order, RUNS[0]), known).about_O_between_tiles()):
        return found
    return Verdict("", Outcome.RIGHT, f"every step and O, in all {len(runs)} runs")


class PlayedLoop(NamedTuple):
    """A run that a Verdict can play: its inputs and tiling, and the step at which the player opens."""

    setting: dict

    def play(self, answer: Callable) -> "FlashPlayer":
        """Return a FlashPlayer of the loop."""
        from flashlib.widgets import FlashPlayer  # here: checks do not need widgets

        return FlashPlayer.from_loop(answer, **self.setting)


def _programmed(table, function):
    """Return the Known for a table whose mistakes edit a small function."""
    return Known(table, written(function))


YIELDED = _programmed("yielded", "def yielded(m, l, O_acc, m_old):\n    return m, l, O_acc")
O_OF_LOOP = _programmed("O_of_loop", "def O(l, O_acc):\n    return O_acc / l[:, None]")


class _Examination:
    """Finds what is wrong with a run."""

    def __init__(self, run, known):
        self.run, self.known, self.sizes = run, known, run.sizes
        self.recorder, self.steps, self.true = run.recorder, run.recorder.steps, run.recorder.true
        r, c = np.ogrid[: run.sizes.N_q, : run.sizes.N_k]
        self.seen = c <= r + run.sizes.N_k - run.sizes.N_q if run.sizes.causal else np.full((len(r), c.size), True)

    def verdict(self):
        """Return the Verdict if anything is wrong, else None."""
        run = self.run
        if run.ended is UNSOLVED:
            return Verdict("", Outcome.NOT_SOLVED, "")
        if name := run.changed():
            return self._wrong(Finding("argument_changed", name=name))
        if first := self._first():
            return self._wrong_step(*first)
        if run.ended:
            return self._wrong(run.ended)
        if found := self._about_tiles():
            visited = [(step.i, step.j) for step in self.steps]
            return self._wrong(found, ("expected", _list(self.recorder.tiles)), ("given", _list(visited)))
        if verdict := self._about_O():
            return verdict
        if found := self._about_stored() or run.about_loads():
            return self._wrong(found)
        return None

    def about_O_between_tiles(self):
        """Return the Verdict if this run, which is right, never loads the O that it stores, else None."""
        return None if self.run.needs_O() else self._wrong(Finding("O_not_loaded"))

    def _verdict_of(self, found):
        """Return the Verdict for a Finding; a Verdict is returned unchanged."""
        return self.known.verdict(found) if isinstance(found, Finding) else found

    def _wrong(self, found, *details, opens_at=None):
        """Return a Verdict, or the one for a Finding, with these details and this run."""
        setting = self.run.inputs | self.run.setting | {"opens_at": opens_at}
        played = PlayedLoop(setting) if self.steps else None  # with no steps there is nothing to play
        return replace(self._verdict_of(found), details=(("run", str(self.sizes)), *details), run=played)

    def _first(self):
        """Return the number of the first wrong step, which part of it is wrong and in which row, or None."""
        close = 1e-11 * self.sizes.spread  # exp of large scores has fewer digits
        for k, (step, true) in enumerate(zip(self.steps, self.true, strict=True)):
            for name in STATE:
                right = np.isclose(getattr(step, name), getattr(true, name), rtol=close, atol=close / 100)
                if not right.all():
                    return k, name, int(np.argwhere(~right)[0][0])
        return None

    def _wrong_step(self, k, name, r):
        step, true = self.steps[k], self.true[k]
        tile = step.i, step.j
        expected, given = distinct_texts(lambda state, digits: _row(state, r, digits), true, step)
        reason = self._reason(k, r) or self.run.ended or self.run.about_blocks() or self._about_tiles()
        verdict = self._verdict_of(reason or Finding("wrong_part", name=name))
        return self._wrong(
            replace(verdict, sentence=self.known.sentence("first_at", reason=verdict.sentence, tile=tile)),
            ("first wrong", f"step {k + 1}, tile {tile}, row {step.rows.start + r}: {name}"),
            ("expected", expected),
            ("given", given),
            opens_at=k,
        )

    def _reason(self, k, r):
        """Return the Verdict of the mistake that explains all steps, or a Finding about them, or None."""
        given = [_state(step) for step in self.steps]
        before = [self.recorder.before(n) for n in range(len(given))]
        before_true = self._true_before()
        if all(map(_are_same, given, before_true)):
            return Finding("yields_before")
        if all(_are_same(x, y, 1e-5) for x, y in zip(given, self.true, strict=True)):
            return Finding("rounded")
        swapped = [(step.j, step.i) for step in self.steps]
        truth = Truth(self.recorder.tiles, self.run.inputs["V"])
        if all(_are_same(x, y) for x, y in zip(given, map(truth.after, swapped), strict=True)):
            return Finding("i_and_j_exchanged")
        yielded = [((*x, old[0]), tuple(x)) for x, old in zip(self.true, before_true, strict=True)]
        if found := _named(YIELDED, yielded, given, STATE):
            return found
        cases = [self._arguments(n, before[n]) for n in range(len(given))]
        known = Known(self.known.table, UPDATE, guesses=tuple(self._guesses(k, r)))
        return _named(known, [(x, attempt(UPDATE.function, *x)) for x in cases], given, STATE)

    def _true_before(self):
        """Return, for each step, the true State of its row block before it."""
        last, found = {}, []
        for step, true in zip(self.steps, self.true, strict=True):
            found.append(last.get(step.i) or self.recorder.identity(step.i))
            last[step.i] = true
        return found

    def _arguments(self, k, before):
        """Return the arguments of `step` in the model of the loop."""
        step, X, first = self.steps[k], self.run.inputs, not isinstance(before, Step)
        last = self.steps[k - 1] if first and k else before
        tile = X["Q"][step.rows], X["K"][step.cols], X["V"][step.cols]
        past, rc = len(X["K"]) - len(X["Q"]), np.ogrid[step.rows, step.cols]
        seen = self.seen[step.rows, step.cols]
        mask = self.sizes.causal, seen, *rc, past
        return *tile, *_state(before), self.sizes.scale, *mask, X["K"], X["V"], step.j, first, _state(last)

    def _guesses(self, k, r):
        """Yield mistakes with a number that row r of step k shows: a scale, an initial m, the value of a mask."""
        step, scale = self.steps[k], self.sizes.scale
        m, seen = float(step.m[r]), self.seen[step.rows, step.cols][r]
        raw = (self.run.inputs["Q"][step.rows] @ self.run.inputs["K"][step.cols].T)[r]
        if not np.isfinite(m):
            return
        times = float(m / raw[seen].max() / scale) if seen.any() and raw[seen].max() else 1.0
        if abs(times - 1) > 1e-3:
            yield self._guess(
                "scores_times", f"S_ij = np.where(seen, raw * scale * {times!r}, -np.inf)", times=times
            )
        yield self._guess("m_start", f"m_old = np.where(m_old == -np.inf, {m!r}, m_old)", m=m)
        if not seen.all():
            x = float(m - raw[~seen].max() * scale)
            yield self._guess("mask_value", f"S_ij = np.where(seen, raw * scale, {m!r})", m=m)
            yield self._guess("mask_added", f"S_ij = np.where(seen, raw * scale, raw * scale + {x!r})", x=x)

    def _guess(self, id, way, **fields):
        return Mistake(id, self.known.sentence(id, **fields), (way,))

    def _about_tiles(self):
        """Return a Finding about the tiles that were visited, or None."""
        right, visited = list(self.recorder.tiles), [(step.i, step.j) for step in self.steps]
        if missed := sorted(set(right) - set(visited)):
            return Finding(self._missed(missed), tile=missed[0])
        if extra := sorted(set(visited) - set(right)):
            return Finding("tile_hidden", tile=extra[0])
        if len(visited) > len(right):
            return Finding("tile_twice", tile=next(tile for tile in visited if visited.count(tile) > 1))
        if visited != right:
            other = sorted(right, key=lambda tile: tile[::-1] if self.run.order == "fa2" else tile)
            id = "loops_exchanged" if visited == other else "other_order"
            return Finding(id, outer=OUTER[self.run.order])
        return None

    def _missed(self, missed):
        """Return the id of the mistake that explains which tiles were missed."""
        last_i, last_j = len(self.recorder.rows) - 1, len(self.recorder.cols) - 1
        right, sizes = self.recorder.tiles, self.sizes
        visited = [(step.i, step.j) for step in self.steps]
        if self.run.order == "fa2" and visited == list({tile[0]: tile for tile in right}.values()):
            return "yields_per_row"
        keys, queries = sizes.N_k % sizes.B_c, sizes.N_q % sizes.B_r
        if sizes.causal:  # without a mask they would be missed too, and have been found there
            keys = queries = 0
        if keys and all(j == last_j for _, j in missed):
            return "keys_dropped"
        if queries and all(i == last_i for i, _ in missed):
            return "queries_dropped"
        if keys and queries and all(i == last_i or j == last_j for i, j in missed):
            return "edges_dropped"
        hidden = [(i, j) for i in range(last_i + 1) for j in range(last_j + 1) if (i, j) not in right]
        if self.run.order == "fa1" and all(any(h < i and k == j for h, k in hidden) for i, j in missed):
            return "ends_at_hidden"
        if hidden and missed == [tile for tile in right if tile > min(hidden)]:
            return "all_ends"
        if not sizes.causal and all(self._would_hide(*tile) for tile in missed):
            return "skipped_without_mask"
        return "visible_missed" if hidden and sizes.causal else "tile_missed"

    def _would_hide(self, i, j):
        """Return whether a causal mask would hide all of a tile."""
        rows, cols = self.recorder.rows[i], self.recorder.cols[j]
        return tiled.is_hidden(rows, cols, self.sizes.N_k - self.sizes.N_q)

    def _about_O(self):
        """Return the Verdict on O if it is wrong although all steps are right, or None."""
        O = self.run.O
        exact = naive.attention(**self.run.inputs, causal=self.sizes.causal, scale=self.sizes.scale)
        if same(O, exact.O, 1e-9):
            return None
        apart = np.array([not same(*rows, 1e-9) for rows in zip(O, exact.O, strict=True)])
        row = int(np.flatnonzero(apart)[0])
        expected, given = distinct_texts(show, exact.O[row], O[row])
        rows = ("first wrong", f"O, row {row}"), ("expected", expected), ("given", given)
        return self._wrong(self._reason_of_O(apart, exact), *rows)

    def _reason_of_O(self, apart, exact):
        O, nan, unseen = self.run.O, np.isnan(self.run.O).all(axis=1), exact.lse == -np.inf
        if nan.all() and not unseen.all():
            return Finding("O_not_filled")
        if not (apart & ~unseen).any():
            return self._about_unseen(apart, nan)
        stored = self._about_stored()
        if stored and stored.id == "O_unnormalised":  # a division at the end would not be enough
            return stored
        last = [self.steps[k] for k in self.recorder.last.values()]
        last = [step for step in last if not unseen[step.rows].any()]
        cases = [((step.l, step.O_acc), exact.O[step.rows]) for step in last]
        if found := _named(O_OF_LOOP, cases, [O[step.rows] for step in last], ("result",)):
            return found
        if nan[apart].all():
            return Finding("O_row_not_filled", row=np.flatnonzero(apart)[0])
        return Finding("O_wrong")

    def _about_unseen(self, apart, nan):
        """Return the Finding about O in rows that see no key."""
        with_tile = np.zeros_like(apart)
        for step in self.steps:
            with_tile[step.rows] = True
        if not nan[apart].all():
            return Finding("O_of_unseen")
        if (apart & with_tile).any():
            return Finding("O_nan")
        return Finding("O_block_not_filled", where=UNTILED[self.run.order])

    def _about_stored(self):
        """Return the Finding about O between two tiles in the order FA1, or None."""
        for n, step in enumerate(self.steps[:-1]):
            if self.run.order == "fa1" and self.steps[n + 1].i != step.i:  # else O may have the next tile
                O = self.run.stored[n + 1][step.rows]
                if not same(O, step.O_acc / np.where(step.l == 0, 1, step.l)[:, None], 1e-6):
                    return Finding("O_unnormalised" if same(O, step.O_acc, 1e-6) else "O_not_stored")
        return None


def _named(known, cases, given, outputs):
    """Return the Verdict of the mistake that explains the given results, or None.

    cases: pairs of arguments and the right result.
    """
    cases = [Case("", arguments, right) for arguments, right in cases]
    tried = [Tried(case, x, find_problem(x, case, outputs)) for case, x in zip(cases, given, strict=True)]
    return diagnose(known, tried, outputs) if any(one.problem for one in tried) else None


def _state(step):
    return tuple(getattr(step, name) for name in STATE)


def _are_same(state, other, tolerance=1e-6):
    return other is not None and all(same(x, y, tolerance) for x, y in zip(state, other, strict=True))


def _list(tiles):
    return ", ".join(map(str, tiles))


def _row(state, r, digits):
    return "  ".join(f"{name} = {show(getattr(state, name)[r], digits)}" for name in STATE)
