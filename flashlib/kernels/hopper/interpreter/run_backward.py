"""Runs the Hopper backward's own code on a CPU, as `run` does the forward's."""

import math
import random
from typing import Any

import torch

from flashlib.inputs import check_causal, check_shapes, check_tensors, resolve_scale
from flashlib.kernels.backward import check_saved
from flashlib.kernels.hopper import backward as kernel
from flashlib.kernels.hopper import launch, launch_backward
from flashlib.kernels.hopper import sums as sums_module
from flashlib.kernels.hopper.interpreter import gluon, run_backward_256
from flashlib.kernels.hopper.interpreter.prepared import numbers
from flashlib.kernels.hopper.interpreter.run import functions, play
from flashlib.kernels.launch.inputs import check_no_gradient, check_readable, resolve_out_dtype
from flashlib.pipeline import backward_protocol as protocol
from flashlib.types import Grads

NAMES = ("kv", "qo", "rows", "ds", "dq", "landing", protocol.BARRIERS)  # as the kernel allocates
TURNS = 1, 2  # as few buffers of sums as can be, so that they are used again


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    *, dlse: torch.Tensor | None = None, delta: torch.Tensor | None = None, causal: bool = False,
    scale: float | None = None, out_dtype: torch.dtype | None = None, seed: int = 0,
) -> Grads:  # fmt: skip
    """Return the gradients by the kernel's own code, each program under one random schedule.

    Arguments and gradients as `hopper.backward.backward` takes and returns them, in the computer's memory.
    Raises TypeError or ValueError for anything else, and Fault for what a kernel must never do.
    """
    check_tensors(tuple(launch.DTYPES), Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)", grouped=True)
    check_saved(Q, V, O, dO, lse, dlse, delta)
    check_no_gradient(Q=Q, K=K, V=V)
    check_readable(Q=Q, K=K, V=V, O=O, lse=lse, dO=dO, dlse=dlse, delta=delta)
    check_causal(causal)
    if Q.shape[-1] not in launch_backward.HEAD_DIMS or not Q.numel() or not K.numel():
        raise ValueError(
            f"Q is {tuple(Q.shape)} and K {tuple(K.shape)}; d is one of {launch_backward.HEAD_DIMS}, "
            "and no size is 0"
        )
    given = Q, K, V, O, lse, dO, dlse, causal, resolve_scale(scale, Q.shape[-1]), seed
    parts = delta, resolve_out_dtype(out_dtype, Q.dtype)
    if Q.shape[-1] not in launch_backward.ROWS:
        return run_backward_256.run(*given, *parts)[0]
    return run(*given, TURNS, *parts)[0]


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, scale: float, seed: int, turns: tuple[int, int],
    delta: torch.Tensor | None = None, out_dtype: torch.dtype | None = None,
) -> tuple[Grads, list[dict[str, list]]]:  # fmt: skip
    """Return what `backward` returns, and the commands that each role of each program gave.

    turns: lag and ring of `sums`, in units.
    """
    units = K.shape[0] * K.shape[1]
    given = shared(Q, K, V, O, lse, dO, dlse, causal, scale, delta=delta, out_dtype=out_dtype)
    (lag, ring), tiles, T_c = turns, given["group"] * given["T_r"], given["T_c"]
    sums = torch.zeros(min(ring, units) * tiles * 2 * sums_module.HALF.value)
    counts = torch.zeros(2 * units, dtype=torch.int32)
    dQ, wide = torch.full(Q.shape, math.nan, dtype=out_dtype or Q.dtype), out_dtype == torch.float32
    given |= {
        "sums_desc": gluon.Descriptor("sums_desc", sums.view(-1, 32), sums_module.LINES.value, lines=True),
        "sums_ptr": gluon.Pointer(sums), "dq_ptr": gluon.Pointer(dQ), "counts_ptr": gluon.Pointer(counts),
        "lag": lag, "ring": ring, "first": max(units - lag, 0), "D": Q.shape[3],
        "WIDE": wide, **{f"{X}_to": given[f"{X}_ptr" if wide else f"{X}_desc"] for X in ("dk", "dv")},
    }  # fmt: skip
    numbers, said = random.Random(seed), []
    for number in range(units * T_c):
        gl = gluon.Gluon(number, units * T_c, numbers, NAMES)
        _play(gl, kernel, "_backward", given)
        said.append(gl.said)
    for number in range(2 * min(lag, units) * tiles):
        gl = gluon.Gluon(number, 2 * min(lag, units) * tiles, numbers, ("landing", "landed"))
        _play(gl, sums_module, "finish", given)
    return Grads(dQ, given["dk_desc"].X, given["dv_desc"].X), said


def shared(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, scale: float, keys: int = launch_backward.KEYS,
    delta: torch.Tensor | None = None, out_dtype: torch.dtype | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return arguments of a kernel by name, with dK and dV poisoned; those of sums of dQ are missing.

    keys: of one consumer.
    """
    (H, N_q, d), (H_k, N_k) = Q.shape[1:], K.shape[1:3]
    B_R = launch_backward.ROWS[d]
    T_r, T_c = -(-N_q // B_R), -(-N_k // (2 * launch_backward.KEYS))
    lse2, delta = numbers(O, lse, dO, dlse, T_r * B_R, delta)
    dK, dV = (torch.full(X.shape, math.nan, dtype=out_dtype or X.dtype) for X in (K, V))
    described = (
        ("q_desc", Q, B_R), ("k_desc", K, keys), ("v_desc", V, keys), ("do_desc", dO, B_R),
        ("lse_desc", lse2, B_R), ("delta_desc", delta, B_R), ("dk_desc", dK, keys), ("dv_desc", dV, keys),
    )  # fmt: skip
    return {name: gluon.Descriptor(name, X, n) for name, X, n in described} | {
        "dk_ptr": gluon.Pointer(dK), "dv_ptr": gluon.Pointer(dV),
        "scale_log2e": scale * math.log2(math.e), "scale": scale, "H_k": H_k, "group": H // H_k, "N_q": N_q,
        "N_k": N_k, "T_r": T_r, "T_c": T_c, "B_R": B_R, "CAUSAL": causal,
    }  # fmt: skip


def _play(gl, module, name, given):
    play(gl, functions(gl, module)[name], {one: given[one] for one in vars(module)[name].arg_names})
