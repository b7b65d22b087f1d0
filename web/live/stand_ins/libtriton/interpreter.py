"""Loads, stores and atomic operations of Triton's interpreter, on the memory of `page_memory`."""

import enum

import numpy as np
import page_memory

MEM_SEMANTIC = enum.Enum("MEM_SEMANTIC", "ACQUIRE_RELEASE ACQUIRE RELEASE RELAXED")
RMW_OP = enum.Enum("RMW_OP", "ADD FADD AND OR XOR XCHG MAX MIN UMIN UMAX")

SIGNED, UNSIGNED, FLOAT = ("int32", "int64"), ("uint32", "uint64"), ("float16", "float32", "float64")
OPERATIONS = {  # operation: (what it computes of the old and the new value, of which dtypes)
    RMW_OP.ADD: (np.add, SIGNED + UNSIGNED),
    RMW_OP.FADD: (np.add, FLOAT),
    RMW_OP.AND: (np.bitwise_and, SIGNED + UNSIGNED),
    RMW_OP.OR: (np.bitwise_or, SIGNED + UNSIGNED),
    RMW_OP.XOR: (np.bitwise_xor, SIGNED + UNSIGNED),
    RMW_OP.XCHG: (lambda old, new: new, SIGNED + UNSIGNED),
    RMW_OP.MAX: (np.maximum, SIGNED),
    RMW_OP.MIN: (np.minimum, SIGNED),
    RMW_OP.UMAX: (np.maximum, UNSIGNED),
    RMW_OP.UMIN: (np.minimum, UNSIGNED),
}


def load(ptrs, mask, other, dtype):
    """Return the elements at addresses; `other` where the mask is False."""
    mask = _like(ptrs, mask, bool)
    if mask.all():
        return page_memory.read(ptrs.reshape(-1), np.dtype(dtype)).reshape(ptrs.shape)
    found = np.array(_like(ptrs, other), dtype)
    found[mask] = page_memory.read(ptrs[mask], found.dtype)
    return found


def store(ptrs, values, mask):
    """Store values where the mask is True; of two for the same address the last counts."""
    mask, values = _like(ptrs, mask, bool), _like(ptrs, values)
    if mask.all():
        page_memory.write(ptrs.reshape(-1), values.reshape(-1))
    else:
        page_memory.write(ptrs[mask], values[mask])


def _like(ptrs, x, dtype=None):
    """Return x as an array with the shape of addresses."""
    x = np.asarray(x, dtype)
    return x if x.shape == ptrs.shape else np.broadcast_to(x, ptrs.shape)


def atomic_rmw(operation, ptrs, values, mask, order):  # noqa: ARG001  only one program runs at a time
    """Change the elements at addresses, one after the other, where the mask is True; return what was there."""
    change, dtypes = OPERATIONS[operation]
    if values.dtype.name not in dtypes:
        raise ValueError("Unsupported data type")
    mask, values = _like(ptrs, mask, bool), _like(ptrs, values)
    before = np.zeros(ptrs.shape, values.dtype)
    before[mask] = _exchanged(ptrs[mask], values[mask], change)
    return before


def atomic_cas(ptrs, expected, values, order):  # noqa: ARG001
    """Replace the elements whose bits are the expected ones, one after the other; return what was there."""
    bits = f"u{values.dtype.itemsize}"
    each = [np.ascontiguousarray(_like(ptrs, x)).reshape(-1).view(bits) for x in (expected, values)]
    pairs = np.stack(each, axis=1)
    before = _exchanged(ptrs.reshape(-1), pairs, lambda old, pair: np.where(old == pair[:, 0], pair[:, 1], old))
    return before.view(values.dtype).reshape(ptrs.shape)


def _exchanged(addresses, given, change):
    """Replace each element by change(it, what is given for it); return the elements before, all flat arrays."""
    if len(np.unique(addresses)) == len(addresses):
        before = page_memory.read(addresses, given.dtype)
        with np.errstate(all="ignore"):
            page_memory.write(addresses, change(before, given))
        return before
    each = [_exchanged(addresses[k : k + 1], given[k : k + 1], change) for k in range(len(addresses))]
    return np.concatenate(each)
