"""Q, K and V in eight bits, for the kernels that multiply them: rotated, centred, scaled, rounded, laid out.

K and V are read twice, Q once: `_look` finds the sum, smallest and largest number of each channel of K and V;
`_settle` turns them into means and scales; `_write_rows` writes Q and K, and `_write_columns` V.

    rotated   Q and K times one orthogonal matrix: signs, then Hadamard's. Q K^T stays the same, and an outlier of
              one channel is spread over all: the largest number of a head, which sets its scale, shrinks
    centred   K and V minus the mean of each channel. K's does not affect softmax; V's is added to O at the end
    scaled    Q by row, without an earlier look. K and V by head, so that products need no scale for each key
    rounded   to e4m3, or Q and K to int8; to the nearest number, ties to even
    laid out  V transposed, since products in eight bits read both factors along the keys; for Hopper's kernel its
              keys permuted too, see `flashlib.kernels.hopper.fp8_tiles.operand`

Source: rotation: Ashkboos and others, QuaRot (2024); means: Zhang and others, SageAttention (2024).
"""

import functools
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.cache.storage import LARGEST_E4M3
from flashlib.kernels import INTERPRETED
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import kernel_dtype, kernel_input, on_device_of

FORMATS = {"e4m3": torch.float8_e4m3fn, "int8": torch.int8}
LARGEST = {"e4m3": LARGEST_E4M3, "int8": 127.0}
LARGEST_OF_V = tl.constexpr(LARGEST_E4M3)
WIDEST = 128  # channels that are rotated together: a larger matrix takes too much shared memory
TILE = 128  # keys; V is padded to whole tiles
CHUNK = 1024  # keys that a program of `_look` reads
SPAN = 256  # rows of Q and K that a program writes, so that it reads the matrix once for many rows
SEED = 0


class QuantisedQKV(NamedTuple):
    """Q, K and V in eight bits, and the scales and means that turn them back.

    Q (B, H, N_q, d), K (B, H_k, N_k, d)  times q_scale and k_scale: Q and K, rotated, K minus its mean
    V (B, H_k, d, N)                      times v_scale, plus v_mean: V; N is N_k rounded up to whole tiles
    q_scale (B, H, N_q), k_scale (B, H_k), v_scale (B, H_k), v_mean (B, H_k, d)  fp32
    q_taken (B, H, N_q)  what K's mean took from all scores of a row, before the scale: it is added back to lse
    """

    Q: torch.Tensor
    K: torch.Tensor
    V: torch.Tensor
    q_scale: torch.Tensor
    q_taken: torch.Tensor
    k_scale: torch.Tensor
    v_scale: torch.Tensor
    v_mean: torch.Tensor


class QuantisePlan(NamedTuple):
    qk: str
    look: planning.Launch
    settle: planning.Launch
    write_rows: planning.Launch
    write_columns: planning.Launch
    chunks: int


PLANS = planning.Plans()


def quantised(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, qk: str = "e4m3", permuted: bool = False,
    rotated: bool = True, centred: bool = True,
) -> QuantisedQKV:  # fmt: skip
    """Return Q, K and V in eight bits; all numbers finite, no size 0, d = d_v a power of two from 16 to 256.

    qk: "e4m3" or "int8", the format of Q and K. permuted: whether V's keys are permuted, as Hopper's kernel takes
    them. rotated, centred: False leaves the idea out, to see what it gains.
    """
    options = qk, permuted, rotated, centred
    key = PLANS.key((Q, K, V), *options)
    return run(Q, K, V, PLANS.get(key) or PLANS.keep(key, plan_of(Q, K, V, *options)))


