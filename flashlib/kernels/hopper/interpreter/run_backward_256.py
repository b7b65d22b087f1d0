"""Runs the passes of the Hopper backward at d = 256 on a CPU, as `run_backward` does the kernel for smaller d."""

import math
import random
from typing import Any

import torch

from flashlib.kernels.hopper import dkv_256, dq_256, launch_256
from flashlib.kernels.hopper.interpreter import gluon
from flashlib.kernels.hopper.interpreter.prepared import numbers
from flashlib.kernels.hopper.interpreter.run import functions, play
from flashlib.types import Grads

TWICE = ("q_full", "do_full", "p_full", "q_empty", "do_empty"), ("rows_full", "k_full"), ("k_empty",)
OF_TWO = [[f"{name}[{s}]" for name in names for s in range(2)] for names in TWICE]
NAMES = {  # as the kernels allocate
    "_dkv": ("kv", "q", "do", "rows", "p", ["k_full", "v_full", *OF_TWO[0]]),
    "_dq": ("rows", "keys", [*OF_TWO[1], "v_full", *OF_TWO[2], "v_empty"]),
}


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, scale: float, seed: int,
    delta: torch.Tensor | None = None, out_dtype: torch.dtype | None = None,
) -> tuple[Grads, list[dict[str, list]], list[dict[str, list]]]:  # fmt: skip
    """Return the gradients, and the commands that each role of each program gave, in both passes."""
    (B, H, N_q, _), (H_k, N_k), tile = Q.shape, K.shape[1:3], launch_256.TILE
    T_r, T_c, blocks = -(-N_q // tile), -(-N_k // tile), -(-N_q // (2 * tile))
    lse2, delta = numbers(O, lse, dO, dlse, blocks * 2 * tile, delta)
    dQ, dK, dV = (torch.full(X.shape, math.nan, dtype=out_dtype or X.dtype) for X in (Q, K, V))
    read = ("q", Q), ("k", K), ("v", V), ("do", dO), ("lse", lse2), ("delta", delta)
    given: dict[str, Any] = {f"{name}_desc": gluon.Descriptor(f"{name}_desc", X, tile) for name, X in read}
    wide = out_dtype == torch.float32
    given |= {f"{name}_to": gluon.Pointer(X) if wide else gluon.Descriptor(f"{name}_desc", X, tile)
              for name, X in (("dq", dQ), ("dk", dK), ("dv", dV))}  # fmt: skip
    given |= {
        "lse_ptr": gluon.Pointer(lse2), "delta_ptr": gluon.Pointer(delta),
        "scale_log2e": scale * math.log2(math.e), "scale": scale, "H": H, "H_k": H_k, "group": H // H_k,
        "N_q": N_q, "N_k": N_k, "N_padded": lse2.shape[1], "CAUSAL": causal, "WIDE": wide,
    }  # fmt: skip
    chance = random.Random(seed)
    of_keys = _play(dkv_256, "_dkv", {**given, "T_r": T_r, "T_c": T_c}, B * H_k * T_c, chance)
    of_rows = _play(dq_256, "_dq", {**given, "T_r": blocks}, B * H * blocks, chance)
    return Grads(dQ, dK, dV), of_keys, of_rows


def _play(module, name, given, programs, chance):
    """Run the programs of a pass one after the other; return what their roles said."""
    said = []
    for number in range(programs):
        gl = gluon.Gluon(number, programs, chance, NAMES[name])
        play(gl, functions(gl, module)[name], {one: given[one] for one in vars(module)[name].arg_names})
        said.append(gl.said)
    return said
