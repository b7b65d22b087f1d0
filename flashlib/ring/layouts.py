"""Who holds which tokens: a sequence of N cut over P ranks.

    contiguous  rank r holds one piece: N = 8, P = 2: [0 1 2 3] [4 5 6 7]
    striped     every P-th token from the r-th on: [0 2 4 6] [1 3 5 7]
    zigzag      of 2 P pieces the r-th from the front and the r-th from the back: [0 1 6 7] [2 3 4 5]

Under a causal mask the last rank of a contiguous layout has nearly all the work of a hop, and the first has none
after hop 0; the other layouts give every rank about the same. N need not be a multiple of anything: pieces differ
by one token, and ranks by two at most. Rows of Q and keys are cut separately, each by their own number.

Source: Brandon and others, Striped Attention (2023); zigzag as in zhuzilin's ring-flash-attention (2024) and in
Llama 3's context parallelism: Llama Team, The Llama 3 Herd of Models (2024), section 3.3.2.
"""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.inputs import check_counts
from flashlib.masks import runs as items


def runs(N: int, P: int, r: int, layout: str) -> items.Runs:
    """Return which of N tokens rank r of P holds, as ascending ranges, none of them empty.

    layout: "contiguous", "striped" or "zigzag". Raises TypeError or ValueError for anything else.
    """
    check_cut(P, layout)
    check_counts(N=N, r=r)
    if r >= P:
        raise ValueError(f"r is {r}, and there are {P} ranks, numbered from 0")
    return _joined(LAYOUTS[layout](int(N), int(P), int(r)))


def positions(N: int, P: int, r: int, layout: str) -> np.ndarray:
    """Return the positions of the tokens of rank r, in the order in which it holds them."""
    return items.positions(runs(N, P, r, layout))


def split(X: np.ndarray, P: int, layout: str, axis: int = 0) -> list[np.ndarray]:
    """Return what each of P ranks holds of X, as copies. axis: that of the sequence."""
    check_cut(P, layout)
    return [np.take(X, positions(X.shape[axis], P, r, layout), axis) for r in range(P)]


def join(parts: Sequence[np.ndarray], layout: str, axis: int = 0) -> np.ndarray:
    """Return the sequence that `split` cut into these parts, one for each rank in order.

    Raises ValueError if `split` cannot have made such parts.
    """
    P, N = len(parts), sum(X.shape[axis] for X in parts)
    check_cut(P, layout)
    order = [positions(N, P, r, layout) for r in range(P)]
    if [len(own) for own in order] != [X.shape[axis] for X in parts]:
        raise ValueError(
            f"the parts have {[X.shape[axis] for X in parts]} tokens; {N} tokens in a {layout} layout of {P} "
            f"ranks are {[len(own) for own in order]}: pass the part of every rank, in order"
        )
    return np.take(np.concatenate(parts, axis), np.argsort(np.concatenate(order)), axis)


def check_cut(P: int, layout: str) -> None:
    """Raise TypeError or ValueError for an invalid number of ranks or an unknown layout."""
    check_counts(at_least=1, ranks=P)
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; accepted are {', '.join(map(repr, LAYOUTS))}")


def _contiguous(N, P, r):
    return (range(r * N // P, (r + 1) * N // P),)


def _striped(N, P, r):
    return (range(r, N, P),)


def _zigzag(N, P, r):
    return tuple(range(i * N // (2 * P), (i + 1) * N // (2 * P)) for i in (r, 2 * P - 1 - r))


LAYOUTS: dict[str, Callable] = {"contiguous": _contiguous, "striped": _striped, "zigzag": _zigzag}


def _joined(pieces):
    """Return the pieces that are not empty, two that touch joined into one."""
    found: list[range] = []
    for piece in pieces:
        if found and piece and found[-1].stop == piece.start and found[-1].step == piece.step == 1:
            found[-1] = range(found[-1].start, piece.stop)
        elif piece:
            found.append(piece)
    return tuple(found)
