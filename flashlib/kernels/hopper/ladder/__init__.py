"""Numbered, frozen versions of the Hopper kernel, one idea more in each; A Hopper kernel shows parts of rung 4.

     r1_alike        eight warps, all alike, copy, multiply and compute
     r2_producer     one warp brings the tiles; the readers of a slot signal when it is free
     r3_consumers    two groups of warps: while one computes its softmax, the other has the tensor cores
     r3_turns        the two in turns: each multiplies when it is told to
     r4_overlap      a group's next product runs under its softmax
     r5_registers    registers move from the producer, which needs few, to the others
     r6_persistent   a program for each multiprocessor, and causal rows with the most keys first
     7               no file: `kernels.hopper.forward`, which at d = 64 has a third group of warps

Each has `attention(Q, K, V, *, causal, scale)` for d = 64 and 128, and a kernel to read; `tiles` has their common
functions, and scores become P in the same way in all. Up to r4, where all threads have equally many registers, a
tile has 64 keys: with 128, the compiler spills registers, in r4 at d = 64 and in r2 already at d = 128.
"""

import math
from typing import TYPE_CHECKING

import torch
from triton import JITFunction

from flashlib.inputs import resolve_scale
from flashlib.kernels.hopper import launch as finished
from flashlib.kernels.launch import tile_sizes
from flashlib.kernels.launch.inputs import as_autocast, check_no_gradient, on_device_of
from flashlib.types import Attention

if TYPE_CHECKING:
    from flashlib.kernels.hopper.instrumented import MarkedLauncher

EQUAL = {64: (64, 8), 128: (64, 4)}  # by d: keys of a tile, for which registers suffice, and slots that fit
MOVED = {64: (128, 4), 128: (128, 2)}


def launch(
    kernel: "JITFunction | MarkedLauncher", Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool,
    scale: float | None, rows: int, consumers: int = 1, moved: bool = False, persistent: bool = False,
    turns: bool = True,
) -> Attention:  # fmt: skip
    """Check the inputs, run a rung's kernel, return O and lse.

    Shapes, dtypes and errors as in `kernels.hopper.forward.attention`, but d is 64 or 128.
    rows: for each of the `consumers`, which have a warp for 16 of them. moved: whether they get the producer's
    registers. persistent: whether there is a program for each multiprocessor, not for each row block. turns: for
    r3_turns.
    """
    Q, K, V = as_autocast(Q, K, V)
    finished.check(Q, K, V, causal, None)
    check_no_gradient(Q=Q, K=K, V=V)
    scale_log2e = resolve_scale(scale, Q.shape[-1]) * math.log2(math.e)
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    if d not in EQUAL:
        raise ValueError(f"d is {d}; the rungs take 64 and 128: call flashlib.kernels.hopper.forward.attention")
    O = torch.empty(Q.shape, dtype=Q.dtype, device=Q.device)
    lse = torch.empty(Q.shape[:3], dtype=torch.float32, device=Q.device)
    if not Q.numel() or not N_k:
        return Attention(O.zero_(), lse.fill_(-math.inf))
    B_C, stages = (MOVED if moved else EQUAL)[d]
    T_r = -(-N_q // (rows * consumers))
    given = {
        **dict(zip(("q_desc", "o_desc"), (finished.describe(X, rows) for X in (Q, O)), strict=True)),
        **dict(zip(("k_desc", "v_desc"), (finished.describe(X, B_C) for X in (K, V)), strict=True)),
        "lse_ptr": lse, "scale_log2e": scale_log2e, "scale_above": 2.0 ** math.ceil(math.log2(scale_log2e)),
        "H": H, "group": H // H_k, "N_q": N_q, "N_k": N_k, "T_r": T_r, "n_tiles": T_r * B * H,
        "section": finished.section(B * H, N_k * d * Q.element_size() * 2 // (H // H_k)),
        "B_R": rows * consumers, "CONSUMERS": consumers, "STAGES": stages, "CAUSAL": bool(causal),
        "TURNS": bool(turns),
    }  # fmt: skip
    grid = T_r * B * H
    if persistent:
        grid = min(grid, tile_sizes.room(Q.device).multiprocessors or grid)
    with on_device_of(Q):
        arguments = {name: given[name] for name in kernel.arg_names}  # each rung takes what it needs
        kernel[(grid,)](**arguments, num_warps=rows // 16)
    return Attention(O, lse)
