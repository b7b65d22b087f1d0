"""How many programs fit on a multiprocessor, worked out by hand, for every GPU."""

import pytest

from flashlib.gpus import GPUS
from flashlib.kernels.compiler import occupancy
from flashlib.kernels.compiler.makers import maker_of


def test_programs_by_hand():
    """An A100: 12 warps with 168 registers, 164 KB of which each program loses one, 64 warps, 32 programs."""
    assert occupancy.programs(168, 0, 4, 80) == (3, 32, 16)
    assert occupancy.programs(255, 40 * 1024, 8, 80) == (1, 4, 8)
    assert occupancy.programs(32, 163 * 1024, 1, 80) == (16, 1, 32)
    assert occupancy.programs(32, 163 * 1024 + 1, 1, 80).shared == 0
    assert [occupancy.programs(32, n * 1024, 1, 80).shared for n in (81, 82)] == [2, 1], "82 + 1 go in once"


@pytest.mark.parametrize("capability", occupancy.MULTIPROCESSORS)
def test_programs_fit_in_shared_memory_and_one_more_would_not(capability):
    limits = occupancy.MULTIPROCESSORS[capability]
    kept = limits.gpu.sram - limits.gpu.block_sram  # by the system, per program
    for shared in range(0, limits.gpu.block_sram, 999):
        n = occupancy.programs(32, shared, 1, capability).shared
        assert n * (shared + kept) <= limits.gpu.sram
        assert n == limits.programs or (n + 1) * (shared + kept + limits.unit) > limits.gpu.sram


def test_programs_of_generations_by_hand():
    assert occupancy.programs(128, 64 * 1024, 4, 75) == (4, 1, 8)
    assert occupancy.programs(128, 0, 4, 90) == (4, 32, 16)


# VGPRs and AGPRs of kernels compiled for an MI300X: wavefronts that fit on a SIMD, as LLVM prints below the code.
SAID_BY_LLVM = {16: 8, 61: 8, 68: 7, 89: 5, 96: 5, 101: 4, 127: 4, 133: 3, 168: 3, 172: 2, 239: 2, 264: 1, 388: 1}


@pytest.mark.parametrize("capability", ["gfx942", "gfx950"])
def test_the_wavefronts_that_registers_allow_are_those_of_llvm(capability):
    for registers, wavefronts in SAID_BY_LLVM.items():
        for num_warps in (1, 2, 4, 8):
            room = occupancy.programs(registers, 0, num_warps, capability)
            assert min(room.registers, room.warps) == 4 * wavefronts // num_warps


def test_programs_of_amd_by_hand():
    """64 KB of LDS in units of 512 bytes, 160 KB in units of 1280; no program loses any to the system."""
    assert occupancy.programs(128, 16 * 1024, 4, "gfx942") == (4, 4, 8)
    assert occupancy.programs(128, 16 * 1024 + 1, 4, "gfx942").shared == 3
    assert occupancy.programs(128, 64 * 1024, 4, "gfx942").shared == 1
    assert occupancy.programs(128, 64 * 1024 + 1, 4, "gfx942").shared == 0
    assert occupancy.programs(128, 32 * 1024, 8, "gfx950") == (2, 4, 4)
    assert occupancy.programs(128, 160 * 1024, 8, "gfx950").shared == 1


def test_every_gpu_has_exactly_one_generation():
    named = [name for generation in occupancy.MULTIPROCESSORS.values() for name in generation.gpus]
    assert sorted(named) == sorted(GPUS)
    for capability, generation in occupancy.MULTIPROCESSORS.items():
        assert {GPUS[name].maker for name in generation.gpus} == {maker_of(capability).name}
        assert len({(GPUS[name].sram, GPUS[name].block_sram) for name in generation.gpus}) == 1
