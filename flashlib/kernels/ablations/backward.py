"""The two passes of `backward`, with a switch that takes back each of their ideas, to measure its gain.

The pass for dK and dV has three:

    prepared      lse in base 2 and delta are padded, and inf where a row sees no key: no tile masks or scales them
    transposed    tiles are keys by queries: P^T and dS^T are the left factors of their products, in registers;
                  otherwise P and dS are transposed through shared memory
    early_dP      dP is computed before the product for dV; otherwise the loop waits once for both

and the pass for dQ has one:

    in_registers  Q_i and dO_i are kept in registers; otherwise every product reads them from shared memory

The pass for dQ is that of `backward`; the other gives the same bits if all switches are on. K and V have the heads
of Q, and d is one of `HEAD_DIMS`. `python -m flashlib.bench.backward_ladder` times them.
"""

import torch
import triton
import triton.language as tl

from flashlib.inputs import resolve_scale
from flashlib.kernels.backward import BackwardInputs, check_saved, described, dq_launch, prepare_launch, prepared
from flashlib.kernels.forward import LOG2_E
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import check_attention, kernel_input, on_device_of
from flashlib.kernels.launch.load_store import Strides, load, store


def prepare(
    Q: torch.Tensor, O: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return lse, lse2 and delta, the `rows` of both passes; shapes and errors as in `backward.backward`."""
    check_saved(Q, Q, O, dO, lse, None)  # of V only d matters
    problem = BackwardInputs.of(Q, Q, causal=False, descriptors=False)  # only the parts about Q are used
    o, do, shape = kernel_input(O), kernel_input(dO), (*Q.shape[:2], problem.N_padded)
    with on_device_of(O):
        return lse.contiguous(), *prepared(prepare_launch(o, do, problem), o, do, lse, None, shape)


def dkv(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, dO: torch.Tensor,
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor], *, prepared: bool = True, transposed: bool = True,
    early_dP: bool = True, **options: float | bool | None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return dK and dV.

    rows: from `prepare`. options: causal, scale, B_r, B_c, num_warps, num_stages and descriptors, as in
    `backward.backward`; errors as there.
    """
    tensors, scale, problem, config = _given(Q, K, V, dO, "dkv", **options)
    grads = tuple(torch.empty_like(X, memory_format=torch.contiguous_format) for X in tensors[1:3])
    strides = (Strides(*X.stride()[:3]) for X in (*tensors, *grads))
    cut = problem.causal or problem.N_k % config.B_C != 0
    constants = {"DIMS": problem.dims, "CAUSAL": problem.causal, "DESCRIPTORS": problem.descriptors, "CUT": cut}
    constants |= {"PREPARED": prepared, "TRANSPOSED": transposed, "EARLY_dP": early_dP}
    sizes = problem.H_k, problem.N_q, problem.N_k, problem.N_padded
    grid = triton.cdiv(problem.N_k, config.B_C) * grads[0].shape[0] * problem.H_k
    launch = planning.Launch(_dkv, grid, (*strides, *sizes), constants, config._asdict())
    if grads[0].numel():
        with on_device_of(grads[0]):
            launch(*described(launch, *tensors)[:4], *rows, *grads, scale)
    dk, dv = (X.to(Q.dtype) for X in grads)
    return dk, dv


def dq(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, dO: torch.Tensor,
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor], *, in_registers: bool = True,
    **options: float | bool | None,
) -> torch.Tensor:  # fmt: skip
    """Return dQ; arguments as in `dkv`."""
    tensors, scale, problem, config = _given(Q, K, V, dO, "dq", **options)
    grad = torch.empty_like(tensors[0], memory_format=torch.contiguous_format)
    q, k, v, do = tensors
    launch = dq_launch(q, k, v, do, problem, config, in_registers)
    if launch:
        with on_device_of(grad):
            launch(*described(launch, *tensors)[:4], *rows[1:], grad, scale)
    return grad.to(Q.dtype)


def _given(
    Q, K, V, dO, which, *, causal=False, scale=None,
    B_r=None, B_c=None, num_warps=None, num_stages=None, descriptors=None,
):  # fmt: skip
    """Return the tensors as a kernel takes them, the scale, the problem, and the Config of this pass."""
    check_attention(Q, K, V, causal)
    asked = planning.launch_options(B_r, B_c, num_warps, num_stages)
    tensors = tuple(map(kernel_input, (Q, K, V, dO)))
    descriptors = planning.resolve_descriptors(descriptors, *tensors)
    problem = BackwardInputs.of(*tensors[:2], bool(causal), descriptors)
    configs = tile_sizes.backward(problem.dims.widest, tensors[0].dtype, descriptors, Q.device, **asked)
    return tensors, resolve_scale(scale, Q.shape[-1]), problem, getattr(configs, which)


