"""Write new keys and values into a cache, keys rotated on the way; `rotate` rotates the queries to match.

A cache is contiguous or in pages. The page and row of a token follow from lengths and a block table on the GPU, so
nothing waits for the GPU, and a step of decoding can be one CUDA graph for any lengths. A token is read once and
written once: rotation, the scale of fp8 and rounding happen in between, in registers and in fp32.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.cache.storage import LARGEST_E4M3, SMALLEST_SCALE
from flashlib.inputs import check_tensors
from flashlib.kernels import INTERPRETED
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.cache_layout import FP8, check_cache, check_table, check_tensor
from flashlib.kernels.launch.inputs import (
    DTYPES,
    check_device,
    check_no_gradient,
    check_readable,
    kernel_input,
    on_device_of,
)
from flashlib.kernels.launch.load_store import strides

LARGEST, SMALLEST = tl.constexpr(LARGEST_E4M3), tl.constexpr(SMALLEST_SCALE)
ROWS = 16  # for each program, at most
HEAD_DIMS = range(16, 257)
MARK = 0x7FA5A5A5  # a NaN that no kernel computes
CHOSEN = -1  # in place of the keys of a page: the cache is contiguous, and the table chooses its sequences


def append(
    K: torch.Tensor, V: torch.Tensor, K_cache: torch.Tensor, V_cache: torch.Tensor, lengths: torch.Tensor,
    table: torch.Tensor | None = None, *, rotary: tuple[torch.Tensor, torch.Tensor] | None = None,
    positions: torch.Tensor | None = None, k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None, interleaved: bool = False,
) -> None:  # fmt: skip
    """Write the last N_new keys and values of each sequence into its cache, in place; return None.

    K: (B, H_k, N_new, d); V: (B, H_k, N_new, d_v); float16, bfloat16 or float32, any strides, d and d_v from 16 to
    256. lengths: (B,), int32 or int64, the tokens of each sequence, the new ones included: row i of sequence b
    becomes its key c = lengths[b] - N_new + i.
    K_cache: (B, H_k, N, d), V_cache: (B, H_k, N, d_v); or in pages, (pages, H_k, page, d) and (pages, H_k, page,
    d_v), page a power of two, with table: (B, most), int32: key c of sequence b is row c % page of page
    table[b, c // page]. A contiguous cache of more sequences takes a table of one axis, (B,), int32: sequence b is
    its table[b], and no two are the same. Any strides with a contiguous last axis. A row that would come before
    key 0, beyond N or the table, or in a page that does not exist, is left out.
    rotary: cos and sin, (N_max, d_rot / 2), fp32, see `flashlib.lm.rotary.angles`: keys are rotated for positions
    lengths[b] - N_new + i, or positions[b, i], (B, N_new), int32 or int64. At a position of N_max or more they
    become NaN, since no angle is known; at a negative one they stay as they are. interleaved: whether a pair is
    two neighbouring columns, 2k and 2k + 1, rather than k and k + d_rot / 2.
    Caches have the dtype of K, or are torch.float8_e4m3fn (compute capability 8.9 or later) with k_scale and
    v_scale, fp32, the shapes of the caches without the last axis: x is stored as x / scale with scale =
    max |x| / 448 of a token and head, at least 2^-126, and 1 where all are 0. A NaN stays NaN, and the maximum
    ignores it.
    Raises TypeError or ValueError for anything else, before any work. The numbers in lengths, positions and a
    table of pages are not checked; those in a table of sequences are, on the CPU.
    Source: rotary embedding, Su and others, RoFormer (2021); pages: Kwon and others, vLLM (2023).
    """
    cos, sin = _pair(rotary)
    _check_interleaved(interleaved)
    given = K, V, K_cache, V_cache, k_scale, v_scale, lengths, table, positions, cos, sin
    key = PLANS.key(given, interleaved)
    plan = PLANS.get(key)
    if not plan:
        _check(*given)
    if table is not None and table.ndim == 1 and table.device.type == "cpu":
        pages, _, room, _ = K_cache.shape
        check_table(table, (lengths - K.shape[2]).clamp(min=0), lengths.clamp(max=room), room, pages)
    check_no_gradient(K=K, V=V, K_cache=K_cache, V_cache=V_cache)
    ready = _ready(*given)
    plan = plan or PLANS.keep(key, _plan(*ready, interleaved=interleaved))
    if plan.launch:
        with on_device_of(K):
            plan.launch(*(lengths if X is None else X for X in ready))
        _bring_back(ready[2], K_cache)
        _bring_back(ready[3], V_cache)


def rotate(
    Q: torch.Tensor, lengths: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor],
    positions: torch.Tensor | None = None, *, interleaved: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Return Q rotated as `append` rotates keys: row i of sequence b for position lengths[b] - N_q + i.

    Q: (B, H_q, N_q, d), the shape of the result too. lengths, rotary, positions, interleaved: as in `append`. Rows
    before position 0 belong to no token and stay as they are.
    Raises TypeError or ValueError for anything else, before any work.
    """
    cos, sin = _pair(rotary)
    _check_interleaved(interleaved)
    given = Q, lengths, positions, cos, sin
    key = PLANS_OF_Q.key(given, interleaved)
    plan = PLANS_OF_Q.get(key)
    if not plan:
        _check_rows("Q", Q)
        check_readable(Q=Q)
        if cos is None and sin is None:
            raise TypeError(
                "rotary is None; pass (cos, sin), e.g. flashlib.lm.rotary.angles(N_max, d, device=...)"
            )
        _check_positions("Q", Q, lengths, positions, cos, sin)
    check_no_gradient(Q=Q)
    q = kernel_input(Q)
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    ready = q, o, kernel_input(lengths), positions, kernel_input(cos), kernel_input(sin)
    plan = plan or PLANS_OF_Q.keep(key, _plan_of_q(*ready, interleaved))
    if plan.launch:
        with on_device_of(q):
            plan.launch(*(lengths if X is None else X for X in ready))
    return o if o.dtype == Q.dtype else o.to(Q.dtype)


class AppendPlan(NamedTuple):
    """The decisions that shapes, strides and dtypes determine. launch: None if there is nothing to write."""

    launch: planning.Launch | None


PLANS, PLANS_OF_Q = planning.Plans(), planning.Plans()


def _plan(K, V, K_cache, V_cache, k_scale, v_scale, lengths, table, positions, cos, sin, *, interleaved):
    (B, H, N_new, d), d_v = K.shape, V.shape[3]
    pages, _, page = K_cache.shape[:3]
    unit, of_rows = planning.in_units(K, V, K_cache, V_cache)
    of_scales = [stride for X in (k_scale, v_scale) for stride in (X.stride() if X is not None else (0, 0, 0))]
    paged = table is not None and table.ndim == 2
    t_b, capacity = (table.stride(0), table.shape[1] * page) if paged else (0, page)
    of_positions, turned = _turned(d, positions, cos, sin, interleaved)
    constants = turned | {"d": d, "d_v": d_v, "D_V": triton.next_power_of_2(d_v), "UNIT": unit}
    constants |= {"PAGE": 0 if table is None else page if paged else CHOSEN, "SCALED": k_scale is not None}
    sizes = *of_rows, *of_scales, t_b, *of_positions, H, N_new, capacity, pages
    return AppendPlan(_launch(_append, (B, H, N_new, max(d, d_v)), sizes, constants))


def _plan_of_q(Q, O, lengths, positions, cos, sin, interleaved):
    B, H, N_q, d = Q.shape
    unit, of_rows = planning.in_units(Q, O)
    of_positions, turned = _turned(d, positions, cos, sin, interleaved)
    return AppendPlan(
        _launch(_rotate, Q.shape, (*of_rows, *of_positions, H, N_q), turned | {"d": d, "UNIT": unit})
    )


def _turned(d, positions, cos, sin, interleaved):
    """Return a kernel's sizes for positions and angles, that is, strides and N_max, and its constants."""
    half = 0 if cos is None else cos.shape[1]
    of_angles = (0, 0, 0) if cos is None else (cos.stride(0), sin.stride(0), len(cos))
    constants = {"half": half, "HALF": triton.next_power_of_2(max(half, 1)), "GIVEN": positions is not None}
    constants["STEP"] = 2 if interleaved else 1
    rest = d - 2 * half
    constants["REST"] = triton.next_power_of_2(rest) if rest else 0
    return (*((0, 0) if positions is None else positions.stride()), *of_angles), constants


def _launch(kernel, shape, sizes, constants):
    """Return the Launch of a kernel for rows (B, H, N, d), None if there are none."""
    B, H, N, d = shape
    if not B * H * N:
        return None
    rows = min(ROWS, triton.next_power_of_2(N))
    options = {"num_warps": 4 if rows * d > 512 else 1}
    return planning.Launch(kernel, B * H * triton.cdiv(N, rows), sizes, constants | {"ROWS": rows}, options)


def _ready(K, V, K_cache, V_cache, k_scale, v_scale, lengths, table, positions, cos, sin):
    """Return these as the kernel takes them."""
    table, cos, sin = (X if X is None else kernel_input(X) for X in (table, cos, sin))
    caches = _stand_in(K_cache), _stand_in(V_cache)
    return (
        kernel_input(K),
        kernel_input(V),
        *caches,
        k_scale,
        v_scale,
        kernel_input(lengths),
        table,
        positions,
        cos,
        sin,
    )


def _stand_in(cache):
    """Return the tensor to write to: the cache, or one in float32 where the interpreter would round wrongly."""
    if not INTERPRETED or cache.dtype not in (torch.bfloat16, FP8):
        return cache
    return torch.full(cache.shape, MARK, dtype=torch.int32, device=cache.device).view(torch.float32)


def _bring_back(stand_in, cache):
    """Copy the elements that were written to the stand-in into the cache, and nothing else."""
    if stand_in is not cache:
        written = stand_in.view(torch.int32) != MARK
        bits = torch.int16 if cache.dtype == torch.bfloat16 else torch.uint8
        cache.view(bits)[written] = stand_in[written].to(cache.dtype).view(bits)


def _pair(rotary):
    """Return cos and sin, or (None, None)."""
    if rotary is None:
        return None, None
    if not isinstance(rotary, tuple | list) or len(rotary) != 2:
        kind = type(rotary).__name__
        raise TypeError(f"rotary is of type {kind}; pass (cos, sin), both (N_max, d_rot / 2), or None")
    return rotary


def _check_interleaved(interleaved):
    if not isinstance(interleaved, bool):
        raise TypeError(f"interleaved is {interleaved!r}; pass True where pairs are neighbours, else False")


def _check(K, V, K_cache, V_cache, k_scale, v_scale, lengths, table, positions, cos, sin):
    """Raise TypeError or ValueError unless the kernel takes these."""
    _check_rows("K", K)
    check_tensors(DTYPES, K=K, V=V)
    _check_rows("V", V)
    check_readable(K=K, V=V, K_cache=K_cache, V_cache=V_cache)
    if V.shape[:3] != K.shape[:3]:
        raise ValueError(
            f"K has shape {tuple(K.shape)} and V {tuple(V.shape)}; they must be equal but for the last axis"
        )
    _check_positions("K", K, lengths, positions, cos, sin)
    if positions is not None and cos is None:
        raise ValueError("positions is given and rotary is not; pass rotary=(cos, sin), or no positions")
    names = "K", "K_cache", "V_cache"
    check_cache(K, K_cache, V_cache, lengths, table, k_scale, v_scale, names=names, like=(K, V))
    written = {"K_cache": K_cache, "V_cache": V_cache, "k_scale": k_scale, "v_scale": v_scale}
    for name, X in written.items():
        if X is None:
            continue
        if X.ndim == 4 and X.stride(3) != 1 or X.is_neg() or 0 in X.stride() and X.numel():
            raise ValueError(
                f"{name} has strides {X.stride()}; it is written in place: pass a tensor with a contiguous "
                "last axis, which is not expanded, nor a view of a negation"
            )


def _check_rows(name, X):
    """Raise TypeError or ValueError unless X has a shape, (B, H, N, d), and a dtype that a kernel takes."""
    check_tensors(DTYPES, **{name: X})
    check_device(**{name: X})
    if X.ndim != 4:
        raise ValueError(f"{name} has shape {tuple(X.shape)}; expected 4 axes (B, H, N, d)")
    if X.shape[3] not in HEAD_DIMS:
        raise ValueError(f"{name} has d = {X.shape[3]}; the kernel takes {HEAD_DIMS[0]} to {HEAD_DIMS[-1]}")


def _check_positions(name, X, lengths, positions, cos, sin):
    """Raise TypeError or ValueError unless these are positions and angles for the rows of X."""
    (B, _, N, d), of = X.shape, {name: X}
    check_tensor("lengths", lengths, (B,), "(B,)", torch.int32, torch.int64, **of)
    if positions is not None:
        check_tensor("positions", positions, (B, N), "(B, N)", torch.int32, torch.int64, **of)
    if cos is None and sin is None:
        return
    check_tensor("cos", cos, (None, None), "(N_max, d_rot / 2)", torch.float32, **of)
    check_tensor("sin", sin, cos.shape, "the shape of cos,", torch.float32, **of)
    if not 1 <= cos.shape[1] <= d // 2:
        raise ValueError(
            f"cos and sin have {cos.shape[1]} columns and {name} d = {d}; pass d_rot / 2 of them, 1 to {d // 2}"
        )


OF_ALL = "p_b", "p_n", "cos_n", "sin_n", "N_max", "H", "N"


@triton.jit(
    do_not_specialize=[
        *(f"{X}_{axis}" for X in ("k", "v", "kc", "vc", "ks", "vs") for axis in "bhn"), "t_b", *OF_ALL,
        "capacity", "pages",
    ],
)  # fmt: skip
def _append(
    K_ptr, V_ptr, K_cache_ptr, V_cache_ptr, K_scale_ptr, V_scale_ptr,
    Lengths_ptr, Table_ptr, Positions_ptr, Cos_ptr, Sin_ptr,
    k_b, k_h, k_n, v_b, v_h, v_n, kc_b, kc_h, kc_n, vc_b, vc_h, vc_n,  # in UNITs
    ks_b, ks_h, ks_n, vs_b, vs_h, vs_n, t_b, p_b, p_n, cos_n, sin_n, N_max,
    H, N, capacity, pages,  # capacity: keys that a sequence has room for
    d: tl.constexpr, d_v: tl.constexpr, half: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr,
    D_V: tl.constexpr, PAGE: tl.constexpr, GIVEN: tl.constexpr, SCALED: tl.constexpr, UNIT: tl.constexpr,
    ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write ROWS new tokens of one head. PAGE: keys of a page, 0 for a contiguous cache, or CHOSEN."""
    b, h, offs, rows = _place(H, N, ROWS)
    c = tl.load(Lengths_ptr + b).to(tl.int64) - N + offs  # the keys that the tokens become
    inside = rows & (c >= 0) & (c < capacity)
    cos, sin = None, None
    if half > 0:
        at = _positions(Positions_ptr, p_b, p_n, c, b, offs, inside, GIVEN)
        cos, sin = _angles(Cos_ptr, Sin_ptr, cos_n, sin_n, at, inside, N_max, half, HALF)
    first, row = b + tl.zeros_like(c), c  # which (H_k, N, d) of the cache
    if PAGE < 0:
        first += tl.load(Table_ptr + b).to(tl.int64) - b
    elif PAGE > 0:
        first = tl.load(Table_ptr + b * t_b.to(tl.int64) + c // PAGE, mask=inside, other=0).to(tl.int64)
        row = c % PAGE
        inside &= (first >= 0) & (first < pages)

    _write(
        _rows(K_ptr, strides(k_b, k_h, k_n, UNIT), b, h, offs),
        _rows(K_cache_ptr, strides(kc_b, kc_h, kc_n, UNIT), first, h, row),
        _rows(K_scale_ptr, strides(ks_b, ks_h, ks_n, 1), first, h, row),
        inside, cos, sin, d, half, HALF, REST, SCALED, STEP,
    )  # fmt: skip
    _write(
        _rows(V_ptr, strides(v_b, v_h, v_n, UNIT), b, h, offs),
        _rows(V_cache_ptr, strides(vc_b, vc_h, vc_n, UNIT), first, h, row),
        _rows(V_scale_ptr, strides(vs_b, vs_h, vs_n, 1), first, h, row),
        inside, None, None, d_v, 0, 1, D_V, SCALED, STEP,
    )  # fmt: skip


@triton.jit(do_not_specialize=[*(f"{X}_{axis}" for X in "qo" for axis in "bhn"), *OF_ALL])
def _rotate(
    Q_ptr, O_ptr, Lengths_ptr, Positions_ptr, Cos_ptr, Sin_ptr,
    q_b, q_h, q_n, o_b, o_h, o_n, p_b, p_n, cos_n, sin_n, N_max, H, N,
    d: tl.constexpr, half: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr, GIVEN: tl.constexpr,
    UNIT: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write ROWS rows of Q, rotated, to O."""
    b, h, offs, rows = _place(H, N, ROWS)
    c = tl.load(Lengths_ptr + b).to(tl.int64) - N + offs
    at = _positions(Positions_ptr, p_b, p_n, c, b, offs, rows, GIVEN)
    cos, sin = _angles(Cos_ptr, Sin_ptr, cos_n, sin_n, at, rows, N_max, half, HALF)
    _write(
        _rows(Q_ptr, strides(q_b, q_h, q_n, UNIT), b, h, offs),
        _rows(O_ptr, strides(o_b, o_h, o_n, UNIT), b, h, offs),
        None, rows, cos, sin, d, half, HALF, REST, False, STEP,
    )  # fmt: skip


@triton.jit
def _place(H, N, ROWS: tl.constexpr):
    """Return batch, head and rows of this program, and which of the rows exist."""
    blocks = tl.cdiv(N, ROWS)
    i, head = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    offs = i * ROWS + tl.arange(0, ROWS)
    return (head // H).to(tl.int64), (head % H).to(tl.int64), offs, offs < N


@triton.jit
def _rows(X_ptr, strides, b, h, n):
    """Return pointers to rows n of head (b, h), (ROWS,)."""
    return X_ptr + b * strides[0] + h * strides[1] + n * strides[2]


@triton.jit
def _positions(Positions_ptr, p_b, p_n, c, b, offs, rows, GIVEN: tl.constexpr):
    """Return the positions of rows, int64: those passed by the caller, or c."""
    if GIVEN:
        c = tl.load(Positions_ptr + b * p_b.to(tl.int64) + offs * p_n.to(tl.int64), mask=rows, other=0).to(
            tl.int64
        )
    return c


@triton.jit
def _angles(Cos_ptr, Sin_ptr, cos_n, sin_n, at, rows, N_max, half: tl.constexpr, HALF: tl.constexpr):
    """Return cos and sin of positions `at`, (ROWS, HALF): no rotation before position 0, NaN past the last."""
    cols = tl.arange(0, HALF)[None, :]
    inside = (rows & (at >= 0) & (at < N_max))[:, None] & (cols < half)
    cos = tl.load(Cos_ptr + at[:, None] * cos_n.to(tl.int64) + cols, mask=inside, other=1.0)
    sin = tl.load(Sin_ptr + at[:, None] * sin_n.to(tl.int64) + cols, mask=inside, other=0.0)
    return tl.where((at < N_max)[:, None], cos, float("nan")), sin


@triton.jit
def _write(
    From, To, Scale, inside, cos, sin,
    d: tl.constexpr, half: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr, SCALED: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """Write rows of d numbers, the first 2 * half of them rotated. From, To, Scale: pointers to rows, (ROWS,).

    A row is three tiles: both numbers of each pair that is rotated, (ROWS, HALF), and the rest, (ROWS, REST).
    STEP: from one pair to the next, 2 where pairs are neighbours.
    """
    OTHER: tl.constexpr = half if STEP == 1 else 1  # from a number to its partner
    near, far = tl.arange(0, HALF)[None, :], 2 * half + tl.arange(0, max(REST, 1))[None, :]
    in_half, in_rest = inside[:, None] & (near < half), inside[:, None] & (far < d)
    From, To = From[:, None], To[:, None]
    if half > 0:
        x = tl.load(From + near * STEP, mask=in_half, other=0.0).to(tl.float32)
        y = tl.load(From + OTHER + near * STEP, mask=in_half, other=0.0).to(tl.float32)
        # fma fixes which product is rounded; otherwise the compiler chooses, and kernels differ in bits.
        x, y = tl.fma(x, cos, -y * sin), tl.fma(y, cos, x * sin)
    if REST > 0:
        z = tl.load(From + far, mask=in_rest, other=0.0).to(tl.float32)
    if SCALED:
        largest = tl.zeros_like(inside.to(tl.float32))
        if half > 0:
            largest = tl.maximum(_largest(x), _largest(y))
        if REST > 0:
            largest = tl.maximum(largest, _largest(z))
        scale = tl.where(largest > 0, tl.maximum(tl.div_rn(largest, LARGEST), SMALLEST), 1.0)
        tl.store(Scale, scale, mask=inside)
    dtype: tl.constexpr = To.dtype.element_ty
    if half > 0:
        if SCALED:
            x, y = tl.div_rn(x, scale[:, None]), tl.div_rn(y, scale[:, None])
        tl.store(To + near * STEP, x.to(dtype), mask=in_half)
        tl.store(To + OTHER + near * STEP, y.to(dtype), mask=in_half)
    if REST > 0:
        if SCALED:
            z = tl.div_rn(z, scale[:, None])
        tl.store(To + far, z.to(dtype), mask=in_rest)


@triton.jit
def _largest(tile):
    """Return the largest magnitude in each row, ignoring NaN."""
    return tl.max(tl.where(tile == tile, tl.abs(tile), 0.0), axis=1)
