"""Memory by address: each storage of a tensor has a range of addresses of its own, far from those of all others.

Kernels compute with these addresses as they do with real ones. A load or a store where no tensor lies raises an
error that names the nearest tensor; elsewhere it reads or overwrites something else, or kills the process.
"""

import bisect
import sys
import weakref

import numpy as np

FIRST = 1 << 33  # the first address, so that addresses need 64 bits, as on a GPU
GAP, ALIGNED = 1 << 20, 512  # bytes between two storages, at least; every storage starts at a multiple of 512
FEW = 256  # dead storages are forgotten when there are more than this many, or twice the living ones


class IllegalAddress(Exception):
    """A kernel loads or stores where no tensor lies."""


class Storage:
    """Bytes, a flat array, and the address of the first one."""

    def __init__(self, held: np.ndarray) -> None:
        self.bytes, self.size = held, held.size
        self.start = _RANGES.taken_by(self)

    @property
    def end(self) -> int:
        return self.start + self.size


class _Ranges:
    """The storages in the order of their addresses, which are never used again."""

    def __init__(self):
        self.starts, self.storages, self.next, self.most = [], [], FIRST, FEW

    def taken_by(self, storage):
        """Return the address of a new storage."""
        if len(self.starts) >= self.most:
            self._forget_dead()
        start = self.next
        self.next = (start + storage.size + GAP + ALIGNED) // ALIGNED * ALIGNED
        self.starts.append(start)
        self.storages.append(weakref.ref(storage))
        return start

    def _forget_dead(self):
        left = [(start, one) for start, one in zip(self.starts, self.storages, strict=True) if one() is not None]
        self.starts, self.storages = [start for start, _ in left], [one for _, one in left]
        self.most = max(FEW, 2 * len(left))

    def holding(self, low, high):
        """Return the storage in which all bytes from `low` to before `high` lie, or None."""
        found = bisect.bisect_right(self.starts, low) - 1
        one = self.storages[found]() if found >= 0 else None
        return one if one is not None and high <= one.end else None

    def living(self):
        return [one for one in (ref() for ref in self.storages) if one is not None]


_RANGES = _Ranges()


def read(addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the elements at these addresses, a flat array of uint64."""
    found = None
    for storage, here in _storages_of(addresses, dtype.itemsize, "loads"):
        elements, at = _elements(storage, addresses[here], dtype)
        part = elements[at].view(dtype).reshape(-1)
        if len(part) == len(addresses):
            return part
        found = np.empty(addresses.shape, dtype) if found is None else found
        found[here] = part
    return np.empty(0, dtype) if found is None else found


def write(addresses: np.ndarray, values: np.ndarray) -> None:
    """Write values to these addresses; of two for the same address the last counts."""
    dtype = values.dtype
    for storage, here in _storages_of(addresses, dtype.itemsize, "stores"):
        elements, at = _elements(storage, addresses[here], dtype)
        elements[at] = values[here] if at.ndim == 1 else _bytes_of(values[here])


def _storages_of(addresses, item, does):
    """Yield (storage, which of the addresses lie in it, as an index) until each has its storage."""
    if not addresses.size:
        return
    one = _RANGES.holding(int(addresses.min()), int(addresses.max()) + item)
    if one is not None:  # nearly always
        yield one, slice(None)
        return
    left = np.ones(addresses.shape, bool)
    while left.any():
        low = int(addresses[left].min())
        one = _RANGES.holding(low, low + item)
        if one is None:
            raise IllegalAddress(_sentence(low, item, does))
        here = left & (addresses >= one.start) & (addresses + np.uint64(item) <= one.end)
        yield one, here
        left &= ~here


def _elements(storage, addresses, dtype):
    """Return an array of a storage and indices of its elements at these addresses.

    If the size of an element does not divide each address, the array is that of the bytes, and there are as many
    indices for each element as it has bytes.
    """
    item = dtype.itemsize
    at = (addresses - np.uint64(storage.start)).astype(np.int64)
    if item > 1 and int(np.bitwise_or.reduce(at)) % item:
        return storage.bytes, at[:, None] + np.arange(item)
    return storage.bytes[: storage.size // item * item].view(dtype), at // item


def _bytes_of(values):
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


# ---- the error


def _sentence(address, item, does):
    """Return what is wrong with an address, and where the nearest argument of the running kernel lies."""
    said = f"the kernel {does} {item} byte{'s' * (item > 1)} at an address where no tensor lies"
    named = {tensor.untyped_storage(): _described(name, tensor) for name, tensor in _arguments(sys._getframe())}
    storages = list(named) or _RANGES.living()
    if not storages:
        return f"{said}: there is no tensor"
    nearest = min(storages, key=lambda one: max(one.start - address, address - one.end))
    return f"{said}: {_place(nearest, address, item)} of {named.get(nearest, f'a tensor of {nearest.size} bytes')}"


def _place(storage, address, item):
    if address < storage.start:
        return f"{storage.start - address} bytes before the start"
    if address < storage.end:
        return f"{address + item - storage.end} of them past the end"
    return f"{address - storage.end} bytes past the end"


def _described(name, tensor):
    return f"{name}, a tensor of {str(tensor.dtype).removeprefix('torch.')} with the shape {tuple(tensor.shape)}"


def _arguments(frame):
    """Return (name, tensor) of the kernel that Triton's interpreter runs in one of these frames."""
    while frame:
        names = frame.f_locals
        if frame.f_code.co_name == "__call__" and "args_hst" in names:  # of GridExecutor
            positional = zip(names["self"].arg_names, names["args_hst"])  # noqa: B905  others have defaults
            given = [*positional, *names["kwargs_hst"].items()]
            return [(name, x) for name, x in given if hasattr(x, "untyped_storage")]
        frame = frame.f_back
    return []