def run(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, plan: QuantisePlan) -> QuantisedQKV:
    """Do what `quantised` does, by its plan."""
    Q, K, V = (kernel_input(X) for X in (Q, K, V))
    (B, H, N_q, d), (H_k, N_k), qk = Q.shape, K.shape[1:3], plan.qk

    def empty(*shape, dtype=torch.float32):
        return Q.new_empty(shape, dtype=dtype)

    def written(X, format):  # the interpreter rounds to e4m3 wrongly; torch rounds correctly
        return X.to(FORMATS[format]) if X.dtype == torch.float32 else X

    of_rows, of_v = (torch.float32 if INTERPRETED else FORMATS[format] for format in (qk, "e4m3"))
    q, k = empty(B, H, N_q, d, dtype=of_rows), empty(B, H_k, N_k, d, dtype=of_rows)
    v = empty(B, H_k, d, triton.cdiv(N_k, TILE) * TILE, dtype=of_v)
    q_scale, q_taken = empty(B, H, N_q), empty(B, H, N_q)
    scales, means = empty(2, B, H_k), empty(2, B, H_k, d)
    seen = empty(2, B, H_k, plan.chunks, 3, d)
    matrix = rotation(min(d, WIDEST), kernel_dtype(Q.dtype), Q.device)
    stream = planning.stream_of(Q)
    with on_device_of(Q):
        plan.look(K, V, matrix, seen, stream=stream)
        plan.settle(seen, scales, means, stream=stream)
        plan.write_rows(Q, K, matrix, scales, means, q, k, q_scale, q_taken, stream=stream)
        plan.write_columns(V, scales[1], means[1], v, stream=stream)
    k_scale, v_scale = scales
    numbers = written(q, qk), written(k, qk), written(v, "e4m3")
    return QuantisedQKV(*numbers, q_scale, q_taken, k_scale, v_scale, means[1])


