"""Parts of a group: the heads of Q that read the same keys, a few for each program of Hopper's backward pass.

A program that streams the rows of all its heads past 128 keys takes as long as there are heads. With many, and a
causal mask, the last of them run while most multiprocessors are idle; and the sums of dQ of a whole group are too
large for the L2 cache. So a group is cut into parts of a few heads. Each part has its own dK and dV in fp32, and
the sums of the parts, always added in the same order, are those of the group.
"""

import triton
from triton import language as tl

from flashlib.kernels.launch import planning

HEADS = {64: 4, 128: 2}  # of Q in a part, at most, by d: the fastest of 1, 2, 4 and 8, tried on an H200
BLOCK = 2048


def parts_of(group: int, d: int) -> int:
    """Return the number of parts of a group of this many heads: equal ones, of at most HEADS[d]."""
    return next(parts for parts in range(-(-group // HEADS[d]), group + 1) if group % parts == 0)


def add_launch(heads: int, parts: int, n: int) -> planning.Launch:
    """Return the launch that adds dK and dV of the parts of a group, n numbers for each of these heads of K."""
    blocks = triton.cdiv(n, BLOCK)
    return planning.Launch(_add_parts, heads * blocks, (parts, n, blocks), {"BLOCK": BLOCK}, {"num_warps": 4})


@triton.jit(do_not_specialize=["parts", "blocks"])
def _add_parts(dk_parts, dv_parts, dk, dv, parts, n, blocks, BLOCK: tl.constexpr):
    # dk_parts, dv_parts: (heads, parts, n), fp32. dk, dv: (heads, n).
    head = (tl.program_id(0) // blocks).to(tl.int64)
    at = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    dk_sum = tl.zeros([BLOCK], tl.float32)
    dv_sum = tl.zeros([BLOCK], tl.float32)
    for part in range(parts):
        start = (head * parts + part) * n
        dk_sum += tl.load(dk_parts + start + at, mask=inside, other=0.0)
        dv_sum += tl.load(dv_parts + start + at, mask=inside, other=0.0)
    tl.store(dk + head * n + at, dk_sum.to(dk.dtype.element_ty), mask=inside)
    tl.store(dv + head * n + at, dv_sum.to(dv.dtype.element_ty), mask=inside)
