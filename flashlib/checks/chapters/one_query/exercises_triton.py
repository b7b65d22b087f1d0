"""The exercise in Triton, which is imported by the checks: macOS and Windows lack it."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, exercise, random_cases
from flashlib.checks.harness import update
from flashlib.softmax import State, summarise_rows

# ---- a part of the keys


def _taken(X, c):
    """Return rows c of X, zeros past its end."""
    return np.where((c < len(X))[:, None], X[np.minimum(c, len(X) - 1)], 0)


def _decoding(text):
    """Return the ProgramText of a loop over parts of the keys; tl.max ignores nan."""
    looped = update.looped(text, before=(update.IN_FP32,), taken=_taken)
    return looped.edited("m = np.maximum(m_old, np.fmax.reduce(S_ij, axis=1))")


@exercise(title="A part of the keys", minutes=50, difficulty="hard", program=_decoding, limit=8.0)
def decode_part(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness import far_memory, far_parts
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_inference import by_parts

    stages = [
        [
            _decoded("one tile", (1, 1, 1, 16), [16]),
            _decoded("two tiles in one part", (1, 1, 1, 32), [32]),
            _decoded("two parts of a tile each", (1, 1, 1, 32), [32], parts=2),
            _decoded("two parts, of one and of two tiles", (1, 1, 1, 48), [48], parts=2),
            _decoded("a group of 3 heads", (1, 1, 3, 32), [32], parts=2),
            _decoded("two heads of K and V, of a group of 2 each", (1, 2, 2, 32), [32], parts=2),
            _decoded("two sequences of the same length", (2, 1, 2, 32), [32, 32], parts=2),
            _decoded("scores near 1000 and d = 32", (1, 1, 2, 48), [48], parts=2, d=32, size=64),
            _decoded("keys that are all zero", (1, 1, 1, 32), [32], alike=0),
            _decoded("a group of 20 heads", (1, 1, 20, 16), [16]),
        ],
        [
            _decoded("a last tile that is not full", (1, 1, 1, 21), [21]),
            _decoded(
                "a last tile that is not full, and scores far below 0", (1, 1, 1, 21), [21], below=2**12, alike=1
            ),
            _decoded("a cache with room for more", (1, 1, 1, 70), [21], parts=2),
            _decoded("two sequences of different lengths", (2, 2, 2, 50), [39, 50], parts=3),
            *random_cases.cases(_any_decoded, 1),
        ],
        [
            _decoded("parts without a tile", (1, 1, 2, 32), [20], parts=7),
            _decoded("a sequence without a key", (2, 1, 2, 20), [0, 20], parts=2),
        ],
        [_decoded("tensors in fp16", (1, 1, 2, 40), [37], parts=2, dtype=np.float16, tolerance=2e-3)],
    ]
    outputs = State._fields
    verdict = examine_kernel(answer, by_parts, stages, known, outputs=outputs, nan="nan, or never stored")
    return far_memory.extended(verdict, known, lambda: far_parts.part_reached(answer))


def _decoded(
    words, shape, lengths, parts=1, d=16, scale=0.375, B_C=16, size=1, rng=None, alike=None, below=0,
    dtype=np.float32, tolerance=1e-5,
):  # fmt: skip
    """Return the Case of a shape (B, H_k, group, N); past the lengths K and V are nan. size, below: of Q.

    alike: if given, all keys are the first one times this number.
    """
    rng = rng or np.random.default_rng(5)
    B, H_k, group, N = shape
    coarse = size > 1 or below or dtype is np.float16
    steps = 16 if coarse else 2**14  # in 1; for small scores, more bits than fp16 has
    Q, K, V = (
        rng.integers(-1.5 * steps, 1.5 * steps + 1, shape) / steps
        for shape in ((B, H_k * group, d), *[(B, H_k, N, d)] * 2)
    )
    Q *= size
    if below:
        Q, K = (np.abs(Q) * 64 + 256) * below, -np.abs(K) - 256
    if alike is not None:
        K[:] = K[:, :, :1] * alike
    m, l = np.zeros((2, B, H_k * group, parts))
    O_acc = np.zeros((B, H_k * group, parts, d))
    for b, h, part in np.ndindex(m.shape):
        tiles = -(-lengths[b] // B_C)
        keys = slice(*(min(tiles * n // parts * B_C, lengths[b]) for n in (part, part + 1)))
        S, values = scale * K[b, h // group, keys] @ Q[b, h], V[b, h // group, keys]
        m[b, h, part], l[b, h, part], O_acc[b, h, part] = summarise_rows(S, values)
    for b, length in enumerate(lengths):
        K[b, :, length:] = V[b, :, length:] = np.nan
    given = *(X.astype(dtype) for X in (Q, K, V)), np.array(lengths, np.int32)
    return Case(words, (*given, parts, scale, B_C), (m, l, O_acc), tolerance)


def _any_decoded(rng):
    H_k, group, parts = map(int, rng.integers((1, 1, 1), (3, 5, 4)))
    lengths = [int(n) for n in rng.integers(1, 60, 2)]
    shape, B_C = (2, H_k, group, max(lengths) + int(rng.integers(0, 9))), int(rng.choice([16, 32]))
    words = f"{lengths[0]} and {lengths[1]} keys in {parts} parts"
    return _decoded(words, shape, lengths, parts, scale=float(rng.integers(1, 16)) / 16, B_C=B_C, rng=rng)
