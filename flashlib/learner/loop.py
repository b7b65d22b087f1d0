"""Record a learner's own loop over tiles: the Steps that it yields, and the State that each should have.

The player shows both, and the checks of loops report where they first differ.
"""

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np

from flashlib import tiled
from flashlib.softmax import State, merge, summarise_rows
from flashlib.types import Step

STATE = ("m", "l", "O_acc")
OTHERS = ("m_old", "alpha", "l_old", "O_acc_old", "S_ij", "P_ij")


class InvalidStep(ValueError):
    """Something was yielded that is not a step.

    why: "no_step" (it lacks `name`), "no_block" (`name` is not the number of one of `count` blocks), "no_array"
    (`name` does not have the shape `expected`) or "goes_on" (there are only `most` tiles). given: the actual
    value.
    """

    def __init__(self, why, **fields):
        super().__init__(why)
        self.why, self.fields = why, fields


class Truth:
    """The correct State of each row block after the tiles that it has seen, each counted once."""

    def __init__(self, tiles, V):
        self.tiles, self.V = tiles, V
        self.states, self.seen = {}, set()

    def after(self, tile: tuple[int, int]) -> State | None:
        """Return the State of a row block after one more tile; a skipped tile changes nothing."""
        i = tile[0]
        if tile in self.tiles and tile not in self.seen:
            self.seen.add(tile)
            state = summarise_rows(self.tiles[tile].S_ij, tiled.load(self.V, self.tiles[tile].cols))
            self.states[i] = merge(self.states[i], state) if i in self.states else state
        return self.states.get(i)


class Recorder:
    """What a loop over tiles has yielded so far.

    steps: copied Steps, with their rows and cols. true: the State that each should have, after the tiles that its
    row block has seen by then, in whatever order they came. last: the number of each row block's last step. tiles:
    {(i, j): Step} of all tiles that must be computed, in order. O, lse: the correct ones. rows, cols: the blocks.
    """

    def __init__(self, Q, K, V, *, others=OTHERS, **setting):
        """others: further fields to copy from a step, if it has them. setting: the arguments of tiled.steps."""
        self.others = others
        self.d, self.dtype = Q.shape[1], np.promote_types(Q.dtype, np.float32)
        self.O, self.lse = np.empty_like(Q), np.empty(len(Q), self.dtype)
        steps = tiled.steps(Q, K, V, **setting, O=self.O, lse=self.lse)
        self.tiles = {(step.i, step.j): step for step in steps}
        self.rows, self.cols = (list(tiled.blocks(len(X), setting[B])) for X, B in ((Q, "B_r"), (K, "B_c")))
        self.truth = Truth(self.tiles, V)
        self.steps, self.true, self.last = [], [], {}

    def follow(self, made: Iterable[Any]) -> Iterator[None]:
        """Yield after each step taken from an iterable; raise InvalidStep, or whatever the iterable raises."""
        most = len(self.rows) * len(self.cols)
        for given in made:
            if len(self.steps) == most:
                raise InvalidStep("goes_on", most=most)
            self._take(given)
            yield

    def identity(self, i: int) -> State:
        """Return the State of a row block that has seen nothing."""
        n_r = self.rows[i].stop - self.rows[i].start
        return summarise_rows(np.empty((n_r, 0), self.dtype), np.empty((0, self.d), self.dtype))

    def before(self, k: int) -> Step | State:
        """Return the Step before step k in its row block, or the initial State."""
        earlier = [n for n in range(k) if self.steps[n].i == self.steps[k].i]
        return self.steps[earlier[-1]] if earlier else self.identity(self.steps[k].i)

    def _take(self, given):
        i, j = self._index(given, "i", self.rows), self._index(given, "j", self.cols)
        rows, cols = self.rows[i], self.cols[j]
        n_r, n_c = rows.stop - rows.start, cols.stop - cols.start
        shapes = dict.fromkeys(("m", "l", "m_old", "alpha", "l_old"), (n_r,))
        shapes |= dict.fromkeys(("O_acc", "O_acc_old"), (n_r, self.d)) | dict.fromkeys(
            ("S_ij", "P_ij"), (n_r, n_c)
        )
        arrays = {name: self._array(given, name, shapes[name]) for name in (*STATE, *self.others)}
        self.last[i] = len(self.steps)
        self.steps.append(Step(i, j, rows=rows, cols=cols, **arrays))
        self.true.append(self.truth.after((i, j)) or self.identity(i))

    def _index(self, given, name, blocks):
        value = getattr(given, name, None)
        if value is None:
            raise InvalidStep("no_step", given=given, name=name)
        if not isinstance(value, Integral) or not 0 <= value < len(blocks):
            raise InvalidStep("no_block", given=value, name=name, count=len(blocks))
        return int(value)

    def _array(self, given, name, shape):
        """Return a copy of the field `name`, or None if it is optional and missing."""
        value = getattr(given, name, None)
        if value is None and name in self.others:
            return None
        try:
            X = np.array(np.nan if value is None else value, self.dtype)
        except (TypeError, ValueError):
            X = np.array(np.nan)
        if X.shape != shape:
            raise InvalidStep("no_array", given=value, name=name, expected=shape, tile=(given.i, given.j))
        return X
