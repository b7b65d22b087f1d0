"""FlashAttention-2, backward pass, in Triton: dQ, dK and dV, with P recomputed tile by tile from lse.

There are two ways. By default each gradient has a pass of its own, which sums it in registers and writes it once:
`_dkv` holds K_j and V_j and streams Q and dO past them, `_dq` holds Q_i and dO_i and streams K and V. Nothing
depends on the order in which programs run, at the price of seven matrix products a tile. Or `_dkv` does it all: it
multiplies each tile of dS by K_j too and adds that to dQ in HBM. These are five products, and sums in whatever
order programs come.

`_dkv` computes its tiles transposed, keys by queries, as then P^T and dS^T stand on the left of their products and
need not leave the registers. Scores are in base 2, as in `forward`.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.kernels import (
    INTERPRETED,
    MAX_BLOCK,
    check_attention,
    check_deterministic,
    check_no_gradient,
    check_readable,
    launchable,
    launching,
    on_device_of,
    tuned,
)
from flashlib.kernels.forward import HEAD_DIMS, LOG2_E
from flashlib.kernels.launching import Launch
from flashlib.kernels.tiles import add, load, store, strides
from flashlib.state import Grads, check_gradient_inputs, check_tensors, resolve_scale

ROWS = 32  # of a program that prepares


def backward(
    Q, K, V, O, lse, dO, *, dlse=None, causal=False, scale=None, deterministic=True,
    B_r=None, B_c=None, num_warps=None, num_stages=None, descriptors=None,
) -> Grads:  # fmt: skip
    """Return the gradients of sum(dO * O) + sum(dlse * lse) with respect to Q, K and V.

    Q, K, V, causal, scale, descriptors: as in `forward.attention`, which returned O and lse for them; by default
    small problems are loaded through pointers; in the interpreter, one pass takes no descriptors.
    dO: the shape, dtype and device of Q and O. dlse: (B, H_q, N_q), fp32, as lse; None for zeros.
    dQ, dK, dV: the shape and dtype of Q, K and V; a head of K and V sums over the query heads that read it.
    Scores may be up to 1e5 in size. Beyond, an fp32 lse cannot hold log(l) beside m: the gradients stay finite,
    and grow wrong with the size of the scores.
    deterministic: two passes, the same bits every time; else one pass that adds to dQ in HBM, in fp32, which
    torch.use_deterministic_algorithms forbids: RuntimeError, or a warning if it only warns.
    B_r, B_c, num_warps, num_stages: of each pass, as in `forward.attention`. Default: `tuned.backward`.
    Raises TypeError or ValueError for anything else, before any work, and ValueError where tiles that were asked
    for do not fit the GPU.
    Source: FlashAttention-2, Algorithm 2; the default replaces its additions to dQ by a pass for dQ.
    """
    check_deterministic(deterministic)
    asked = B_r, B_c, num_warps, num_stages, descriptors
    plan = plan_of(Q, K, V, O, lse, dO, dlse, causal, deterministic, *asked)
    check_no_gradient(Q=Q, K=K, V=V)
    check_readable(O=O, lse=lse, dO=dO, dlse=dlse)
    return run(Q, K, V, O, lse, dO, dlse, resolve_scale(scale, Q.shape[-1]), plan)


class Plan(NamedTuple):
    """A call of `backward`, except its tensors and its scale. A launch is None where it has nothing to write.

    dq: None too where the pass for dK and dV adds to dQ. rows: the shape of lse2 and delta.
    """

    prepare: Launch | None
    dkv: Launch | None
    dq: Launch | None
    rows: tuple
    deterministic: bool


PLANS = launching.Plans()


def plan_of(Q, K, V, O, lse, dO, dlse, causal, deterministic, *asked) -> Plan:
    """Return the plan for these tensors; raise what `backward` raises, except about gradients."""
    usual = (causal is True or causal is False) and all(option is None for option in asked)
    key = PLANS.key((Q, K, V, O, lse, dO, dlse), causal, deterministic) if usual else None
    if plan := PLANS.get(key):
        return plan
    check_attention(Q, K, V, causal, head_dims=HEAD_DIMS, grouped=True, differentiable=True)
    check_saved(Q, O, dO, lse, dlse)
    check_readable(Q=Q, K=K, V=V, O=O, lse=lse, dO=dO, dlse=dlse)
    return PLANS.keep(key, _plan(Q, K, V, O, dO, bool(causal), deterministic, *asked))


def check_saved(Q, O, dO, lse, dlse):
    """Raise TypeError or ValueError unless these fit Q."""
    rows = {"lse": lse} if dlse is None else {"lse": lse, "dlse": dlse}
    check_tensors((Q.dtype,), Q=Q, O=O, dO=dO)
    check_tensors((torch.float32,), **rows)
    check_gradient_inputs(Q, O, lse, dO, torch.float32)
    if dlse is not None and dlse.shape != lse.shape:
        raise ValueError(f"dlse has shape {tuple(dlse.shape)} and lse {tuple(lse.shape)}; they must be equal")
    if lse.device != Q.device:
        raise ValueError(f"lse is on {lse.device} and Q on {Q.device}; move them to one device")


def _plan(
    Q, K, V, O, dO, causal, deterministic, B_r=None, B_c=None, num_warps=None, num_stages=None, descriptors=None
):
    asked = launching.launch_options(B_r, B_c, num_warps, num_stages)
    q, k, v, o, do = map(launchable, (Q, K, V, O, dO))
    pay = q.numel() * k.shape[2] >= tuned.SMALL
    descriptors = launching.resolve_descriptors(descriptors, q, k, v, do, pay=pay)
    if INTERPRETED and descriptors and not deterministic:
        raise ValueError(
            "descriptors=True with deterministic=False: Triton's interpreter does not support adding through a "
            "descriptor; leave descriptors out"
        )
    problem = Problem.of(q, k, causal, descriptors)
    configs = tuned.backward(problem.D, q.dtype, descriptors, q.device, **asked)
    return Plan(
        prepare_launch(o, do, problem),
        _dkv_launch(q, k, v, do, problem, configs.dkv if deterministic else configs.fused),
        dq_launch(q, k, v, do, problem, configs.dq) if deterministic else None,
        (*q.shape[:2], problem.N_padded),
        deterministic,
    )


class Problem(NamedTuple):
    """What the kernels are told of a problem; N_padded: N_q rounded up to a multiple of every B_r."""

    H_k: int
    group: int
    N_q: int
    N_k: int
    N_padded: int
    d: int
    D: int
    causal: bool
    descriptors: bool

    @classmethod
    def of(cls, q, k, causal, descriptors):
        (H, N_q, d), (H_k, N_k) = q.shape[1:], k.shape[1:3]
        N_padded, D = -(-N_q // MAX_BLOCK) * MAX_BLOCK, max(16, triton.next_power_of_2(d))
        return cls(H_k, H // max(H_k, 1), N_q, N_k, N_padded, d, D, causal, descriptors)

    @property
    def constants(self) -> dict:
        return {"d": self.d, "D": self.D, "CAUSAL": self.causal, "DESCRIPTORS": self.descriptors}

    @property
    def sizes(self) -> tuple:
        return self.H_k, self.group, self.N_q, self.N_k, self.N_padded


def prepare_launch(o, do, problem) -> Launch | None:
    """Return what writes lse2 and delta when called with o, do, lse, dlse, lse2, delta."""
    heads = o.shape[0] * o.shape[1]
    if not heads * problem.N_padded:
        return None
    unit, strides = launching.in_units(o, do)
    sizes = *strides, o.shape[1], problem.N_q, problem.N_padded
    constants = {"d": problem.d, "D": problem.D, "ROWS": ROWS, "UNIT": unit}
    return Launch(_prepare, problem.N_padded // ROWS * heads, sizes, constants, {})


def _dkv_launch(q, k, v, do, problem, config) -> Launch | None:
    """Return what writes dK and dV, and adds to dQ if it is not None, what dQ is without scale."""
    if not k.numel():
        return None
    contiguous = (torch.empty(X.shape, device="meta") for X in (k, v, q))
    unit, strides = launching.in_units(q, k, v, do, *contiguous)
    whole = problem.N_q > 0 and problem.N_k % config.B_C == 0
    short = problem.N_k <= tuned.SHORT * config.B_C  # not worth a kernel of its own
    cut = problem.causal or short or not whole
    grid = triton.cdiv(problem.N_k, config.B_C) * k.shape[0] * k.shape[1]
    constants = problem.constants | {"CUT": cut, "UNIT": unit}
    return Launch(_dkv, grid, (*strides, *problem.sizes), constants, config._asdict())


def dq_launch(q, k, v, do, problem, config, in_registers=True) -> Launch | None:
    """Return what writes dQ. in_registers: whether Q_i and dO_i are held there where they fit, up to d = 128."""
    if not q.numel():
        return None
    unit, strides = launching.in_units(q, k, v, do, torch.empty(q.shape, device="meta"))
    grid = triton.cdiv(problem.N_q, config.B_R) * q.shape[0] * q.shape[1]
    constants = problem.constants | {"IN_REGISTERS": in_registers and problem.D <= 128, "UNIT": unit}
    return Launch(_dq, grid, (*strides, *problem.sizes), constants, config._asdict())


def described(launch, q, k, v, do, dq=None) -> tuple:
    """Return the tensors as a pass takes them: as they are, or their descriptors."""
    if not launch.constants["DESCRIPTORS"]:
        return q, k, v, do, dq
    rows, keys, D = launch.config["B_R"], launch.config["B_C"], launch.constants["D"]
    heights = (q, rows), (k, keys), (v, keys), (do, rows), (dq, rows)
    return tuple(X if X is None else launching.describe(X, n, D) for X, n in heights)


def run(Q, K, V, O, lse, dO, dlse, scale, plan) -> Grads:
    """Do what `backward` does, by its plan; nothing is checked."""
    q, k, v, o, do = launchable(Q), launchable(K), launchable(V), launchable(O), launchable(dO)
    contiguous = {"memory_format": torch.contiguous_format}
    dq, dk, dv = (torch.empty_like(X, **contiguous) for X in (q, k, v))
    with on_device_of(q):
        rows = prepared(plan.prepare, o, do, lse, dlse, plan.rows)
        sums = None if plan.deterministic else torch.zeros_like(q, dtype=torch.float32, **contiguous)
        if plan.dkv:
            plan.dkv(*described(plan.dkv, q, k, v, do, sums), *rows, dk, dv, scale)
        if plan.dq:
            plan.dq(*described(plan.dq, q, k, v, do)[:4], *rows, dq, scale)
        if sums is not None:
            torch.mul(sums, scale, out=dq)
    given = ((dq, Q), (dk, K), (dv, V))
    return Grads(*(X if X.dtype == Y.dtype else X.to(Y.dtype) for X, Y in given))


def prepared(launch, o, do, lse, dlse, shape) -> tuple:
    """Return lse2 and delta."""
    lse2, delta = (o.new_empty(shape, dtype=torch.float32) for _ in range(2))
    if launch:
        launch(o, do, lse.contiguous(), None if dlse is None else dlse.contiguous(), lse2, delta)
    return lse2, delta


def _with_strides(*tensors, also):
    """Return a jit for a kernel that takes strides of these: one compiled kernel serves all sizes."""
    names = [f"{X}_{axis}" for X in tensors for axis in "bhn"]
    return triton.jit(do_not_specialize=[*names, *also], do_not_specialize_on_alignment=["group"])


@_with_strides("o", "do", also=("H", "N_q", "N_padded"))
def _prepare(
    O, dO, Lse_ptr, dLse_ptr, Lse2_ptr, Delta_ptr, o_b, o_h, o_n, do_b, do_h, do_n, H, N_q, N_padded,
    d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Write what the passes need of each row, in the form in which they need it; rows past N_q weigh nothing.

    lse2: lse in base 2, inf for a row that sees no key, so that 2^(S - lse2) is 0. delta: rowsum(dO * O), less the
    gradient of lse, since both come with P: dS = P * (dP - rowsum(dO * O) + dlse).
    """
    T = N_padded // ROWS
    i, head = tl.program_id(0) % T, tl.program_id(0) // T
    offs_m = i * ROWS + tl.arange(0, ROWS)
    saved, padded = head.to(tl.int64) * N_q + offs_m, head.to(tl.int64) * N_padded + offs_m
    lse = tl.load(Lse_ptr + saved, mask=offs_m < N_q, other=-float("inf"))
    lse2 = tl.where(lse == -float("inf"), float("inf"), lse * LOG2_E)
    # What fp32 has rounded away of a huge lse could make P huge; with this it is at most 2^4.
    lse2 += tl.maximum(tl.abs(lse2) * 2.0**-20 - 4.0, 0.0)
    tl.store(Lse2_ptr + padded, lse2)
    strides_o, strides_do = strides(o_b, o_h, o_n, UNIT), strides(do_b, do_h, do_n, UNIT)
    o = load(O, strides_o, head // H, head % H, i * ROWS, N_q, d, D, ROWS, True, False).to(tl.float32)
    do = load(dO, strides_do, head // H, head % H, i * ROWS, N_q, d, D, ROWS, True, False).to(tl.float32)
    delta = tl.sum(o * do, axis=1)
    if dLse_ptr is not None:
        delta -= tl.load(dLse_ptr + saved, mask=offs_m < N_q, other=0.0)
    tl.store(Delta_ptr + padded, delta)


@_with_strides("q", "k", "v", "do", "dk", "dv", "dq", also=("H_k", "N_q", "N_k"))
def _dkv(
    Q, K, V, dO, dQ, Lse2_ptr, Delta_ptr, dK, dV, scale,  # dQ: sums in fp32, or None
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, do_b, do_h, do_n,
    dk_b, dk_h, dk_n, dv_b, dv_h, dv_n, dq_b, dq_h, dq_n,
    H_k, group, N_q, N_k, N_padded,
    d: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr, CUT: tl.constexpr,  # CUT: whether any tile is, by the mask or by the end of K
    UNIT: tl.constexpr,
):  # fmt: skip
    strides_q, strides_k, strides_v = (
        strides(q_b, q_h, q_n, UNIT),
        strides(k_b, k_h, k_n, UNIT),
        strides(v_b, v_h, v_n, UNIT),
    )
    strides_do, strides_dq = strides(do_b, do_h, do_n, UNIT), strides(dq_b, dq_h, dq_n, UNIT)
    T_c = tl.cdiv(N_k, B_C)
    j = tl.program_id(0) % T_c  # under a causal mask the first ones are the longest
    b, h_k = tl.program_id(0) // T_c // H_k, tl.program_id(0) // T_c % H_k
    k = load(K, strides_k, b, h_k, j * B_C, N_k, d, D, B_C, True, DESCRIPTORS)  # (B_C, D)
    v = load(V, strides_v, b, h_k, j * B_C, N_k, d, D, B_C, True, DESCRIPTORS)  # (B_C, D)
    dk = tl.zeros((B_C, D), tl.float32)
    dv = tl.zeros((B_C, D), tl.float32)
    offs_n = j * B_C + tl.arange(0, B_C)

    past = N_k - N_q  # keys before the first query's own
    see_some = tl.maximum(j * B_C - past, 0) // B_R * B_R if CAUSAL else 0  # the first row that may see a key
    see_all = tl.cdiv(tl.maximum((j + 1) * B_C - 1 - past, 0), B_R) * B_R if CAUSAL else 0
    if CUT:
        if (j + 1) * B_C > N_k:
            see_all = N_q  # no row sees what is past the end of K
    else:
        tl.assume(N_q > 0)  # else there is a path around the loop, and ptxas makes each product in it wait
    LATE: tl.constexpr = D != 64 and (CUT or D > 128)
    for g in range(group):
        h = h_k * group + g
        rows = (b.to(tl.int64) * H_k * group + h) * N_padded
        if CUT:
            dk, dv = _stream_rows(
                Q, dO, dQ, Lse2_ptr + rows, Delta_ptr + rows, k, v, dk, dv, see_some, tl.minimum(see_all, N_q),
                offs_n, strides_q, strides_do, strides_dq, b, h, N_q, N_k, scale, d, D, B_R, True, CAUSAL,
                DESCRIPTORS, LATE,
            )  # fmt: skip
        dk, dv = _stream_rows(
            Q, dO, dQ, Lse2_ptr + rows, Delta_ptr + rows, k, v, dk, dv, see_all, N_q, offs_n,
            strides_q, strides_do, strides_dq, b, h, N_q, N_k, scale, d, D, B_R, False, CAUSAL, DESCRIPTORS, LATE,
        )  # fmt: skip
    store(dK, dk * scale, strides(dk_b, dk_h, dk_n, UNIT), b, h_k, j * B_C, N_k, d, D, B_C)
    store(dV, dv, strides(dv_b, dv_h, dv_n, UNIT), b, h_k, j * B_C, N_k, d, D, B_C)


@triton.jit
def _stream_rows(
    Q, dO, dQ, Lse2_ptr, Delta_ptr, k, v, dk, dv, start_q, end_q, offs_n,
    strides_q, strides_do, strides_dq, b, h, N_q, N_k, scale,
    d: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr, LATE: tl.constexpr,
):  # fmt: skip
    """Add to dk and dv what rows start_q to end_q of head (b, h) of Q and dO contribute.

    LATE: lse2 and delta are loaded where they are needed, as no registers are free to hold them earlier.
    At d = 64 there are enough.
    """
    for start in range(start_q, end_q, B_R):
        offs_m = start + tl.arange(0, B_R)
        q = load(Q, strides_q, b, h, start, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
        do = load(dO, strides_do, b, h, start, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
        if not LATE:
            lse2, delta = tl.load(Lse2_ptr + offs_m), tl.load(Delta_ptr + offs_m)  # (B_R,)
        S_T = tl.dot(k, q.T, input_precision="ieee")  # (B_C, B_R)
        dP_T = tl.dot(v, do.T, input_precision="ieee")  # made after dv, the loop would wait for both at once
        if MASKED:
            visible = (offs_n < N_k)[:, None]
            if CAUSAL:
                visible &= offs_n[:, None] <= (offs_m + N_k - N_q)[None, :]
            S_T = tl.where(visible, S_T, -float("inf"))
        if LATE:
            lse2, delta = tl.load(Lse2_ptr + offs_m), tl.load(Delta_ptr + offs_m)
        P_T = tl.exp2(S_T * (scale * LOG2_E) - lse2[None, :])
        dv = tl.dot(P_T.to(do.dtype), do, acc=dv, input_precision="ieee")
        dS_T = (P_T * (dP_T - delta[None, :])).to(q.dtype)
        dk = tl.dot(dS_T, q, acc=dk, input_precision="ieee")
        if dQ is not None:
            dq = tl.dot(dS_T.T, k, input_precision="ieee")  # (B_R, D), without scale
            add(dQ, dq, strides_dq, b, h, start, N_q, d, D, B_R, DESCRIPTORS)
    return dk, dv


@_with_strides("q", "k", "v", "do", "dq", also=("H_k", "N_q", "N_k"))
def _dq(
    Q, K, V, dO, Lse2_ptr, Delta_ptr, dQ, scale,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, do_b, do_h, do_n, dq_b, dq_h, dq_n,
    H_k, group, N_q, N_k, N_padded,
    d: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr, IN_REGISTERS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    strides_q, strides_do = strides(q_b, q_h, q_n, UNIT), strides(do_b, do_h, do_n, UNIT)
    strides_k, strides_v = strides(k_b, k_h, k_n, UNIT), strides(v_b, v_h, v_n, UNIT)
    T_r = tl.cdiv(N_q, B_R)
    i = tl.program_id(0) % T_r
    if CAUSAL:
        i = T_r - 1 - i  # the longest rows first, as in `forward`
    head = tl.program_id(0) // T_r
    b, h = head // (H_k * group), head % (H_k * group)
    offs_m = i * B_R + tl.arange(0, B_R)
    q = load(Q, strides_q, b, h, i * B_R, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
    do = load(dO, strides_do, b, h, i * B_R, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
    if IN_REGISTERS:
        # Triton leaves a loaded left side in shared memory; each product reads it there. A sum is in registers.
        q += 0.0
        do += 0.0
    rows = head.to(tl.int64) * N_padded + offs_m
    lse2, delta = tl.load(Lse2_ptr + rows), tl.load(Delta_ptr + rows)  # (B_R,)
    dq = tl.zeros((B_R, D), tl.float32)

    past = N_k - N_q  # keys before the first query's own
    seen_by_all = tl.minimum(i * B_R + past + 1, N_k) if CAUSAL else N_k
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k
    full = tl.maximum(seen_by_all, 0) // B_C * B_C
    dq = _stream_keys(
        q, do, K, V, lse2, delta, dq, 0, full, offs_m + past,
        strides_k, strides_v, b, h // group, N_k, scale, d, D, B_C, False, CAUSAL, DESCRIPTORS,
    )  # fmt: skip
    dq = _stream_keys(
        q, do, K, V, lse2, delta, dq, full, seen_by_any, offs_m + past,
        strides_k, strides_v, b, h // group, N_k, scale, d, D, B_C, True, CAUSAL, DESCRIPTORS,
    )  # fmt: skip
    store(dQ, dq * scale, strides(dq_b, dq_h, dq_n, UNIT), b, h, i * B_R, N_q, d, D, B_R)


@triton.jit
def _stream_keys(
    q, do, K, V, lse2, delta, dq, start_k, end_k, last_visible,
    strides_k, strides_v, b, h_k, N_k, scale,
    d: tl.constexpr, D: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Add to dq what keys start_k to end_k contribute; row r sees keys up to last_visible[r]."""
    for start in range(start_k, end_k, B_C):
        k = load(K, strides_k, b, h_k, start, N_k, d, D, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        v = load(V, strides_v, b, h_k, start, N_k, d, D, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C)
        dP = tl.dot(do, v.T, input_precision="ieee")
        if MASKED:
            offs_n = start + tl.arange(0, B_C)
            visible = (offs_n < N_k)[None, :]
            if CAUSAL:
                visible &= offs_n[None, :] <= last_visible[:, None]
            S = tl.where(visible, S, -float("inf"))
        P = tl.exp2(S * (scale * LOG2_E) - lse2[:, None])
        dS = P * (dP - delta[:, None])
        dq = tl.dot(dS.to(k.dtype), k, acc=dq, input_precision="ieee")
    return dq
