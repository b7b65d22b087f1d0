"""HBM: an ndarray that meters the bytes read from it and written to it."""

import numpy as np

from flashlib.types import Traffic


class HBM(np.ndarray):
    """An array in slow memory. A slice read is a load, a slice assigned is a store; `traffic` counts both.

    The result of a load, or of arithmetic on whole arrays, is a plain array: a copy on chip. Arrays allocated like
    an HBM array (`np.empty_like(Q)`) and views of it (`K.T`) are HBM too and count towards the same `traffic`.
    Accesses that bypass NumPy's protocols are not metered, such as `np.asarray(Q)`, `plain[:] = Q` and
    `np.add.at`. Source of the model: FlashAttention (2022), section 2.1.

    >>> Q, K = HBM.put(np.ones((4, 2)), np.ones((3, 2)))
    >>> S_ij = Q[:2] @ K[:].T
    >>> Q.traffic
    Traffic(read=80, written=0)
    """

    traffic: Traffic

    @classmethod
    def put(cls, *arrays: np.ndarray) -> tuple["HBM", ...]:  # type: ignore[override]  # np.ndarray has another put
        """Return the arrays as HBM, without copying, all counted in one new Traffic."""
        traffic = Traffic()
        placed = []
        for X in arrays:
            if not isinstance(X, np.ndarray):
                raise TypeError(f"HBM.put was given a {type(X).__name__}; pass NumPy arrays")
            X = X.view(cls)
            X.traffic = traffic
            placed.append(X)
        return tuple(placed)

    def __array_finalize__(self, parent):
        self.traffic = getattr(parent, "traffic", None) or Traffic()

    def __getitem__(self, key):
        tile = self.view(np.ndarray)[key].copy()  # through a view, on-chip work could change memory unmetered
        self.traffic.read += tile.nbytes
        return tile

    def __setitem__(self, key, value):
        memory = self.view(np.ndarray)
        memory[key] = _load(value)
        self.traffic.written += memory[key].nbytes

    def __iter__(self):
        return (self[i] for i in range(len(self)))  # ndarray's own iterator does not call __getitem__

    def fill(self, value: float | np.ndarray) -> None:
        self[...] = value

    def _store(self) -> np.ndarray:
        """Count a store to the whole array, and return the array to write to."""
        self.traffic.written += self.nbytes
        return self.view(np.ndarray)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        inputs = _load(inputs)
        if out:
            kwargs["out"] = tuple(X._store() if isinstance(X, HBM) else X for X in out)
        result = getattr(ufunc, method)(*inputs, **kwargs)
        return out[0] if len(out) == 1 else result

    def __array_function__(self, func, types, args, kwargs):
        if func in _ALLOCATIONS:
            return super().__array_function__(func, types, args, kwargs)
        out = kwargs.get("out")
        if func is np.copyto:  # zeros_like and full_like initialise with it
            out, args = args[0], args[1:]
        loaded = {name: _load(x) for name, x in kwargs.items() if name != "out"}
        target = out._store() if isinstance(out, HBM) else out
        if func is np.copyto:
            return func(target, *_load(args), **loaded)
        if out is None:
            return func(*_load(args), **loaded)
        func(*_load(args), out=target, **loaded)
        return out

    def __repr__(self):
        return f"HBM({self.view(np.ndarray)!r})"  # printing it moves no bytes

    __str__ = __repr__


_ALLOCATIONS = (np.empty_like, np.zeros_like, np.ones_like, np.full_like)


def _load(x):
    """Return x with every HBM array in it, however nested, loaded whole."""
    if isinstance(x, HBM):
        return x[...]
    if type(x) in (tuple, list):
        return type(x)(map(_load, x))
    return x


def _loading(name):
    """Return an ndarray method that NumPy does not report to subclasses, preceded by a load."""

    def method(self, *args, **kwargs):
        return getattr(self[...], name)(*_load(args), **kwargs)

    return method


for _name in ("argmax", "argmin", "argsort", "astype", "copy", "dot", "flatten", "repeat", "take", "tolist"):
    setattr(HBM, _name, _loading(_name))
