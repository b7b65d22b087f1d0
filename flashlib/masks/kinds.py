"""The kinds of masks: what each sees, as bounds where possible, and how it changes a score."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flashlib.inputs import check_block_sizes
from flashlib.masks.for_kernels import Band, BlockTable, DeviceChange, DeviceTest
from flashlib.masks.mask import Mask
from flashlib.masks.place import Interval, Place, inside
from flashlib.masks.runs import Runs, positions
from flashlib.types import Array, Same

FAR = 2**30  # beyond any position


@dataclass(frozen=True)
class Window(Mask):
    """Keys from r - left to r + right."""

    left: int | None
    right: int | None

    def __repr__(self):
        return "causal()" if (self.left, self.right) == (None, 0) else f"window({self.left}, {self.right})"

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        first = np.zeros_like(r) if self.left is None else r - self.left
        end = np.full_like(r, place.N_k) if self.right is None else r + self.right + 1
        return inside(first, end, place)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        seen = super().sees(place, r, c)
        if self.left is not None:
            seen = seen & (c >= r - self.left)
        if self.right is not None:
            seen = seen & (c <= r + self.right)
        return seen

    def band(self) -> Band | None:
        return Band(self.left, self.right)

    def device_test(self, place: Place) -> DeviceTest | None:
        return DeviceTest("in_window", tuple(FAR if n is None else n for n in (self.left, self.right)))

    def closed_part(self, N_q: int, N_k: int, rows: Runs, keys: Runs) -> Mask | None:
        """Return a window if steps are equal, found by floor division, without bounds that hide nothing."""
        if len(rows) > 1 or len(keys) > 1 or rows[0].step != keys[0].step:
            return None
        ahead, step, n_q, n_k = rows[0].start + N_k - N_q - keys[0].start, rows[0].step, len(rows[0]), len(keys[0])
        left = n_k if self.left is None else (self.left - ahead) // step + n_k - n_q
        right = n_q if self.right is None else (self.right + ahead) // step - n_k + n_q
        if left >= n_k - 1 and right >= n_q - 1:
            return Mask()
        return Window(None if left >= n_k - 1 else left, None if right >= n_q - 1 else right)


@dataclass(frozen=True)
class Prefix(Mask):
    """Keys up to r, and the first n keys."""

    n: int

    def __repr__(self):
        return f"prefix({self.n})"

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return inside(np.zeros_like(r), np.maximum(r + 1, self.n), place)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        return (c <= r) | (c < self.n)

    def band(self) -> Band | None:
        return Band(None, 0, self.n)

    def device_test(self, place: Place) -> DeviceTest | None:
        return DeviceTest("in_prefix", (self.n,))


class Documents(Mask):
    """Keys of the same document. ids: (N_k,), or (B, N_k) for sequences that are packed in different ways."""

    def __init__(self, ids):
        self.ids = _checked_ids(ids)
        self.batches = None if self.ids.ndim == 1 else len(self.ids)
        self.asks_batch = self.batches is not None

    def __repr__(self):
        count = (
            f"{self.batches} sequences" if self.batches is not None else f"{len(np.unique(self.ids))} documents"
        )
        return f"documents(<{count} of {self.ids.shape[-1]} tokens>)"

    def check(self, place: Place) -> None:
        if self.ids.shape[-1] != place.N_k:
            raise ValueError(
                f"ids has shape {self.ids.shape}, and there are {place.N_k} keys: pass an id for each "
                "key; row i of Q has that of key i + N_k - N_q"
            )

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        self.check(place)
        if place.N_k == 0:
            return np.zeros(len(r), int), np.zeros(len(r), int)
        ids = self.ids if self.ids.ndim == 1 else self.ids[place.b]
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        document = np.searchsorted(starts, np.maximum(r, 0), side="right") - 1
        first, end = starts[document], np.append(starts[1:], place.N_k)[document]
        return np.where(r < 0, 0, first), np.where(r < 0, 0, end)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        ids = like(self.ids, c)
        if place.N_k == 0:
            return (c == r) & (c < 0)
        own = r.clip(0, place.N_k - 1)
        if self.batches is None:
            return (ids[own] == ids[c]) & (r >= 0)
        return (ids[place.b, own] == ids[place.b, c]) & (r >= 0)

    def document_ids(self) -> np.ndarray | None:
        return self.ids

    def device_test(self, place: Place) -> DeviceTest | None:
        numbers = np.unique(self.ids, return_inverse=True)[1].reshape(self.ids.shape).astype(np.int32)
        stride = 0 if self.batches is None else place.N_k
        return DeviceTest("in_document", (numbers, stride, place.N_k), sized=True)


class Blocks(Mask):
    """The tiles of scores that a table allows. table: (ceil(N_q / B_r), ceil(N_k / B_c)) of bool."""

    def __init__(self, table, B_r, B_c):
        check_block_sizes(B_r=B_r, B_c=B_c)
        self.table = array("table", table, "a matrix of bool, a row for each block of B_r queries")
        self.B_r, self.B_c = int(B_r), int(B_c)
        if self.table.ndim != 2 or self.table.dtype != bool:
            raise ValueError(
                f"table has shape {self.table.shape} and dtype {self.table.dtype}; pass a matrix of bool, a row "
                "for each block of B_r queries and a column for each block of B_c keys"
            )

    def __repr__(self):
        T_r, T_c = self.table.shape
        return f"blocks(<{T_r} x {T_c} tiles>, {self.B_r}, {self.B_c})"

    def check(self, place: Place) -> None:
        expected = -(-place.N_q // self.B_r), -(-place.N_k // self.B_c)
        if self.table.shape != expected:
            raise ValueError(
                f"table has shape {self.table.shape}; {place.N_q} queries and {place.N_k} keys have {expected} "
                f"blocks of {self.B_r} x {self.B_c}: is it a table of another block size?"
            )

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return None

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        return like(self.table, c)[(r - place.past) // self.B_r, c // self.B_c]

    def block_table(self) -> BlockTable | None:
        return BlockTable(self.table, self.B_r, self.B_c)

    def closed_part(self, N_q: int, N_k: int, rows: Runs, keys: Runs) -> Mask | None:
        """Return the part of the table, unless a block is cut."""
        i, j = positions(rows) // self.B_r, positions(keys) // self.B_c
        for blocks, B in ((i, self.B_r), (j, self.B_c)):
            if not np.array_equal(blocks, np.repeat(blocks[::B], B)[: len(blocks)]):
                return None
        return Blocks(self.table[np.ix_(i[:: self.B_r], j[:: self.B_c])], self.B_r, self.B_c)


class Function(Mask):
    """The scores for which a function returns True: f(r, c) or f(b, h, r, c), of arrays or tensors of positions.

    kernel: the same as a @triton.jit function of (b, h, r, c), for cut tiles; without it kernels load bits. Its
    constants are compiled in, so that its result never changes.
    """

    def __init__(self, f, kernel=None):
        self.f, self.kernel, self.of_heads = f, kernel, count_arguments(f, (2, 4), "r, c", "b, h, r, c") == 4
        self.asks_batch = self.asks_head = self.of_heads
        self.may_change = kernel is None
        if kernel is not None:
            checked_kernel(kernel, "b, h, r, c")

    def device_test(self, place: Place) -> DeviceTest | None:
        return None if self.kernel is None else DeviceTest(self.kernel)

    def __repr__(self):
        return f"from_function({named(self.f)})"

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return None

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        seen = self._asked(place, r, c)
        if not isinstance(seen, bool):
            self._check(seen, place, r, c)
        return seen & super().sees(place, r, c)

    def _check(self, seen, place, r, c):
        """Raise TypeError or ValueError unless `seen` is a valid result of the function for these positions."""
        dtype = getattr(seen, "dtype", type(seen).__name__)
        if str(dtype).removeprefix("torch.") != "bool":
            raise TypeError(f"the function of the mask returned {dtype}; it must return bool: a comparison")
        if _of_numpy(seen) != _of_numpy(c):
            raise TypeError(
                f"the function of the mask was given {_kind(c)} and returned {_kind(seen)}: look things up "
                "in the same kind as r and c, e.g. in a torch tensor"
            )
        shape = _together(*((place.b, place.h) if self.of_heads else ()), r, c)
        if not _broadcasts(tuple(seen.shape), shape):
            raise ValueError(
                f"the function of the mask returned the shape {tuple(seen.shape)} for r of {_together(r)} and c "
                f"of {_together(c)}; it must return one that broadcasts to {shape}: compare r with c"
            )

    def _asked(self, place, r, c):
        try:
            return self.f(place.b, place.h, r, c) if self.of_heads else self.f(r, c)
        except Exception as error:
            if isinstance(c, np.ndarray | np.generic | int):
                raise
            raise TypeError(
                f"the function of the mask does not work on torch tensors ({type(error).__name__}: {error}): "
                "compare r and c with & and | in place of `and` and `or`, and look things up in a torch tensor"
            ) from error


class Score(Mask):
    """All scores are seen; f(S, h, r, c) replaces S. slope: the derivative with respect to S, same arguments.

    kernel: both as @triton.jit functions.
    """

    changes_scores = True

    def __init__(self, f, slope, kernel=None):
        if kernel is not None:
            if not isinstance(kernel, tuple | list) or len(kernel) != 2:
                raise TypeError(f"kernel is {kernel!r}; pass a pair of @triton.jit functions, (f, slope)")
            for of in kernel:
                checked_kernel(of, "S, h, r, c")
        self.f, self.df, self.kernel = f, slope, kernel

    def __repr__(self):
        return f"score({named(self.f)}, {named(self.df)})"

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        return checked_change("function of the score", self.f(S, place.h, r, c), S)

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        return checked_change("slope of the score", self.df(S, place.h, r, c), S, (int, float))

    def device_change(self, place: Place, H: int) -> DeviceChange:
        if self.kernel is None:
            raise ValueError(
                "the score function has no kernel: pass masks.score(f, slope, kernel=(f, slope)) with @triton.jit "
                "functions of (S, h, r, c)"
            )
        return DeviceChange(*self.kernel)


def checked_change(what: str, X: Any, S: Same, numbers: tuple[type, ...] = ()) -> Any:
    """Return the result of a function of S in the shape of S; raise TypeError or ValueError if it does not fit."""
    if isinstance(X, numbers):
        return X
    if not hasattr(X, "shape") or _of_numpy(X) != _of_numpy(S):
        raise TypeError(f"the {what} returned {_kind(X)} for {_kind(S)}; it must return the same kind as S")
    if X.shape == S.shape:
        return X
    if not _broadcasts(tuple(X.shape), tuple(S.shape)):
        raise ValueError(
            f"the {what} returned the shape {tuple(X.shape)}, and S has {tuple(S.shape)}; it must return a "
            "shape that broadcasts to it"
        )
    return np.broadcast_to(X, S.shape) if isinstance(S, np.ndarray) else X.expand(S.shape)


class Alibi(Mask):
    """A penalty for distance: S - slopes[h] * |r - c|. slopes: (H,), or one number for all heads."""

    heads: int
    changes_scores = True

    def __init__(self, slopes):
        what = "numbers, (H,), or one number"
        try:
            self.slopes = np.array(slopes, float)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"slopes is {slopes!r:.60}; pass {what}: {error}") from None
        except OverflowError:
            raise ValueError(f"slopes is {slopes!r:.60}; pass finite {what}") from None
        if array("slopes", slopes, what).dtype.kind in "bSU":
            raise TypeError(f"slopes is {slopes!r:.60}; pass {what}")
        if self.slopes.ndim > 1 or not self.slopes.size or not np.isfinite(self.slopes).all():
            raise ValueError(
                f"slopes is {slopes!r}, of shape {self.slopes.shape}; pass a finite number for each head, (H,), "
                "e.g. masks.alibi_slopes(H), or one number for all heads"
            )
        self.slopes = self.slopes.reshape(-1)
        self.heads = len(self.slopes)

    def __repr__(self):
        return f"alibi({self.slopes[0]})" if self.heads == 1 else f"alibi(<{self.heads} slopes>)"

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        slopes = like(self.slopes, S)[place.h if self.heads > 1 else 0]
        return S - _cast(slopes * abs(r - c), S)

    def device_change(self, place: Place, H: int) -> DeviceChange:
        slopes = self.slopes.clip(-(2.0**100), 2.0**100)  # times a distance it must be finite in fp32
        return DeviceChange("with_distance", "one", (np.broadcast_to(slopes, H).astype(np.float32),))

    def tells_heads_apart(self) -> bool:
        return self.heads > 1

    def some_heads(self, start: int, stop: int) -> Mask | None:
        return Alibi(self.slopes[start:stop])


@dataclass(frozen=True)
class Softcap(Mask):
    """cap * tanh(S / cap): no score exceeds the cap in size."""

    cap: float
    changes_scores = True
    asks_positions = False

    def __repr__(self):
        return f"softcap({self.cap})"

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        cap = _in_range(self.cap, S)
        return cap * _tanh(S, cap)

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        return 1 - _tanh(S, _in_range(self.cap, S)) ** 2

    def device_change(self, place: Place, H: int) -> DeviceChange:
        cap = _of_fp32(self.cap)
        return DeviceChange("capped", "capped_slope", (cap, 1 / cap))

    def tells_heads_apart(self) -> bool:
        return False


def _checked_ids(ids):
    ids = array("ids", ids, "whole numbers, (N_k,) or (B, N_k)")
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
                "must be contiguous: sort them, or use from_function"
            )
    return without_one(ids)


def checked_kernel(kernel: Any, form: str) -> None:
    """Raise TypeError unless this is a Triton function of these arguments. NumPy users may not have Triton."""
    names = getattr(kernel, "arg_names", None)
    if names is None:
        raise TypeError(f"kernel is {kernel!r}; pass a @triton.jit function of ({form})")
    if len(names) != len(form.split(", ")):
        raise TypeError(f"kernel takes ({', '.join(names)}); pass a @triton.jit function of ({form})")


def array(name: str, X: ArrayLike, what: str) -> np.ndarray:
    """Return X as a new array; raise TypeError if it is not one, such as a list of lists of different lengths."""
    try:
        return np.array(X)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} is {X!r:.60}; pass {what}: {error}") from None


def without_one(X: np.ndarray) -> np.ndarray:
    """Return rows for several sequences, (B, N), as they are, and a single row as one for all sequences, (N,)."""
    return X[0] if X.ndim == 2 and len(X) == 1 else X


def count_arguments(f: Callable, accepted: tuple[int, ...], *forms: str) -> int:
    """Return how many arguments f takes; raise TypeError unless it is one of the accepted numbers."""
    if not callable(f):
        raise TypeError(f"{f!r} is not a function; pass one of ({') or ('.join(forms)})")
    try:
        signature = inspect.signature(f)
    except ValueError:  # a builtin without a signature
        return accepted[0]
    takes = [n for n in accepted if _binds(signature, n)]
    must = sum(p.default is p.empty and p.kind in _POSITIONAL for p in signature.parameters.values())
    if must in takes:
        return must  # parameters with a default belong to the function
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


def named(f: Callable) -> str:
    """Return a function's name for display, or its type if it has no name, like a partial."""
    return getattr(f, "__name__", f"<{type(f).__name__}>")


