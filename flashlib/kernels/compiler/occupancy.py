"""How many programs a multiprocessor can hold at a time, by what they share."""

from typing import NamedTuple

from flashlib.gpus import GPU, GPUS


class Multiprocessor(NamedTuple):
    """What the programs on one multiprocessor share, beside 64K registers, by compute capability.

    Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (gpus, warps,
    programs: the most there can be at a time); cuda_occupancy.h of the CUDA toolkit (unit: bytes, shared memory is
    handed out in multiples of it).
    """

    gpus: tuple[str, ...]
    warps: int
    programs: int
    unit: int

    @property
    def gpu(self) -> GPU:
        return GPUS[self.gpus[0]]


MULTIPROCESSORS = {
    75: Multiprocessor(("T4",), warps=32, programs=16, unit=256),
    80: Multiprocessor(("A100",), warps=64, programs=32, unit=128),
    89: Multiprocessor(("RTX 4090",), warps=48, programs=24, unit=128),
    90: Multiprocessor(("H100", "H200"), warps=64, programs=32, unit=128),
}
REGISTERS = 64 * 1024  # in a multiprocessor, 32 bits each
MAX_REGISTERS = 255  # for each thread


class Programs(NamedTuple):
    """How many programs a multiprocessor can hold at a time, by each of what they share."""

    registers: int
    shared: int
    warps: int


def programs(registers: int, shared: int, num_warps: int, capability: int) -> Programs:
    """Return how many programs fit on one multiprocessor.

    registers: of a thread; shared: bytes of a program. A warp gets registers in multiples of 256, from one of the
    four parts of the multiprocessor, and each program also takes the shared memory that the system keeps.
    Source: cuda_occupancy.h of the CUDA toolkit.
    """
    limits = MULTIPROCESSORS[capability]
    gpu = limits.gpu
    of_warp = _up(registers * 32, 256)
    warps = REGISTERS // 4 // of_warp * 4
    taken = _up(shared + gpu.sram - gpu.block_sram, limits.unit)
    by_shared = gpu.sram // taken if taken else limits.programs
    return Programs(
        registers=warps // _up(num_warps, 4),
        shared=min(by_shared, limits.programs) if shared <= gpu.block_sram else 0,
        warps=min(limits.warps // num_warps, limits.programs),
    )


def _up(n, unit):
    return -(-n // unit) * unit
