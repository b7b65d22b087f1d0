"""Comparing tensors: torch.testing."""

import numpy as np

from .dtypes import bfloat16, float16, float32, float64, promote_types
from .functions import is_tensor
from .making import as_tensor

TOLERANCES = {float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7)}


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, check_dtype=True, msg=None):
    """Raise AssertionError, which says how much, if two tensors differ by more than their type allows."""
    X, Y = (x if is_tensor(x) else as_tensor(x) for x in (actual, expected))
    if X.shape != Y.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {X.shape} != {Y.shape}.")
    if check_dtype and X.dtype is not Y.dtype:
        raise AssertionError(f"The values for attribute 'dtype' do not match: {X.dtype} != {Y.dtype}.")
    both = [TOLERANCES.get(one.dtype, (0.0, 0.0)) for one in (X, Y)]
    relative, absolute = (max(pair) for pair in zip(*both, strict=True))
    relative, absolute = relative if rtol is None else rtol, absolute if atol is None else atol
    x, y = (one.to(promote_types(X.dtype, Y.dtype))._wide() for one in (X, Y))
    far = ~np.isclose(x, y, relative, absolute, equal_nan)
    if far.any():
        raise AssertionError(msg or _sentence(x, y, far, relative, absolute))


def _sentence(x, y, far, relative, absolute):
    """Return the message of torch: with tolerances of 0 numbers have to be equal, with others close."""
    exact = relative == absolute == 0
    rest = ["" if exact else f" (up to {most} allowed)" for most in (absolute, relative)]
    with np.errstate(all="ignore"):
        apart = np.where(far, np.abs(x - y), 0)
        share = np.where(far, apart / np.abs(y), 0)
    asked = "equal" if exact else "close"
    if not x.ndim:
        lines = [f"Scalars are not {asked}!\n", f"Expected {y.item()} but got {x.item()}."]
        lines += [f"Absolute difference: {apart.item()}{rest[0]}", f"Relative difference: {share.item()}{rest[1]}"]
        return "\n".join(lines)
    lines = [
        f"Tensor-likes are not {asked}!\n",
        f"Mismatched elements: {far.sum()} / {far.size} ({100 * far.sum() / far.size:.1f}%)",
        f"Greatest absolute difference: {_where(apart)}{rest[0]}",
        f"Greatest relative difference: {_where(share)}{rest[1]}",
    ]
    return "\n".join(lines)


def _where(differences):
    at = np.unravel_index(np.argmax(differences), differences.shape)
    return f"{differences[at].item()} at index {tuple(int(k) for k in at)}"
