"""What differs between makers of GPUs: their words, the size of a warp, and the listings of a kernel.

What the compiler knows a GPU by says whose it is: NVIDIA's compute capability, ten times the number, or the name
of AMD's architecture.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Maker:
    """The GPUs of one maker.

    kinds: the listings, from tiles to what the GPU runs. lanes: threads of a warp. max_registers: of a thread, 32
    bits each. granule: the registers of a warp are a multiple of it. together: the warps of a program that get
    registers are a multiple of it.
    registers, warp, shared, unit: the maker's names for registers, a warp, shared memory, a multiprocessor.
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
    """Return what the maker's compiler calls a GPU's architecture: "sm_90", "gfx942"."""
    return capability if isinstance(capability, str) else f"sm_{capability}"


def maker_of(capability: int | str) -> Maker:
    """Return whose a GPU is, by what the compiler knows it by."""
    return AMD if isinstance(capability, str) else NVIDIA
