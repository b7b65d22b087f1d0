"""Numbered, frozen versions of the Hopper backward, one idea more in each, with what each is worth.

     r1_alike           eight warps, all alike, copy, multiply, and add dQ to HBM
     r2_producer        one warp brings the tiles; products of a step are begun together
     r3_two_consumers   two groups of warps with 64 keys each, which do not wait for each other
     r4_half_columns    the groups share dS, and each computes half the columns of dQ: half as much is added to HBM
     r5_in_order        the sums in HBM have the order of registers: one instruction adds four numbers, not two
     r6_reducer         two other warps add
     7                  no file: `kernels.hopper.backward`, in which the copy unit adds, and sums stay in L2

Each has `backward(Q, K, V, O, lse, dO, *, ...)` for d = 128, and a kernel to read. A program has 128 keys of a
head and streams 64 rows a step past them. `tiles` has the common functions, `finish` turns the sums into dQ. In
all rungs with a producer its registers move to the consumers, where dK and dV alone fill half of all registers.
"""

import math

import torch
from triton import JITFunction
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.inputs import resolve_scale
from flashlib.kernels import backward as portable
from flashlib.kernels.hopper import launch as finished
from flashlib.kernels.hopper import launch_backward
from flashlib.kernels.launch.inputs import check_no_gradient, on_device_of
from flashlib.types import Grads

D, B_R, KEYS = 128, 64, 128  # KEYS: of a program


def launch(
    kernel: JITFunction, finish: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor,
    lse: torch.Tensor, dO: torch.Tensor, *, dlse: torch.Tensor | None, causal: bool, scale: float | None,
    keys: int = 64,
) -> Grads:  # fmt: skip
    """Check the inputs, run a rung's kernel, turn its sums into dQ, return the gradients.

    Shapes, dtypes and errors as in `kernels.hopper.backward.backward`, but d is 128.
    keys: of a consumer, which has a warp for 16 of them.
    """
    launch_backward.check(Q, K, V, O, lse, dO, dlse, causal, None)
    check_no_gradient(Q=Q, K=K, V=V)
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    if d != D:
        raise ValueError(f"d is {d}; the rungs take {D}: call flashlib.kernels.hopper.backward.backward")
    scale = resolve_scale(scale, d)
    dQ, dK, dV = (torch.empty_like(X, memory_format=torch.contiguous_format) for X in (Q, K, V))
    if not Q.numel() or not N_k:
        return Grads(*(X.zero_() for X in (dQ, dK, dV)))
    O, dO, summed = launch_backward.of_rows(O, dO)
    T_r, T_c = -(-N_q // B_R), -(-N_k // KEYS)
    problem = portable.BackwardInputs.of(Q, K, bool(causal), False)
    with on_device_of(Q):
        prepare = portable.prepare_launch(O, summed, problem)
        lse2, delta = portable.prepared(prepare, O, summed, lse, dlse, (B, H, problem.N_padded))
        sums = torch.zeros(B * H * T_r * B_R * D, dtype=torch.float32, device=Q.device)
        given = {
            "q_desc": finished.describe(Q, B_R), "do_desc": finished.describe(dO, B_R),
            "k_desc": finished.describe(K, keys), "v_desc": finished.describe(V, keys),
            "dk_desc": finished.describe(dK, keys), "dv_desc": finished.describe(dV, keys),
            "lse_desc": _numbers(lse2), "delta_desc": _numbers(delta), "dq_ptr": sums,
            "scale_log2e": scale * math.log2(math.e), "scale": scale,
            "H_k": H_k, "group": H // H_k, "N_q": N_q, "N_k": N_k, "T_r": T_r, "T_c": T_c,
            "B_R": B_R, "CAUSAL": bool(causal),
        }  # fmt: skip
        kernel[(T_c * B * H_k,)](**given, num_warps=keys // 16)
        finish[(T_r * B * H,)](sums, dQ, scale, N_q, T_r)
    return Grads(dQ, dK, dV)


def _numbers(X):
    heads, N = X.shape[0] * X.shape[1], X.shape[2]
    return TensorDescriptor(X, [heads, N], [N, 1], [1, B_R], launch_backward.NUMBERS)
