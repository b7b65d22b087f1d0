"""How many programs a multiprocessor can hold at a time, given the resources that they share."""

from typing import NamedTuple

from flashlib.gpus import GPU, GPUS
from flashlib.kernels.compiler.makers import maker_of

PARTS = 4  # of a multiprocessor: each has a quarter of the registers, and its own warps


class Multiprocessor(NamedTuple):
    """What the programs on one multiprocessor share besides registers.

    Source of NVIDIA's: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (gpus,
    warps, programs: the most there can be at a time); cuda_occupancy.h of the CUDA toolkit (unit: bytes, shared
    memory is handed out in multiples of it).
    Of AMD's: LLVM, AMDGPUBaseInfo.cpp, getMaxWavesPerEU of gfx90a and later (8 in each part) and
    getMaxWorkGroupsPerCU; LLVM's "User Guide for AMDGPU Backend", GRANULATED_LDS_SIZE (unit).
    """

    gpus: tuple[str, ...]
    warps: int
    programs: int
    unit: int

    @property
    def gpu(self) -> GPU:
        return GPUS[self.gpus[0]]


MULTIPROCESSORS: dict[int | str, Multiprocessor] = {
    75: Multiprocessor(("T4",), warps=32, programs=16, unit=256),
    80: Multiprocessor(("A100",), warps=64, programs=32, unit=128),
    89: Multiprocessor(("RTX 4090",), warps=48, programs=24, unit=128),
    90: Multiprocessor(("H100", "H200"), warps=64, programs=32, unit=128),
    "gfx942": Multiprocessor(("MI300X",), warps=32, programs=32, unit=512),
    "gfx950": Multiprocessor(("MI355X",), warps=32, programs=32, unit=1280),
}


class Programs(NamedTuple):
    """How many programs a multiprocessor can hold at a time as far as each shared resource goes."""

    registers: int
    shared: int
    warps: int


def programs(registers: int, shared: int, num_warps: int, capability: int | str) -> Programs:
    """Return how many programs fit on one multiprocessor.

    registers: of a thread. shared: bytes of a program. A warp gets registers in multiples of the maker's granule,
    from one part of the multiprocessor. Each program also takes the shared memory that the system reserves.
    AMD's scalar registers are left out: they allow 7 warps in each part, of 8, or more.
    Source: see `makers`.
    """
    limits, maker = MULTIPROCESSORS[capability], maker_of(capability)
    gpu = limits.gpu
    of_warp = _up(registers * maker.lanes, maker.granule)
    warps = gpu.registers // 4 // PARTS // of_warp * PARTS
    taken = _up(shared + gpu.sram - gpu.block_sram, limits.unit)
    by_shared = gpu.sram // taken if taken else limits.programs
    return Programs(
        registers=warps // _up(num_warps, maker.together),
        shared=min(by_shared, limits.programs) if shared <= gpu.block_sram else 0,
        warps=min(limits.warps // num_warps, limits.programs),
    )


def _up(n, unit):
    return -(-n // unit) * unit
