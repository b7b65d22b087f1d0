"""The differences between makers of GPUs: their terms, the size of a warp, and the listings of a kernel.

The compiler's name of a GPU tells its maker: ten times the compute capability for NVIDIA's, the name of the
architecture for AMD's.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Maker:
    """The GPUs of one maker.

    kinds: the listings, from tiles to the GPU's code. lanes: threads of a warp. max_registers: of a thread, 32
    bits each. granule: the registers of a warp are a multiple of it. together: registers are allocated to a
    multiple of this many warps of a program.
    registers, warp, shared, unit: the maker's terms for registers, a warp, shared memory, a multiprocessor.
    """

    name: str
    kinds: tuple[str, ...]
    lanes: int
    max_registers: int
    granule: int
    together: int
    registers: str
    warp: str
    warps: str
    shared: str
    unit: str


NVIDIA = Maker(  # cuda_occupancy.h of the CUDA toolkit
    "NVIDIA", ("ttgir", "ptx", "sass"), lanes=32, max_registers=255, granule=256, together=4,
    registers="registers", warp="warp", warps="warps", shared="shared memory", unit="multiprocessor",
)  # fmt: skip

# LLVM, llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp, of gfx90a and later: 512 registers of each lane, VGPRs and
# AGPRs together (getTotalNumVGPRs), in multiples of 8 (getVGPRAllocGranule).
AMD = Maker(
    "AMD", ("ttgir", "amdgcn"), lanes=64, max_registers=512, granule=8 * 64, together=1,
    registers="VGPRs", warp="wavefront", warps="wavefronts", shared="LDS", unit="compute unit",
)  # fmt: skip


def target(capability: int | str) -> str:
    """Return the name that the maker's compiler uses for a GPU's architecture: "sm_90", "gfx942"."""
    return capability if isinstance(capability, str) else f"sm_{capability}"


def maker_of(capability: int | str) -> Maker:
    """Return the Maker of a GPU from the compiler's name of it."""
    return AMD if isinstance(capability, str) else NVIDIA
