"""Rung 5: registers move between roles.

A program starts with equally many for each thread, and warps are allocated in groups of four: with twelve warps
there are 168, of which the producer needs 24. The counts below make the roles exchange them (`setmaxnreg` in PTX):
the producer keeps 24, a consumer gets 240. So consumers can hold O and both S and P of 128 keys, where rung 4 has
room for 64: half as many turns, each with twice the work between its barriers.

Roles and barriers are as in rung 4, whose code is used.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared

from flashlib.kernels.hopper.ladder import launch, r4_overlap, tiles
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> Attention:
    """Return Attention(O, lse); see `ladder.launch`."""
    return launch(_registers, Q, K, V, causal=causal, scale=scale, rows=64, consumers=2, moved=True)


@gluon.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r"])
def _registers(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, scale_above, H, group, N_q, N_k, T_r,
    B_R: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    q_slots, q_full = tiles.slots(q_desc, 2), tiles.barriers(2, 1)
    k_slots, k_full = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1)
    v_slots, v_full = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1)
    o_slots = tiles.slots(o_desc, 2)
    k_empty, v_empty = tiles.barriers(STAGES, 2), tiles.barriers(STAGES, 2)
    turn = tiles.barriers(2, 1)
    fence_async_shared()  # the copy unit sees the barriers
    rings = (q_slots, q_full), (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    scales = scale_log2e, scale_above
    sizes = H, group, N_q, N_k, T_r
    # Warps and registers of all roles but the first, which gets what is left.
    gl.warp_specialize([
        (r4_overlap.consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, 0)),
        (r4_overlap.consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, 1)),
        (r4_overlap.producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip
