"""HBM: an ndarray that meters, in bytes, what is read from it and written to it."""

import numpy as np

from flashlib.state import Traffic


class HBM(np.ndarray):
    """An array in slow memory. A slice read is a load, a slice assigned is a store; both count in `traffic`.

    What comes out of a load, and the result of arithmetic on whole arrays, is a plain array: on chip. Arrays
    allocated like an HBM one (`np.empty_like(Q)`) and views of it (`K.T`) are HBM too and count into the same
    `traffic`. Source of the model: FlashAttention (2022), section 2.1.

    >>> Q, K = HBM.put(np.ones((4, 2)), np.ones((3, 2)))
    >>> S_ij = Q[:2] @ K[:].T
    >>> Q.traffic
    Traffic(read=80, written=0)
    """

    traffic: Traffic

    @classmethod
    def put(cls, *arrays):
        """Return the arrays as HBM, without copying, all counting into one new Traffic."""
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
        tile = self.view(np.ndarray)[key]
        self.traffic.read += tile.nbytes
        return tile

    def __setitem__(self, key, value):
        memory = self.view(np.ndarray)
        memory[key] = _load(value)
        self.traffic.written += memory[key].nbytes

    def __iter__(self):
        return (self[i] for i in range(len(self)))  # ndarray's own iterator passes __getitem__ by

    def astype(self, *args, **kwargs):
        return self[...].astype(*args, **kwargs)

    def copy(self, *args, **kwargs):
        return self[...].copy(*args, **kwargs)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        inputs = _load(inputs)
        if out is not None:
            for X in out:
                if isinstance(X, HBM):
                    X.traffic.written += X.nbytes
            kwargs["out"] = tuple(X.view(np.ndarray) if isinstance(X, HBM) else X for X in out)
        result = getattr(ufunc, method)(*inputs, **kwargs)
        return out[0] if out is not None and len(out) == 1 else result

    def __array_function__(self, func, types, args, kwargs):
        if func is np.copyto:  # what zeros_like and full_like initialise with
            args[0][...] = args[1]
            return None
        if func in _ALLOCATIONS:
            return super().__array_function__(func, types, args, kwargs)
        return func(*_load(args), **{name: _load(x) for name, x in kwargs.items()})

    def __repr__(self):
        return f"HBM({self.view(np.ndarray)!r})"  # looking at it moves no bytes

    __str__ = __repr__


_ALLOCATIONS = (np.empty_like, np.zeros_like, np.ones_like, np.full_like)


def _load(x):
    """Return x with every HBM array in it, however nested, loaded whole."""
    if isinstance(x, HBM):
        return x[...]
    if type(x) in (tuple, list):
        return type(x)(map(_load, x))
    return x
