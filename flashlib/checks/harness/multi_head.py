"""Cases of multi-head attention, with tensors stored in any layout, and answers that launch kernels on them."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

from flashlib.checks.engine import Case, Finding, Measured, raised
from flashlib.checks.harness.strided import Strided, contiguous, memory, offsets_of, strides_of

APART = "BHdN", "BdHN", "BNdH"  # orders of the axes of Q, K and V in memory, in which no two strides are equal


def case(
    words: str, shape: tuple[int, int, int, int, int], exact: Callable, *others: object, dtype: type = np.float32,
    tolerance: float = 1e-5, size: float = 1, V_size: float = 1, fine: bool = False, stored: Sequence[str] = (),
    alike: float = 0, rng: np.random.Generator | None = None,
) -> Case:  # fmt: skip
    """Return the Case of Q, K and V with shape (B, H, N_q, N_k, d), and further arguments `others`.

    exact: takes Q, K and V of a head in fp64, and others, and returns its O, or a tuple that begins with O. dtype:
    of Q, K, V and O; further outputs are float32. size, V_size: factors for Q and V; a larger V has no negative
    values. stored: for each, the order of its axes in memory, BHNd by default. fine: the numbers have as many bits
    as fp16, or more; otherwise so few that the scores are exact in fp32. alike: if not 0, all of Q is -alike and
    all of K is alike, so all scores are the same, far below 0.
    """
    rng = rng or np.random.default_rng(0)
    B, H, N_q, N_k, d = shape
    steps = 16 if not fine else 2**10 if dtype is np.float16 else 2**14  # in 1
    Q, K, V = (rng.integers(-3 * steps // 2, 3 * steps // 2 + 1, (B, H, N, d)) / steps for N in (N_q, N_k, N_k))
    Q, V = Q * size, (np.abs(V) if V_size > 1 else V) * V_size
    if alike:
        Q, K = np.full_like(Q, -alike), np.full_like(K, alike)
    results = [exact(Q[b, h], K[b, h], V[b, h], *others) for b in range(B) for h in range(H)]
    several = isinstance(results[0], tuple)
    outputs = zip(*results, strict=True) if several else [results]
    expected = tuple(np.array(X).reshape(B, H, *X[0].shape) for X in outputs)
    given = [X.astype(dtype) for X in (Q, K, V)]  # exact
    if stored:
        given = [_laid(X, order) for X, order in zip(given, stored, strict=True)]
    dtypes = (dtype, *[np.float32] * (len(expected) - 1)) if several else dtype
    return Case(words, (*given, *others), expected if several else expected[0], tolerance, dtypes)


def _laid(X, order):
    axes = ["BHNd".index(axis) for axis in order]
    strides = dict(zip(axes, contiguous([X.shape[axis] for axis in axes]), strict=True))
    return X if order == "BHNd" else Strided(X, tuple(strides[axis] for axis in range(4)))


def read_as(
    X: np.ndarray | Strided, other: np.ndarray | Strided | None = None, axes: Sequence[int] = (0, 1, 2, 3)
) -> np.ndarray:
    """Return what is read if X is addressed with the strides of `other`, or as if it were contiguous.

    axes: the axes for which these strides are used; the others keep their own.
    """
    wrong = strides_of(other) if other is not None else contiguous(X.shape)
    strides = [wrong[axis] if axis in axes else own for axis, own in enumerate(strides_of(X))]
    return memory(X)(offsets_of(X.shape, strides)).astype(np.float32)


def last_stride_1(X: np.ndarray | Strided) -> np.ndarray:
    """Return what is read if X is addressed as if the stride of its last axis were 1."""
    return memory(X)(offsets_of(X.shape, (*strides_of(X)[:3], 1))).astype(np.float32)


def with_strides_of(O: np.ndarray, X: np.ndarray | Strided) -> np.ndarray:
    """Return what a caller sees if contiguous O is read with X's strides."""
    strides = strides_of(X)
    order = sorted(range(O.ndim), key=lambda axis: -strides[axis])
    return O.reshape([O.shape[axis] for axis in order]).transpose(np.argsort(order))


