"""The kinds of masks: what each sees, by bounds where it can, and what it makes of a score."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flashlib.masks.mask import Mask, inside
from flashlib.state import check_block_sizes

FAR = 2**30  # beyond any position


@dataclass(frozen=True)
class Window(Mask):
    """Keys from r - left to r + right."""

    left: int | None
    right: int | None

    def keys(self, place):
        r = _positions(place)
        first = np.zeros_like(r) if self.left is None else r - self.left
        end = np.full_like(r, place.N_k) if self.right is None else r + self.right + 1
        return inside(first, end, place)

    def sees(self, place, r, c):
        seen = super().sees(place, r, c)
        if self.left is not None:
            seen = seen & (c >= r - self.left)
        if self.right is not None:
            seen = seen & (c <= r + self.right)
        return seen


@dataclass(frozen=True)
class Prefix(Mask):
    """Keys up to r, and the first n."""

    n: int

    def keys(self, place):
        r = _positions(place)
        return inside(np.zeros_like(r), np.maximum(r + 1, self.n), place)

    def sees(self, place, r, c):
        return (c <= r) | (c < self.n)


class Documents(Mask):
    """Keys of the same document. ids: (N_k,), or (B, N_k) for sequences that are packed in different ways."""

    def __init__(self, ids):
        self.ids = _checked_ids(ids)
        self.batches = None if self.ids.ndim == 1 else len(self.ids)
        self.asks_batch = self.batches is not None

    def check(self, place):
        if self.ids.shape[-1] != place.N_k:
            raise ValueError(
                f"ids has shape {self.ids.shape}, and there are {place.N_k} keys: pass an id for each "
                "key; row i of Q has that of key i + N_k - N_q"
            )

    def keys(self, place):
        self.check(place)
        if place.N_k == 0:
            return np.zeros((2, place.N_q), int)
        ids, r = self.ids if self.ids.ndim == 1 else self.ids[place.b], _positions(place)
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        document = np.searchsorted(starts, np.maximum(r, 0), side="right") - 1
        first, end = starts[document], np.append(starts[1:], place.N_k)[document]
        return np.where(r < 0, 0, first), np.where(r < 0, 0, end)

    def sees(self, place, r, c):
        ids = like(self.ids, c)
        if place.N_k == 0:
            return (c == r) & (c < 0)
        own = r.clip(0, place.N_k - 1)
        if self.batches is None:
            return (ids[own] == ids[c]) & (r >= 0)
        return (ids[place.b, own] == ids[place.b, c]) & (r >= 0)


class Blocks(Mask):
    """Tiles of scores that a table allows. table: (ceil(N_q / B_r), ceil(N_k / B_c)) of bool."""

    def __init__(self, table, B_r, B_c):
        check_block_sizes(B_r=B_r, B_c=B_c)
        self.table, self.B_r, self.B_c = np.array(table), int(B_r), int(B_c)
        if self.table.ndim != 2 or self.table.dtype != bool:
            raise ValueError(
                f"table has shape {self.table.shape} and dtype {self.table.dtype}; pass a matrix of bool, a row "
                "for each block of B_r queries and a column for each block of B_c keys"
            )

    def check(self, place):
        expected = -(-place.N_q // self.B_r), -(-place.N_k // self.B_c)
        if self.table.shape != expected:
            raise ValueError(
                f"table has shape {self.table.shape}; {place.N_q} queries and {place.N_k} keys have {expected} "
                f"blocks of {self.B_r} x {self.B_c}: is it a table of another block size?"
            )

    def keys(self, place):
        return None

    def sees(self, place, r, c):
        return like(self.table, c)[(r - place.past) // self.B_r, c // self.B_c]


class Function(Mask):
    """What a function says. f: f(r, c) or f(b, h, r, c), of arrays or tensors of whole numbers.

    kernel: the same as a @triton.jit function of (b, h, r, c), for cut tiles; without it kernels load bits.
    """

    def __init__(self, f, kernel=None):
        self.f, self.kernel, self.of_heads = f, kernel, count_arguments(f, (2, 4), "r, c", "b, h, r, c") == 4
        self.asks_batch = self.asks_head = self.of_heads
        if kernel is not None:
            _check_kernel(kernel, "b, h, r, c")

    def keys(self, place):
        return None

    def sees(self, place, r, c):
        seen = self._asked(place, r, c)
        dtype = getattr(seen, "dtype", type(seen))
        if str(dtype).removeprefix("torch.") not in ("bool", "<class 'bool'>"):
            raise TypeError(f"the function of the mask returned {dtype}; it must return bool: a comparison")
        return seen & super().sees(place, r, c)

    def _asked(self, place, r, c):
        try:
            return self.f(place.b, place.h, r, c) if self.of_heads else self.f(r, c)
        except Exception as error:
            if isinstance(c, np.ndarray | np.generic | int):
                raise
            raise TypeError(
                f"the function of the mask cannot be asked for torch tensors ({type(error).__name__}: {error}): "
                "compare r and c with & and | in place of `and` and `or`, and look things up in a torch tensor"
            ) from error


class Score(Mask):
    """All are seen; f(S, h, r, c) in place of S. slope: its derivative with respect to S, of the same arguments.

    kernel: both as @triton.jit functions.
    """

    changes_scores = True

    def __init__(self, f, slope, kernel=None):
        if kernel is not None:
            if not isinstance(kernel, tuple | list) or len(kernel) != 2:
                raise TypeError(f"kernel is {kernel!r}; pass a pair of @triton.jit functions, (f, slope)")
            for of in kernel:
                _check_kernel(of, "S, h, r, c")
        self.f, self.df, self.kernel = f, slope, kernel

    def score(self, S, place, r, c):
        return self.f(S, place.h, r, c)

    def slope(self, S, place, r, c):
        return self.df(S, place.h, r, c)


class Alibi(Mask):
    """A penalty for distance: S - slopes[h] * |r - c|. slopes: (H,), or one number for all heads."""

    changes_scores = True

    def __init__(self, slopes):
        try:
            self.slopes = np.array(slopes, float)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"slopes is {slopes!r}; pass numbers, (H,), or one number: {error}") from None
        if self.slopes.ndim > 1 or not self.slopes.size or not np.isfinite(self.slopes).all():
            raise ValueError(
                f"slopes is {slopes!r}, of shape {self.slopes.shape}; pass a finite number for each head, (H,), "
                "e.g. masks.alibi_slopes(H), or one number for all heads"
            )
        self.slopes = self.slopes.reshape(-1)
        self.heads = len(self.slopes)

    def score(self, S, place, r, c):
        slopes = like(self.slopes, S)[place.h if self.heads > 1 else 0]
        return S - _cast(slopes * abs(r - c), S)


@dataclass(frozen=True)
class Softcap(Mask):
    """c * tanh(S / c): no score beyond c in size."""

    cap: float
    changes_scores = True

    def score(self, S, place, r, c):
        return self.cap * _tanh(S / self.cap)

    def slope(self, S, place, r, c):
        return 1 - _tanh(S / self.cap) ** 2


def _positions(place):
    return np.arange(place.N_q) + place.past


def _checked_ids(ids):
    ids = np.array(ids)
    if ids.ndim not in (1, 2) or ids.dtype.kind not in "iu":
        raise TypeError(
            f"ids has shape {ids.shape} and dtype {ids.dtype}; pass whole numbers, (N_k,) or (B, N_k): the "
            "document of each token"
        )
    for row in np.atleast_2d(ids):
        changes = np.flatnonzero(row[1:] != row[:-1]) + 1
        firsts = row[np.concatenate([[0], changes])] if len(row) else row
        if len(np.unique(firsts)) < len(firsts):
            seen, again = set(), None
            for at, name in zip([0, *changes], firsts, strict=True):
                again = at if name in seen and again is None else again
                seen.add(name)
            raise ValueError(
                f"ids: {row[again]} comes again at position {again}, after another document; tokens of a document "
                "must stand together: sort them, or use from_function"
            )
    return without_one(ids)


def _check_kernel(kernel, form):
    """Raise TypeError unless this is a function of Triton's, of arguments so named. NumPy users have no Triton."""
    names = getattr(kernel, "arg_names", None)
    if names is None:
        raise TypeError(f"kernel is {kernel!r}; pass a @triton.jit function of ({form})")
    if len(names) != len(form.split(", ")):
        raise TypeError(f"kernel takes ({', '.join(names)}); pass a @triton.jit function of ({form})")