@functools.lru_cache(maxsize=16)
def rotation(d: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an orthogonal matrix (d, d) times sqrt(d), all 1 and -1: a sign for each row, times Hadamard's."""
    H = torch.ones(1, 1)
    while len(H) < d:
        H = torch.cat([torch.cat([H, H], 1), torch.cat([H, -H], 1)])
    signs = torch.randint(0, 2, (d, 1), generator=torch.Generator().manual_seed(SEED)) * 2 - 1
    return (signs * H).to(dtype=dtype, device=device)


def plan_of(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, qk: str, permuted: bool, rotated: bool, centred: bool
) -> QuantisePlan:
    """Return the launches of `quantised` for tensors like these."""
    Q, K, V = (kernel_input(X) for X in (Q, K, V))
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    chunks, n_tiles = triton.cdiv(N_k, CHUNK), triton.cdiv(N_k, TILE)
    q, k, v = (X.stride()[:3] for X in (Q, K, V))
    turn = {"D": d, "GROUP": min(d, WIDEST), "ROWS": max(16, min(64, 8192 // d)), "ROTATED": rotated}
    programs = B * H * triton.cdiv(N_q, SPAN), B * H_k * triton.cdiv(N_k, SPAN)
    return QuantisePlan(
        qk,
        planning.Launch(
            _look, 2 * B * H_k * chunks, (*k, *v, H_k, N_k, B * H_k), turn | {"CHUNK": CHUNK}, {"num_warps": 4}
        ),
        planning.Launch(
            _settle, 2 * B * H_k, (N_k, chunks, B * H_k),
            {"D": d, "LARGEST": LARGEST[qk], "CENTRED": centred}, {"num_warps": 4},
        ),
        planning.Launch(
            _write_rows, sum(programs), (*q, *k, H, H_k, N_q, N_k, programs[0]),
            turn | {"ROWS": max(16, min(128, 8192 // d)), "SPAN": SPAN}
            | {"LARGEST": LARGEST[qk], "WHOLE": qk == "int8"},
            {"num_warps": 4, "num_stages": 1},
        ),
        planning.Launch(
            _write_columns, B * H_k * n_tiles, (*v, H_k, N_k, n_tiles * TILE),
            {"D": d, "TILE": TILE, "PERMUTED": permuted}, {"num_warps": 4 if d <= 128 else 8},
        ),
        chunks,
    )  # fmt: skip


@triton.jit
def _rows(X_ptr, stride_b, stride_h, stride_n, head, H, rows, N, D: tl.constexpr):
    """Return rows of a head, zeros past the last."""
    at = X_ptr + (head // H).to(tl.int64) * stride_b + (head % H).to(tl.int64) * stride_h
    at = at + rows.to(tl.int64)[:, None] * stride_n + tl.arange(0, D)[None, :]
    return tl.load(at, mask=rows[:, None] < N, other=0.0)


@triton.jit
def _matrix(Matrix_ptr, GROUP: tl.constexpr):
    i = tl.arange(0, GROUP)
    return tl.load(Matrix_ptr + i[:, None] * GROUP + i[None, :])


@triton.jit
def _turned(x, matrix, D: tl.constexpr, GROUP: tl.constexpr, ROTATED: tl.constexpr):
    """Return rows in fp32, each group of GROUP channels rotated. The matrix has 1 and -1: products are exact."""
    if ROTATED:
        ROWS: tl.constexpr = x.shape[0] * D // GROUP
        turned = tl.dot(tl.reshape(x, (ROWS, GROUP)), matrix, input_precision="ieee") * (GROUP**-0.5)
        return tl.reshape(turned, (x.shape[0], D))
    else:
        return x.to(tl.float32)


@triton.jit
def _include(seen, x, inside, FOLDED: tl.constexpr):
    """Return sum, smallest and largest updated with rows, `inside` those that exist.

    FOLDED: a shape of x, the second of whose four axes is of rows that one thread holds, if possible: these are
    compared where they are, and only the rest is kept in registers.
    """
    total, smallest, largest = seen
    low, high = tl.where(inside, x, float("inf")), tl.where(inside, x, -float("inf"))
    smallest = tl.minimum(smallest, tl.min(tl.reshape(low, FOLDED), 1))
    largest = tl.maximum(largest, tl.max(tl.reshape(high, FOLDED), 1))
    return total + tl.sum(tl.reshape(x, FOLDED), 1), smallest, largest


@triton.jit
def _store_seen(at, seen, D: tl.constexpr):
    """Store sum, smallest and largest of each of D channels; rows of `seen` may be parts of a key's channels."""
    channels: tl.constexpr = seen[0].shape[2]
    rows: tl.constexpr = seen[0].shape[0] * seen[0].shape[1] * channels // D
    tl.store(at, tl.sum(tl.reshape(seen[0], (rows, D)), 0))
    tl.store(at + D, tl.min(tl.reshape(seen[1], (rows, D)), 0))
    tl.store(at + 2 * D, tl.max(tl.reshape(seen[2], (rows, D)), 0))


@triton.jit
def _look_at_k(
    at, K_ptr, matrix, k_b, k_h, k_n, head, H_k, first, end,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, ROTATED: tl.constexpr,
):  # fmt: skip
    LINES: tl.constexpr = ROWS * D // GROUP  # of the product with the matrix
    none = tl.zeros((LINES // 16, 8, GROUP), tl.float32)
    seen = none, none + float("inf"), none - float("inf")
    for start in range(first, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        x = _turned(_rows(K_ptr, k_b, k_h, k_n, head, H_k, rows, end, D), matrix, D, GROUP, ROTATED)
        seen = _include(seen, x, rows[:, None] < end, (LINES // 16, 2, 8, GROUP))
    _store_seen(at, seen, D)


@triton.jit
def _look_at_v(at, V_ptr, v_b, v_h, v_n, head, H_k, first, end, D: tl.constexpr, ROWS: tl.constexpr):
    none = tl.zeros((1, 16, D), tl.float32)
    seen = none, none + float("inf"), none - float("inf")
    for start in range(first, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        x = _rows(V_ptr, v_b, v_h, v_n, head, H_k, rows, end, D).to(tl.float32)
        seen = _include(seen, x, rows[:, None] < end, (1, ROWS // 16, 16, D))
    _store_seen(at, seen, D)


@triton.jit(do_not_specialize=["H_k", "N_k", "heads"])
def _look(
    K_ptr, V_ptr, Matrix_ptr, Seen_ptr, k_b, k_h, k_n, v_b, v_h, v_n, H_k, N_k, heads,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, ROTATED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write sum, smallest and largest of each channel of CHUNK keys: K in the first half of programs, else V."""
    chunks = tl.cdiv(N_k, CHUNK)
    head, first = tl.program_id(0) // chunks, tl.program_id(0) % chunks * CHUNK
    end = tl.minimum(first + CHUNK, N_k)
    at = Seen_ptr + tl.program_id(0) * (3 * D) + tl.arange(0, D)
    if head < heads:
        matrix = _matrix(Matrix_ptr, GROUP)
        _look_at_k(at, K_ptr, matrix, k_b, k_h, k_n, head, H_k, first, end, D, GROUP, ROWS, ROTATED)
    else:
        _look_at_v(at, V_ptr, v_b, v_h, v_n, head - heads, H_k, first, end, D, ROWS)


@triton.jit(do_not_specialize=["N_k", "chunks", "heads"])
def _settle(
    Seen_ptr, Scales_ptr, Means_ptr, N_k, chunks, heads, D: tl.constexpr, LARGEST: tl.constexpr,
    CENTRED: tl.constexpr,
):  # fmt: skip
    """Write mean and scale of a head of K, or of V, from the sums and extremes of its chunks."""
    head = tl.program_id(0)
    none = tl.zeros((16, D), tl.float32)
    total, smallest, largest = none, none + float("inf"), none - float("inf")
    for start in range(0, chunks, 16):
        chunk = start + tl.arange(0, 16)[:, None]
        at = Seen_ptr + (head * chunks + chunk) * (3 * D) + tl.arange(0, D)[None, :]
        total += tl.load(at, mask=chunk < chunks, other=0.0)
        smallest = tl.minimum(smallest, tl.load(at + D, mask=chunk < chunks, other=float("inf")))
        largest = tl.maximum(largest, tl.load(at + 2 * D, mask=chunk < chunks, other=-float("inf")))
    mean = tl.sum(total, 0) / N_k if CENTRED else tl.zeros((D,), tl.float32)
    top = tl.max(tl.maximum(tl.max(largest, 0) - mean, mean - tl.min(smallest, 0)), 0)
    scale = top / tl.where(head < heads, LARGEST, LARGEST_OF_V)
    tl.store(Scales_ptr + head, tl.where(scale > 0.0, scale, 1.0))
    tl.store(Means_ptr + head * D + tl.arange(0, D), mean)


@triton.jit
def _whole(x, WHOLE: tl.constexpr):
    """Return x, if WHOLE rounded to whole numbers, ties to even: the added number leaves no bits for fractions."""
    return (x + 12582912.0) - 12582912.0 if WHOLE else x


@triton.jit
def _write_q(
    number, Q_ptr, matrix, Means_ptr, Q8_ptr, Q_scale_ptr, Q_taken_ptr, q_b, q_h, q_n, H, H_k, N_q,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, SPAN: tl.constexpr, ROTATED: tl.constexpr,
    LARGEST: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Write SPAN rows of Q, each scaled by its own largest number, and their products with K's mean."""
    head, first = number // tl.cdiv(N_q, SPAN), number % tl.cdiv(N_q, SPAN) * SPAN
    of_kv = head // H * H_k + head % H // (H // H_k)
    mean = tl.load(Means_ptr + of_kv * D + tl.arange(0, D))[None, :]
    for start in range(first, tl.minimum(first + SPAN, N_q), ROWS):
        rows = start + tl.arange(0, ROWS)
        x = _turned(_rows(Q_ptr, q_b, q_h, q_n, head, H, rows, N_q, D), matrix, D, GROUP, ROTATED)
        scale = tl.max(tl.abs(x), 1) / LARGEST
        scale = tl.where(scale > 0.0, scale, 1.0)
        taken = tl.sum(x * mean, 1)
        x = _whole(x * (1.0 / scale)[:, None], WHOLE)
        at = head.to(tl.int64) * N_q + rows
        tl.store(Q8_ptr + at[:, None] * D + tl.arange(0, D)[None, :], x, mask=rows[:, None] < N_q)
        tl.store(Q_scale_ptr + at, scale, mask=rows < N_q)
        tl.store(Q_taken_ptr + at, taken, mask=rows < N_q)


@triton.jit
def _write_k(
    number, K_ptr, matrix, Scales_ptr, Means_ptr, K8_ptr, k_b, k_h, k_n, H_k, N_k,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, SPAN: tl.constexpr, ROTATED: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    """Write SPAN rows of K, without the mean of each channel."""
    head, first = number // tl.cdiv(N_k, SPAN), number % tl.cdiv(N_k, SPAN) * SPAN
    inverse = 1.0 / tl.load(Scales_ptr + head)
    mean = tl.load(Means_ptr + head * D + tl.arange(0, D))[None, :]
    for start in range(first, tl.minimum(first + SPAN, N_k), ROWS):
        rows = start + tl.arange(0, ROWS)
        x = _turned(_rows(K_ptr, k_b, k_h, k_n, head, H_k, rows, N_k, D), matrix, D, GROUP, ROTATED)
        x = _whole((x - mean) * inverse, WHOLE)
        at = K8_ptr + (head.to(tl.int64) * N_k + rows)[:, None] * D + tl.arange(0, D)[None, :]
        tl.store(at, x, mask=rows[:, None] < N_k)


@triton.jit(do_not_specialize=["H", "H_k", "N_q", "N_k", "programs_q"])
def _write_rows(
    Q_ptr, K_ptr, Matrix_ptr, Scales_ptr, Means_ptr, Q8_ptr, K8_ptr, Q_scale_ptr, Q_taken_ptr,
    q_b, q_h, q_n, k_b, k_h, k_n, H, H_k, N_q, N_k, programs_q,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, ROTATED: tl.constexpr, SPAN: tl.constexpr,
    LARGEST: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Write rows of Q in the first programs, else of K."""
    number = tl.program_id(0)
    matrix = _matrix(Matrix_ptr, GROUP)
    if number < programs_q:
        _write_q(
            number, Q_ptr, matrix, Means_ptr, Q8_ptr, Q_scale_ptr, Q_taken_ptr, q_b, q_h, q_n, H, H_k, N_q,
            D, GROUP, ROWS, SPAN, ROTATED, LARGEST, WHOLE,
        )  # fmt: skip
    else:
        _write_k(
            number - programs_q, K_ptr, matrix, Scales_ptr, Means_ptr, K8_ptr, k_b, k_h, k_n, H_k, N_k,
            D, GROUP, ROWS, SPAN, ROTATED, WHOLE,
        )  # fmt: skip


@triton.jit(do_not_specialize=["H_k", "N_k"])
def _write_columns(
    V_ptr, Scales_ptr, Means_ptr, V8_ptr, v_b, v_h, v_n, H_k, N_k, N,
    D: tl.constexpr, TILE: tl.constexpr, PERMUTED: tl.constexpr,
):  # fmt: skip
    """Write rows of V as columns, without the mean of each channel; zeros where there are no keys."""
    head, first = tl.program_id(0) // (N // TILE), tl.program_id(0) % (N // TILE) * TILE
    columns = tl.arange(0, TILE)
    keys = first + columns
    if PERMUTED:  # of 16 columns, 4q + 2h + e is key 8h + 2q + e
        keys = first + columns // 16 * 16 + columns // 2 % 2 * 8 + columns // 4 % 4 * 2 + columns % 2
    x = _rows(V_ptr, v_b, v_h, v_n, head, H_k, keys, N_k, D).to(tl.float32)
    mean = tl.load(Means_ptr + head * D + tl.arange(0, D))[None, :]
    x = tl.where(keys[:, None] < N_k, (x - mean) * (1.0 / tl.load(Scales_ptr + head)), 0.0)
    at = V8_ptr + (head.to(tl.int64) * D + tl.arange(0, D))[:, None] * N + first + columns[None, :]
    tl.store(at, tl.trans(x.to(V8_ptr.dtype.element_ty)))
