"""An array that counts all loads and stores, however they are done.

`flashlib.memory.HBM`, which the chapters show, is an ndarray and counts bytes, but `np.asarray` bypasses it. This
one is not an ndarray, so that nothing can bypass it, and counts each number.
"""

import tracemalloc
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from flashlib.checks.engine import Finding, Measured

SHAPE_ALONE = (np.empty_like, np.zeros_like, np.ones_like, np.full_like, np.shape, np.ndim, np.size)


class MeteredArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array in slow memory, for an answer to load slices of.

    It can be used like an array. A slice is an array, a view of this one; everything that needs all numbers
    (arithmetic, a NumPy function, a copy, `np.asarray`, a method) loads all of them. `T` and `reshape` do not
    load.

    loads: its Loads. reads, writes: how often each number was loaded and stored, in the shape of the array.
    """

    def __init__(
        self, array: np.ndarray, loads: "Loads | None" = None, reads: np.ndarray | None = None,
        writes: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self._data = np.array(array) if loads is None else array
        self.loads = loads or Loads()
        self.reads = np.zeros(self._data.shape, int) if reads is None else reads
        self.writes = np.zeros(self._data.shape, int) if writes is None else writes
        self.shape, self.dtype, self.ndim = self._data.shape, self._data.dtype, self._data.ndim
        self.size, self.nbytes, self.itemsize = self._data.size, self._data.nbytes, self._data.itemsize

    def __len__(self):
        return len(self._data)

    def __iter__(self):
        return (self[n] for n in range(len(self)))

    def __repr__(self):
        return f"an array of shape {self.shape} in slow memory"

    @property
    def T(self) -> "MeteredArray":
        return self._moved(lambda x: x.T)

    def reshape(self, *shape: int | tuple[int, ...], **options: Any) -> "MeteredArray":
        return self._moved(lambda x: x.reshape(*shape, **options))

    def _moved(self, f):
        return MeteredArray(f(self._data), self.loads, f(self.reads), f(self.writes))

    def __getitem__(self, key):
        tile = self._data[key]
        self.reads[key] += 1
        self.loads.add(key, tile)
        return tile

    def __setitem__(self, key, value):
        self._data[key] = value
        self.writes[key] += 1

    def fill(self, value: float) -> None:
        self[...] = value

    def item(self, *at: int | tuple[int, ...]) -> float:
        return self[at if len(at) > 1 else np.unravel_index(at[0], self.shape) if at else ...].item()

    def take(self, indices: object, axis: int | None = None, **options: Any) -> Any:
        index = (slice(None),) * ((axis or 0) % max(self.ndim, 1)) + (indices,)
        return self.reshape(-1)[indices] if axis is None else self[index]

    def __array__(self, dtype=None, copy=None):
        whole = self[...]
        return whole.astype(dtype or whole.dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        arrays = (x[...] if isinstance(x, MeteredArray) else x for x in inputs)
        if out and isinstance(out[0], MeteredArray):
            out[0][...] = getattr(ufunc, method)(*arrays, **options)
            return out[0]
        return getattr(ufunc, method)(*arrays, **options, **({"out": out} if out else {}))

    def __array_function__(self, function, types, arguments, options):
        def loaded(x):
            if isinstance(x, MeteredArray):
                return x._data if function in SHAPE_ALONE else x[...]
            return type(x)(map(loaded, x)) if type(x) in (list, tuple) else x

        if function is np.copyto and isinstance(arguments[0], MeteredArray):
            arguments[0][...] = loaded(arguments[1])
            return None
        return function(*loaded(tuple(arguments)), **{name: loaded(x) for name, x in options.items()})

    def __getattr__(self, name):  # any other attribute of an array: a method that reads the whole array
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self[...], name)


class Loads:
    """What was loaded from slow memory.

    times: how many loads. read: how many numbers were loaded; loading the same slice twice in a row counts once,
    since code may only look up its shape. most: the most numbers in a load. held: the most numbers held at once in
    slices.
    """

    def __init__(self) -> None:
        self.times = self.read = self.most = self.held = self._holding = 0
        self._last: str | None = None
        self._tiles = {}  # weak references to slices, and their sizes; the table of weakref.finalize may be large

    def add(self, key: object, tile: np.ndarray | np.generic) -> None:
        size = tile.size
        self.times += 1
        self.most = max(self.most, size)
        if (said := repr(key)) != self._last:
            self.read += size
        self._last = said
        if isinstance(tile, np.ndarray) and tile.base is not None:
            self._holding += size
            self.held = max(self.held, self._holding)
            tile = weakref.ref(tile, self._release)
            self._tiles[id(tile)] = tile, size

    def _release(self, tile):
        _, size = self._tiles.pop(id(tile))
        self._holding -= size


def measured_memory(f: Callable[[], Any], enough: float) -> tuple[Any, float]:
    """Return f() and the most bytes that it held at once, measured again if these are more than `enough`.

    The measurement may include what other threads hold meanwhile, but hardly every time.
    """
    least = np.inf
    for _ in range(3):
        tracemalloc.start()
        try:
            result = f()
            least = min(least, tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        if least <= enough:
            break
    return result, least


def read_once(
    answer: Callable, names: dict[int, str], at_most: Callable[..., int] = lambda *arguments: 1
) -> Callable:
    """Return answer with some arguments, {position: name}, in slow memory; it reports too many loads.

    at_most: takes the arguments, and returns how many rows may be loaded at once.
    """

    @wraps(answer)
    def run(*arguments):
        placed = [MeteredArray(x) if n in names else x for n, x in enumerate(arguments)]
        result = answer(*placed)
        most, found = at_most(*arguments), None
        for n, name in names.items():
            loads, X = placed[n].loads, arguments[n]
            if loads.read > X.size:
                found = found or Finding("read_again", name=name, times=f"{loads.read / X.size:.3g}")
            if loads.most > most * X[:1].size:
                found = Finding("loaded_at_once", name=name)
        return Measured(result, found)

    return run