def padded(X: np.ndarray, B_c: int) -> np.ndarray:
    """Return the rows of a head, padded with zeros to whole tiles of B_c rows."""
    return np.pad(X, ((0, -len(X) % B_c), (0, 0)))


# What a model may do with tensors.
READ: dict[str, Any] = {
    "whole": np.asarray, "read_as": read_as, "last_stride_1": last_stride_1, "with_strides_of": with_strides_of,
    "padded": padded,
}  # fmt: skip


def O_alone(launched: Callable) -> Callable:
    """Return a launched answer; raises Finding if it returns more than O."""

    def run(*arguments):
        O, found = launched(*arguments)
        if isinstance(O, tuple | list):
            raise Finding("several_values", n=len(O))
        return Measured(O, found)

    run.__signature__ = inspect.signature(launched)  # type: ignore[attr-defined]
    return run


class AttentionTilings:
    """Variants of a model of attention: the tiles B_r x B_c that an answer uses, taken from its products.

    skips: whether its loop ends at the last key that a row block sees.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], None] = {}

    def note(self, watch: Any) -> None:
        """Note the tile of the first product, which computes S."""
        if watch.products:
            B_r, _, B_c = next(iter(watch.products))
            self.seen[B_r, B_c] = None

    def __iter__(self) -> Iterator[str]:
        for B_r, B_c in self.seen or {(32, 32): None, (64, 64): None, (128, 64): None}:  # unknown if compiled
            yield from (f"B_r = {B_r}; B_c = {B_c}; skips = {skips}" for skips in (False, True))


def streaming(
    answer: Callable,
    change: Callable[[Callable], Callable] = lambda launched: launched,
    tiles: AttentionTilings | None = None,
    empty: Callable[[int, int], int] | None = lambda N_q, N_k: max(0, N_q - N_k),
    only_O: bool = True,
) -> Callable:
    """Return answer as a function of arrays; it detects an N_q x N_k matrix, and rows without keys that are not 0.

    change: wraps the launched answer, as `O_alone` does. tiles: notes the tiles that it uses. empty: returns how
    many of the first rows see no key under the mask; None: do not check that. only_O: whether nothing but O is
    stored, so that fewer numbers than O has cannot be all of it.
    """
    from flashlib.checks.harness.launches import launched
    from flashlib.learner.kernels.new_tensors import NewTensors

    new, stored = NewTensors(), []

    def note(watch):
        (tiles or AttentionTilings()).note(watch)
        stored.append(watch.elsewhere if watch.programs and only_O else np.inf)  # compiled programs are not seen

    @wraps(answer)
    def noted(*arguments):
        with new:
            return answer(*arguments)

    given = answer if hasattr(answer, "fn") else noted  # `launched` refuses a kernel
    attended = change(launched(given, note=note))

    def run(Q, K, V, *others):
        N_q, N_k = Q.shape[2], K.shape[2]
        new.shapes.clear()
        try:
            result, found = attended(Q, K, V, *others)
        except (Finding, NotImplementedError):
            raise
        except Exception as error:  # it says what is wrong, whether or not a model in NumPy raises too
            found = raised(error)
            raise Finding(found.id, **found.fields) from error
        if isinstance(result, tuple | list):
            result = tuple(X.detach().cpu().numpy() if hasattr(X, "detach") else X for X in result)
        O = np.asarray(result[0] if isinstance(result, tuple) and result else result)
        if O.shape == Q.shape and O.dtype.kind == "f" and np.isnan(O).all() and stored[-1] < O.size:
            raise Finding("O_not_stored")
        if not {N_q, N_k} & {1, Q.shape[3]} and any(shape[-2:] == (N_q, N_k) for shape in new.shapes):
            found = found or Finding("matrix")
        blind = O[:, :, : empty(N_q, N_k)] if empty and O.shape == Q.shape else np.zeros(0)
        if np.isfinite(blind).all() and blind.any():
            found = found or Finding("no_key_not_zero")
        return Measured(result, found)

    # A verdict shows the arguments by these names.
    run.__signature__ = inspect.signature(attended)  # type: ignore[attr-defined]
    return run
