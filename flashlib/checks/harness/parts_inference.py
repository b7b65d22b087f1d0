"""Launch kernels of two exercises: one computes the States of parts of the keys, one writes rows into pages."""

# ruff: noqa: I001  flashlib.kernels before triton
from collections.abc import Callable
from typing import Any

from flashlib.checks.engine import SideFinding
from flashlib.checks.harness.launches import launched
from flashlib.checks.harness.strided import Out
import flashlib.kernels  # noqa: F401
import triton

PRODUCTS = 2  # for each tile: S and P V
ROWS = 16  # in a tile of queries; fewer would be padded to as many


def by_parts(answer: Callable) -> Callable:
    """Return a function of Q, K, V, lengths, parts, scale and B_C that launches `answer`, one program per part.

    It returns m, l (B, H_q, parts) and O_acc (B, H_q, parts, d), as a Measured.
    """

    def launch(*arguments):
        launch_part(answer, *arguments)

    placed = launched(launch, _own_tiles)

    def run(Q, K, V, lengths, parts, scale, B_C):
        shape = *Q.shape[:2], parts
        return placed(Q, K, V, lengths, parts, scale, B_C, Out(shape), Out(shape), Out((*shape, Q.shape[2])))

    return run


def launch_part(
    answer: Any, Q: Any, K: Any, V: Any, lengths: Any, parts: int, scale: float, B_C: int, m: Any, l: Any,
    O_acc: Any,
) -> None:  # fmt: skip
    """Launch a kernel with one program for each part; it fills m, l and O_acc."""
    (B, H_q, d), (H_k, N) = Q.shape, K.shape[1:3]
    group = H_q // H_k
    sizes = N, H_k, group, parts, scale
    constants = {"D": d, "B_R": max(ROWS, triton.next_power_of_2(group)), "B_C": B_C}
    answer[(parts, H_k, B)](Q, K, V, lengths, m, l, O_acc, *sizes, **constants)


def _own_tiles(watch, Q, K, V, lengths, parts, scale, B_C, *outputs):
    """Return a Finding if a part visits tiles of other parts, whose loads its masks hide; else None."""
    tiles = K.shape[1] * sum(triton.cdiv(int(N), B_C) for N in lengths)
    visits = watch.products.total() / PRODUCTS
    return SideFinding("others_visited") if watch.idle and visits > tiles else None


def into_pages(answer: Callable) -> Callable:
    """Return a function of new rows, a pool of pages, a table and lengths that launches `answer` on the pool.

    It returns a new pool, as a Measured, and does not change the one that it is given.
    """

    def launch(new, before, table, lengths, pool):
        pool.copy_(before)
        launch_append(answer, new, pool, table, lengths)

    placed = launched(launch)

    def run(new, pool, table, lengths):
        return placed(new, pool, table, lengths, Out(pool.shape))

    return run


def launch_append(answer: Any, new: Any, pool: Any, table: Any, lengths: Any) -> None:
    """Launch a kernel with one program for each new row, which writes it into the pool."""
    (T, d), page = new.shape, pool.shape[1]
    answer[(T,)](new, pool, table, lengths, table.shape[1], page, d, D=triton.next_power_of_2(d))