def _of_numpy(X) -> bool:
    """Return whether NumPy computes with X; a tensor is torch's."""
    return isinstance(X, np.ndarray | np.generic | int | float)


def _kind(X):
    """Return in words the kind of a function's argument or result."""
    if not hasattr(X, "dtype"):
        return f"{X!r:.40}"
    return "a NumPy array" if _of_numpy(X) else "a torch tensor"


def _together(*given):
    """Return the shape that arrays, tensors and numbers broadcast to."""
    reversed_ = zip_longest(*(reversed(getattr(X, "shape", ())) for X in given), fillvalue=1)
    return tuple(next((n for n in axis if n != 1), 1) for axis in reversed_)[::-1]


def _broadcasts(shape, to):
    """Return whether a shape broadcasts to another one without changing that one."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1], strict=False))


def like(X: Array, other: Same) -> Same:
    """Return an array or a tensor in the library of `other`, a tensor on its device."""
    if isinstance(other, np.ndarray | np.generic | int | float):  # not with _of_numpy, for the sake of mypy
        return X if isinstance(X, np.ndarray) else X.cpu().numpy()
    import torch  # it is loaded, since `other` is a tensor

    return torch.as_tensor(X, device=other.device)


def _cast(X, other):
    """Return X in the dtype of `other`."""
    return X.astype(other.dtype) if isinstance(other, np.ndarray) else X.to(other.dtype)


def _in_range(cap, S):
    """Return a cap such that the dtype of S can hold it and its inverse, as the kernels take it."""
    wide = not hasattr(S, "dtype") or S.dtype.itemsize > 4
    return cap if wide else _of_fp32(cap)


def _of_fp32(cap):
    """Return a cap such that fp32 can hold it and its inverse."""
    return min(max(cap, 2.0**-120), 2.0**120)


def _tanh(S, cap):
    """Return tanh(S / cap). A quotient beyond the dtype's range is infinite, and its tanh 1, as it should be."""
    if not _of_numpy(S):
        return (S / cap).tanh()
    with np.errstate(over="ignore"):
        return np.tanh(S / cap)
