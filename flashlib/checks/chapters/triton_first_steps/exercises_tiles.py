"""The exercises on tiles: kernels with a grid of two and three axes. The checks import Triton, not this file."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.checks.chapters.triton_first_steps.exercises import fp32
from flashlib.checks.engine import Case, Known, Verdict, exercise, random_cases, written
from flashlib.checks.harness.stored import StoredOutput, with_room
from flashlib.checks.harness.strided import Out, Strided, contiguous, memory, strides_of

INF = np.inf
GAPS = 20, 17  # between rows of X and of Y: a wrong mask or stride does not store to one place twice, in any order
MODEL = partial(written, memory=memory, strides_of=strides_of, Stored=StoredOutput)


@exercise(title="A transposed copy", minutes=15, difficulty="medium", program=MODEL)
def transpose(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel

    rng = np.random.default_rng(0)
    square = [
        _copied(rng, "one whole tile, and strides without gaps", (4, 4), (4, 1), (4, 1)),
        _copied(rng, "two tiles below each other", (8, 4)),
        _copied(rng, "two tiles side by side", (4, 8)),
        _copied(rng, "whole tiles", (8, 12)),
        _copied(rng, "a single element", (1, 1)),
        _copied(rng, "more rows than a tile, and fewer columns", (6, 3)),
        _copied(rng, "fewer rows than a tile, and more columns", (3, 6)),
        _copied(rng, "ragged tiles", (7, 10)),
        _copied(rng, "gaps between the elements of X", (5, 6), (40, 2)),
        _copied(rng, "gaps between the elements of Y", (5, 6), None, (50, 3)),
        _copied(rng, "an X that is a transposed view", (6, 9), (1, 23)),
        _copied(rng, "a Y that is a transposed view", (6, 9), None, (1, 27)),
    ]
    others = [
        _copied(rng, "strides without gaps", (7, 10), (10, 1), (7, 1)),
        _copied(rng, "tiles of 4 x 8", (10, 11), (42, 2), (1, 25), (4, 8)),
        _copied(rng, "tiles of 8 x 2", (10, 11), (1, 23), (27, 1), (8, 2)),
        *random_cases.cases(_any_copied),
    ]
    return examine_kernel(
        answer, _transposing, [square, others], known, outputs=("Y", "elements stored outside of Y")
    )


def _transposing(kernel):
    """Return a kernel as a function that launches it on each tile of X."""

    def my_transpose(X, Y, B_R, B_C):
        (n_rows, n_cols), grid = X.shape, (-(-X.shape[0] // B_R), -(-X.shape[1] // B_C))
        kernel[grid](X, Y, n_rows, n_cols, *X.stride(), *Y.stride(), B_R, B_C)

    return with_room(my_transpose)


def _copied(rng, words, shape, X_strides=None, Y_strides=None, tile=(4, 4)):
    n = int(np.prod(shape))
    X = fp32(1 + rng.permutation(n).reshape(shape) + rng.integers(1, 2**10, shape) / 2**10)
    given, out = Strided(X, X_strides or (GAPS[0], 1)), Out(shape[::-1], Y_strides or (GAPS[1], 1))
    return Case(words, (given, out, *tile), (X.T, 0), 1e-7)


def _any_copied(rng):
    n_rows, n_cols, gap, step = map(int, rng.integers((1, 1, 24, 1), (20, 20, 30, 4)))
    tile = tuple(map(int, rng.choice([2, 4, 8], 2)))
    X_strides, Y_strides = (step * gap, step), (gap + 1, 1)
    words = "{} x {} elements in tiles of {} x {}".format(n_rows, n_cols, *tile)
    return _copied(rng, words, (n_rows, n_cols), X_strides, Y_strides, tile)


@exercise(title="Scores, tile by tile", minutes=20, difficulty="medium", program=MODEL)
def scores(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel

    rng = np.random.default_rng(0)
    apart = {"Q_order": "NdH", "K_order": "dHN", "S_order": "kHq"}
    in_fp32 = [
        _scored(rng, "one whole tile", (1, 16, 16)),
        _scored(rng, "two heads", (2, 16, 16)),
        _scored(rng, "whole tiles", (1, 32, 48)),
        _scored(rng, "fewer queries than a tile has rows", (1, 5, 16)),
        _scored(rng, "fewer keys than a tile has columns", (1, 16, 7)),
        _scored(rng, "two heads of ragged tiles", (2, 21, 37)),
        _scored(rng, "three heads, with gaps between rows", (3, 21, 5), gap=3),
        _scored(rng, "the heads of a query side by side in Q", (2, 5, 7), Q_order="NHd"),
        _scored(rng, "the heads of a key side by side in K", (2, 5, 7), K_order="NHd"),
        _scored(rng, "a different order of axes in Q, K and S", (2, 5, 21), **apart),
    ]
    other_tiles = [
        _scored(rng, "D = 32 and tiles of 16 x 32", (2, 21, 37), 32, (16, 32)),
        _scored(rng, "D = 32, tiles of 32 x 16 and large scores", (2, 37, 21), 32, (32, 16), size=300, **apart),
        _scored(rng, "more bits than fp16 has", (1, 5, 7), steps=2**14),
    ]
    in_fp16 = [
        _scored(rng, "Q and K in fp16", (2, 5, 7), dtype=np.float16, steps=2**9, scale=0.125),
        _scored(
            rng, "Q and K in fp16, and a scale that fp16 cannot represent", (1, 5, 7), dtype=np.float16, scale=0.3
        ),
        _scored(rng, "Q and K in fp16, and scores beyond 65504", (1, 5, 7), dtype=np.float16, size=256),
    ]
    stages = [in_fp32, other_tiles + random_cases.cases(_any_scored, 2), in_fp16]
    return examine_kernel(answer, _scoring, stages, known, outputs=("S", "elements stored outside of S"))


def _scoring(kernel):
    """Return a kernel as a function that launches it on each tile of S, of all heads."""

    def my_scores(Q, K, S, scale, B_R, B_C):
        (H, N_q, D), N_k = Q.shape, K.shape[1]
        grid = S.shape[1] // B_R, S.shape[2] // B_C, H
        strides = *Q.stride(), *K.stride(), *S.stride()
        kernel[grid](Q, K, S, N_q, N_k, scale, *strides, D, B_R, B_C)

    return with_room(my_scores)


def _scored(
    rng, words, sizes, D=16, tile=(16, 16), *, scale=0.375, size=1.0, steps=16, dtype=np.float32, gap=0,
    Q_order="HNd", K_order="HNd", S_order="Hqk",
):  # fmt: skip
    """Return the Case of H heads of N_q queries and N_k keys; an order is that of the axes in memory.

    gap: elements between rows. steps: how many numbers there are from 0 to 1. size: a factor for Q and K.
    """
    (H, N_q, N_k), (B_R, B_C) = sizes, tile
    Q, K = (rng.integers(-2 * steps, 2 * steps + 1, (H, N, D)) / steps * size for N in (N_q, N_k))
    shape = H, -(-N_q // B_R) * B_R, -(-N_k // B_C) * B_C
    S = np.full(shape, -INF)
    S[:, :N_q, :N_k] = Q @ K.transpose(0, 2, 1) * scale
    given = [
        Strided(X.astype(dtype), _strides(X.shape, "HNd", order, gap)) for X, order in ((Q, Q_order), (K, K_order))
    ]
    out = Out(shape, _strides(shape, "Hqk", S_order, gap))
    return Case(words, (*given, out, scale, B_R, B_C), (S, 0), 1e-6)


def _strides(shape, axes, order, gap):
    """Return the strides of an array whose axes are in this order in memory, with a gap after the last one."""
    sizes = [shape[axes.index(axis)] for axis in order]
    strides = dict(zip(order, contiguous([*sizes[:-1], sizes[-1] + gap]), strict=True))
    return tuple(strides[axis] for axis in axes)


def _any_scored(rng):
    H, N_q, N_k = map(int, rng.integers((1, 1, 1), (3, 24, 24)))
    scale = float(rng.integers(1, 30) / 16)
    words = f"{H} heads of {N_q} queries and {N_k} keys, and a scale of {scale}"
    return _scored(rng, words, (H, N_q, N_k), scale=scale, gap=int(rng.integers(0, 4)))