@triton.jit
def _dkv(
    Q, K, V, dO, Lse_ptr, Lse2_ptr, Delta_ptr, dK, dV, scale,
    strides_q, strides_k, strides_v, strides_do, strides_dk, strides_dv, H_k, N_q, N_k, N_padded,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr, CUT: tl.constexpr,
    PREPARED: tl.constexpr, TRANSPOSED: tl.constexpr, EARLY_dP: tl.constexpr,
):  # fmt: skip
    D: tl.constexpr = DIMS.D
    T_c = tl.cdiv(N_k, B_C)
    j = tl.program_id(0) % T_c
    head = tl.program_id(0) // T_c
    b, h = head // H_k, head % H_k
    k = load(K, strides_k, b, h, j * B_C, N_k, D, D, B_C, True, DESCRIPTORS)  # (B_C, D)
    v = load(V, strides_v, b, h, j * B_C, N_k, D, D, B_C, True, DESCRIPTORS)  # (B_C, D)
    dk = tl.zeros((B_C, D), tl.float32)
    dv = tl.zeros((B_C, D), tl.float32)
    offs_n = j * B_C + tl.arange(0, B_C)
    lse_ptr = (Lse2_ptr + head.to(tl.int64) * N_padded) if PREPARED else (Lse_ptr + head.to(tl.int64) * N_q)
    delta_ptr = Delta_ptr + head.to(tl.int64) * N_padded

    past = N_k - N_q  # keys before the first query's own
    see_some = tl.maximum(j * B_C - past, 0) // B_R * B_R if CAUSAL else 0  # the first row that may see a key
    see_all = tl.cdiv(tl.maximum((j + 1) * B_C - 1 - past, 0), B_R) * B_R if CAUSAL else 0
    if CUT:
        if (j + 1) * B_C > N_k:
            see_all = N_q  # no row sees what is past the end of K
    else:
        tl.assume(N_q > 0)
    LATE: tl.constexpr = D != 64 and CUT
    if CUT:
        dk, dv = _stream_rows(
            Q, dO, lse_ptr, delta_ptr, k, v, dk, dv, see_some, tl.minimum(see_all, N_q), offs_n,
            strides_q, strides_do, b, h, N_q, N_k, scale, D, B_R, True, CAUSAL, DESCRIPTORS,
            PREPARED, TRANSPOSED, EARLY_dP, LATE,
        )  # fmt: skip
    dk, dv = _stream_rows(
        Q, dO, lse_ptr, delta_ptr, k, v, dk, dv, see_all, N_q, offs_n,
        strides_q, strides_do, b, h, N_q, N_k, scale, D, B_R, False, CAUSAL, DESCRIPTORS,
        PREPARED, TRANSPOSED, EARLY_dP, LATE,
    )  # fmt: skip
    store(dK, dk * scale, strides_dk, b, h, j * B_C, N_k, D, D, B_C)
    store(dV, dv, strides_dv, b, h, j * B_C, N_k, D, D, B_C)


@triton.jit
def _stream_rows(
    Q, dO, lse_ptr, delta_ptr, k, v, dk, dv, start_q, end_q, offs_n,
    strides_q, strides_do, b, h, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr, DESCRIPTORS: tl.constexpr,
    PREPARED: tl.constexpr, TRANSPOSED: tl.constexpr, EARLY_dP: tl.constexpr, LATE: tl.constexpr,
):  # fmt: skip
    """Add the contribution of rows start_q to end_q of head (b, h) of Q and dO to dk and dv."""
    EACH_ROW: tl.constexpr = 0 if TRANSPOSED else 1  # the axis that a number of each row of Q is spread over
    for start in range(start_q, end_q, B_R):
        offs_m = start + tl.arange(0, B_R)
        q = load(Q, strides_q, b, h, start, N_q, D, D, B_R, True, DESCRIPTORS)  # (B_R, D)
        do = load(dO, strides_do, b, h, start, N_q, D, D, B_R, True, DESCRIPTORS)  # (B_R, D)
        if not LATE:
            lse2, delta = _rows(lse_ptr, delta_ptr, offs_m, N_q, PREPARED)  # (B_R,)
        S = _product(q, k, TRANSPOSED)  # (B_C, B_R) if transposed, else (B_R, B_C); so P, dP and dS
        if EARLY_dP:
            dP = _product(do, v, TRANSPOSED)
        if MASKED:
            keys = tl.expand_dims(offs_n, 1 - EACH_ROW)
            visible = keys < N_k
            if CAUSAL:
                visible &= keys <= tl.expand_dims(offs_m + N_k - N_q, EACH_ROW)
            S = tl.where(visible, S, -float("inf"))
        if LATE:
            lse2, delta = _rows(lse_ptr, delta_ptr, offs_m, N_q, PREPARED)
        P = tl.exp2(S * (scale * LOG2_E) - tl.expand_dims(lse2, EACH_ROW))
        weights = P.to(do.dtype)
        dv = tl.dot(weights if TRANSPOSED else weights.T, do, acc=dv, input_precision="ieee")
        if not EARLY_dP:
            dP = _product(do, v, TRANSPOSED)
        dS = (P * (dP - tl.expand_dims(delta, EACH_ROW))).to(q.dtype)
        dk = tl.dot(dS if TRANSPOSED else dS.T, q, acc=dk, input_precision="ieee")
    return dk, dv


@triton.jit
def _rows(lse_ptr, delta_ptr, offs_m, N_q, PREPARED: tl.constexpr):
    """Return lse in base 2 and delta of these rows."""
    if PREPARED:
        lse2, delta = tl.load(lse_ptr + offs_m), tl.load(delta_ptr + offs_m)
    else:
        lse = tl.load(lse_ptr + offs_m, mask=offs_m < N_q, other=float("inf"))
        lse2 = tl.where(lse == -float("inf"), float("inf"), lse * LOG2_E)
        delta = tl.load(delta_ptr + offs_m, mask=offs_m < N_q, other=0.0)
    return lse2, delta


@triton.jit
def _product(rows, keys, TRANSPOSED: tl.constexpr):
    """Return the product of each row of a tile with each key, keys by rows if transposed."""
    left, right = (keys, rows) if TRANSPOSED else (rows, keys)
    return tl.dot(left, right.T, input_precision="ieee")
