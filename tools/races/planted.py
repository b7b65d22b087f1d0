"""Two kernels with a race each, which a sanitizer must find before its silence about others means anything."""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS = 64


@triton.jit
def _by_warps(X_ptr, n: tl.constexpr):
    x = tl.load(X_ptr + tl.arange(0, n))
    swapped = tl.inline_asm_elementwise(  # all threads write to one place and read it, with no barrier
        "{ .shared .align 4 .b32 place; st.shared.b32 [place], $1; ld.shared.b32 $0, [place]; }",
        "=r,r", [x], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip
    tl.store(X_ptr + tl.arange(0, n), swapped)


def by_warps() -> None:
    """Warps write to the same place in shared memory, without a barrier: racecheck must see it."""
    _by_warps[(1,)](torch.arange(128, dtype=torch.int32, device="cuda"), 128)


@gluon.jit
def _before_the_copy(desc, out_ptr, N: gl.constexpr):
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [gl.num_warps(), 1], [1, 0])
    slot = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    fence_async_shared()
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, [0, 0], full, slot)
    X = slot.load(LAYOUT)  # should come after the next line
    mbarrier.wait(full, 0)
    at = gl.arange(0, N, gl.SliceLayout(1, LAYOUT))[:, None] * N + gl.arange(0, N, gl.SliceLayout(0, LAYOUT))[None]
    gl.store(out_ptr + at, X)


def before_the_copy() -> None:
    """A tile is read before the copy unit has written it: ConSan must see it."""
    X = torch.ones(ROWS, ROWS, dtype=torch.bfloat16, device="cuda")
    layout = gl.NVMMASharedLayout.get_default_for([ROWS, ROWS], gl.bfloat16)
    _before_the_copy[(1,)](
        TensorDescriptor(X, [ROWS, ROWS], [ROWS, 1], [ROWS, ROWS], layout), torch.empty_like(X), ROWS
    )