def without_one(X):
    """Return a row for each sequence, (B, N), as it is, and a single row as the row of all sequences, (N,)."""
    return X[0] if X.ndim == 2 and len(X) == 1 else X


def count_arguments(f, accepted, *forms) -> int:
    """Return how many arguments f takes; raise TypeError unless it is one of the accepted numbers."""
    if not isinstance(f, Callable):
        raise TypeError(f"{f!r} is no function; pass one of ({') or ('.join(forms)})")
    try:
        signature = inspect.signature(f)
    except ValueError:  # a builtin does not say
        return accepted[0]
    takes = [n for n in accepted if _binds(signature, n)]
    must = sum(p.default is p.empty and p.kind in _POSITIONAL for p in signature.parameters.values())
    if must in takes:
        return must  # what has a default is the function's own
    if len(takes) != 1:
        raise TypeError(f"the function takes {signature}; accepted are ({') or ('.join(forms)})")
    return takes[0]


_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


def _binds(signature, n):
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True


def like(X, other):
    """Return an array as what `other` is: itself, or a tensor on its device."""
    if isinstance(other, np.ndarray | np.generic | int):
        return X
    import torch  # it is loaded, since `other` is a tensor

    return torch.as_tensor(X, device=other.device)


def _cast(X, other):
    """Return X in the dtype of `other`."""
    return X.astype(other.dtype) if isinstance(other, np.ndarray) else X.to(other.dtype)


def _tanh(X):
    return np.tanh(X) if isinstance(X, np.ndarray) else X.tanh()
