"""Which tile of S each turn of a kernel's loop computed: found by the rows of Q, K, V and O that it touched."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from flashlib.learner.kernels.recording import LoopTurn, MemoryAccess, Recording


class TileTurn(NamedTuple):
    """A turn of the loop over K and V, and its tile of S."""

    i: int
    j: int
    turn: LoopTurn


class TiledRun(NamedTuple):
    """The turns that computed tiles of S, in order, and the sizes of whole tiles.

    shared: the row blocks that several programs computed, of which the first one's turns are here.
    """

    turns: list[TileTurn]
    B_r: int
    B_c: int
    shared: list[int]


def tiled_run(recording: Recording, Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> TiledRun | None:
    """Return what a kernel that computes attention for one head did, tile by tile; None if no loop multiplies.

    Where the rows of K and of V that a turn loads say different tiles, or none, the order of the turns decides; so
    it is with row blocks, by the rows of O that the program stores, those of Q that it loads, and the order of the
    programs. What lies past the last row, or past the last key, is left out.
    """
    turns = _turns_with_products(recording, K, V)
    if not turns:
        return None
    seen = _Seen(recording, recording.programs[turns[0].program].launch, Q, K, V)
    B_r, B_c = seen.sizes(turns)
    programs = list(dict.fromkeys(turn.program for turn in turns))
    count: Counter = Counter()  # of the turns of a program in one row block
    found, owner, shared = [], {}, {}
    for turn in turns:
        i = _most([_block(row, B_r) for row in seen.rows(turn)] + [programs.index(turn.program)])
        j = _most([_block(row, B_c) for row in seen.columns(turn)] + [count[turn.program, i]])
        count[turn.program, i] += 1
        if owner.setdefault(i, turn.program) != turn.program:
            shared[i] = True
        elif i * B_r < len(Q) and j * B_c < len(K):
            found.append(TileTurn(i, j, turn))
    return TiledRun(found, B_r, B_c, [*shared])


def _turns_with_products(recording, K, V):
    """Return the turns of the outer loops that multiply, or load K or V, of the last launch that has any."""
    chosen = [turn for turn in recording.turns if turn.products or _loads(recording, turn, K, V)]
    if not chosen:
        return []
    last = recording.programs[chosen[-1].program].launch
    chosen = [turn for turn in chosen if recording.programs[turn.program].launch == last]
    loops = {turn.loop for turn in chosen}
    return [turn for turn in chosen if not loops & {*turn.inside}]


def _loads(recording, turn, K, V):
    tensors = recording.launches[recording.programs[turn.program].launch].tensors
    names = {argument.name for argument in tensors if any(_rows_of(argument, X) is not None for X in (K, V))}
    return any(a.pointer in names and not a.is_store for a in recording.accesses[slice(*turn.accesses)])


def _block(row, size):
    """Return the number of the block that begins with a row; None if no block does."""
    return None if row is None or row % size else row // size


def _most(candidates):
    """Return what most of the candidates say, of which some may be None; the first of those that are as many."""
    counted = Counter(one for one in candidates if one is not None)
    return max(counted, key=lambda one: counted[one])


class _Rows(NamedTuple):
    """Where the rows of an array are in an argument: the row of each offset, or -1; the stride of rows."""

    row: np.ndarray
    stride: int

    def first(self, access: MemoryAccess) -> int | None:
        """Return the row of the first lane that is one."""
        offsets = access.offsets[access.mask & ~access.outside].ravel()
        known = self.row[offsets[offsets < len(self.row)]]
        known = known[known >= 0]
        return int(known[0]) if len(known) else None

    def of_block(self, access: MemoryAccess) -> int | None:
        """Return how many rows a load or a store has, masked ones too; None if that cannot be seen."""
        for axis, n in enumerate(access.offsets.shape):
            if n > 1 and np.diff(access.offsets.take([0, 1], axis), axis=axis).flat[0] == self.stride:
                return n
        return None


def _rows_of(argument, X):
    """Return the _Rows of a matrix (N, d) in an argument, perhaps padded; None if it is another tensor."""
    numbers = argument.numbers
    if numbers.ndim < 2 or numbers.size != np.prod(numbers.shape[-2:]):
        return None
    numbers = numbers.reshape(numbers.shape[-2:])
    for axis, matrix in ((0, numbers), (1, numbers.T)):
        if matrix.shape[0] == len(X) and np.array_equal(matrix[:, : X.shape[1]], X):
            return _placed(argument, axis)
    return None


def _placed(argument, axis):
    shape, strides = argument.numbers.shape[-2:], argument.strides[-2:]
    offsets = sum(np.ix_(*(stride * np.arange(n) for n, stride in zip(shape, strides, strict=True))))
    row = np.full(int(offsets.max()) + 1, -1)
    row[offsets] = np.arange(shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
    return _Rows(row, strides[axis])


class _Seen:
    """What the programs of a launch load of Q, K and V, and store of O."""

    def __init__(self, recording, launch, Q, K, V):
        self.recording = recording
        arguments = recording.launches[launch].tensors
        self.Q, self.K, self.V = (self._named(arguments, X) for X in (Q, K, V))
        name, O = recording.results[0] if recording.results else ("", np.empty(0))
        is_O = name and O.size == Q.size and O.shape[-2:] == Q.shape
        self.O = {a.name: _placed(a, 0) for a in arguments if is_O and a.name == name and a.numbers.ndim > 1}

    def _named(self, arguments, X):
        found = {argument.name: _rows_of(argument, X) for argument in arguments}
        return {name: rows for name, rows in found.items() if rows is not None}

    def rows(self, turn):
        """Return the first row of O stored after a turn, and that of Q loaded before its end, or None."""
        own = [(n, a) for n, a in enumerate(self.recording.accesses) if a.program == turn.program]
        end = turn.accesses[1]
        stored = (self._first(self.O, a) for n, a in own if n >= end and a.is_store)
        loaded = (self._first(self.Q, a) for n, a in reversed(own) if n < end and not a.is_store)
        return [next((row for row in rows if row is not None), None) for rows in (stored, loaded)]

    def columns(self, turn):
        """Return the first row of K and of V that a turn loads, or None."""
        loads = [a for a in self.recording.accesses[slice(*turn.accesses)] if not a.is_store]
        firsts = ([self._first(names, a) for a in loads] for names in (self.K, self.V))
        return [min((row for row in rows if row is not None), default=None) for rows in firsts]

    def _first(self, names, access):
        return names[access.pointer].first(access) if access.pointer in names else None

    def sizes(self, turns):
        """Return B_r and B_c: the rows of a load of Q or store of O, and of a load of K or V; or of a product."""
        M, _, N = next((size for turn in turns for size in turn.products), (1, 0, 1))
        programs = {turn.program for turn in turns}
        accesses = [a for a in self.recording.accesses if a.program in programs]
        B_c = self._counted({**self.V, **self.K}, [a for a in accesses if not a.is_store])
        B_r = self._counted({**self.O, **self.Q}, accesses)
        if B_r is None:
            B_r = N if M == B_c and N != B_c else M
        return B_r, B_c or (M if B_r == N else N)

    def _counted(self, names, accesses):
        counts = (names[a.pointer].of_block(a) for a in accesses if a.pointer in names)
        return next(filter(None, counts), None)
