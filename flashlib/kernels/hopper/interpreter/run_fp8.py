"""Runs the Hopper kernel in eight bits on a CPU, its own code, as `run` does the forward's."""

import math
import random

import torch

from flashlib.inputs import check_counts
from flashlib.kernels.hopper import fp8 as kernel
from flashlib.kernels.hopper.interpreter import gluon
from flashlib.kernels.hopper.interpreter.run import NAMES, functions, play
from flashlib.kernels.quantise import Quantised
from flashlib.types import Attention

ROWS = 64  # of one consumer


def run(
    small: Quantised, causal: bool, scale: float, *, consumers: int = 2, stages: int = 2, B_c: int = 128,
    two_level: bool = True, turns: bool = True, programs: int | None = None, section: int = 1, seed: int = 0,
) -> tuple[Attention, list[dict[str, list]]]:  # fmt: skip
    """Return O and lse, and the commands that each role of each program gave.

    small: of `quantised`, with permuted keys. Options as `launch_fp8.Tiles`; programs: as many as there are row
    blocks if None. Sums are exact: the tensor cores' 13 bits are not modelled here. Raises Fault for what a kernel
    must never do.
    """
    check_counts(at_least=2, stages=stages)
    Q, K, V = small[:3]
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    O, lse = torch.full(Q.shape, math.nan, dtype=torch.bfloat16), torch.full((B, H, N_q), math.nan)
    T_r = -(-N_q // (ROWS * consumers))
    n_tiles, numbers, said = B * H * T_r, random.Random(seed), []
    given: dict = {name: gluon.Descriptor(name, X, n) for name, X, n in (
        ("q_desc", Q, ROWS), ("k_desc", K, B_c), ("o_desc", O, ROWS),
    )}  # fmt: skip
    pointers = ("lse_ptr", lse), *((f"{name}_ptr", getattr(small, name)) for name in Quantised._fields[3:])
    given |= {name: gluon.Pointer(X) for name, X in pointers} | {
        "v_desc": gluon.Descriptor("v_desc", V, d, columns=B_c), "scale_log2e": scale * math.log2(math.e),
        "H": H, "group": H // H_k, "N_q": N_q, "N_k": N_k, "T_r": T_r, "section": section, "n_tiles": n_tiles,
        "B_R": ROWS * consumers, "CONSUMERS": consumers, "STAGES": stages, "CAUSAL": causal,
        "TWO_LEVEL": two_level, "TURNS": turns,
    }  # fmt: skip
    programs = n_tiles if programs is None else programs
    for number in range(programs):
        gl = gluon.Gluon(number, programs, numbers, NAMES)
        play(gl, functions(gl, kernel)["_attention"], {name: given[name] for name in kernel._attention.arg_names})
        said.append(gl.said)
    return Attention(O, lse), said
