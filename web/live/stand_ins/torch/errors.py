"""Errors of shapes and indices in the words of torch, made of what NumPy says."""

import re

import numpy as np

SHAPE = r"\(([\d,]*)\)"
WORDS = {
    r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)": lambda index, axis, size: IndexError(
        f"index {index} is out of bounds for dimension {axis} with size {size}"
    ),
    r"too many indices for array: array is (\d+)-dimensional": lambda ndim: IndexError(
        f"too many indices for tensor of dimension {ndim}"
    ),
    r"operands could not be broadcast together with shapes (.*)": lambda shapes: _sizes_differ(shapes),
    rf"could not broadcast input array from shape {SHAPE} into shape {SHAPE}": lambda a, b: _cannot_expand(a, b),
    rf"remapped shapes .*: {SHAPE}  and requested shape {SHAPE}": lambda a, b: _cannot_expand(a, b),
}


def as_torch(error: Exception) -> Exception:
    """Return an error of NumPy as torch raises it; any other as it is."""
    if isinstance(error, np.exceptions.AxisError):
        ndim = error.ndim
        return IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {error.axis})"
        )
    for words, made in WORDS.items():
        if found := re.search(words, str(error)):
            return made(*found.groups())
    return error


def _sizes(text):
    return [int(n) for n in text.split(",") if n]


def _unlike(a, b, fits):
    """Return (the two sizes, the axis) of the last axis along which one size does not fit the other."""
    most = max(len(a), len(b))
    a, b = ([1] * (most - len(shape)) + shape for shape in (a, b))
    return next((a[k], b[k], k) for k in reversed(range(most)) if not fits(a[k], b[k]))


def _sizes_differ(shapes):
    *_, a, b = (_sizes(shape) for shape in re.findall(SHAPE, shapes))
    one, other, axis = _unlike(a, b, lambda m, n: m == n or 1 in (m, n))
    return RuntimeError(
        f"The size of tensor a ({one}) must match the size of tensor b ({other}) at non-singleton dimension {axis}"
    )


def _cannot_expand(own, target):
    own, target = _sizes(own), _sizes(target)
    size, wanted, axis = _unlike(own, target, lambda m, n: m in (1, n))
    return RuntimeError(
        f"The expanded size of the tensor ({wanted}) must match the existing size ({size}) at non-singleton "
        f"dimension {axis}.  Target sizes: {target}.  Tensor sizes: {own}"
    )


def check_product(a, b):
    """Raise torch's error if matrices of these shapes, of two axes or more, cannot be multiplied."""
    if min(len(a), len(b)) < 2 or a[-1] == b[-2]:
        return
    if len(a) == len(b) == 2:
        shapes = f"{a[0]}x{a[1]} and {b[0]}x{b[1]}"
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({shapes})")
    raise RuntimeError(
        f"Expected size for first two dimensions of batch2 tensor to be: {[*b[:-2], a[-1]][-2:]} "
        f"but got: {[*b[:-1]][-2:]}."
    )
