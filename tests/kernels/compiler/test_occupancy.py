"""How many programs fit on a multiprocessor follows from the rule by hand, for every GPU."""

from flashlib.gpus import GPUS
from flashlib.kernels.compiler import occupancy


def test_programs_by_hand():
    """An A100: at 168 registers 12 warps, 164 KB of which each program loses one, 64 warps, 32 programs."""
    assert occupancy.programs(168, 0, 4, 80) == (3, 32, 16)
    assert occupancy.programs(255, 40 * 1024, 8, 80) == (1, 4, 8)
    assert occupancy.programs(32, 163 * 1024, 1, 80) == (16, 1, 32)
    assert occupancy.programs(32, 163 * 1024 + 1, 1, 80).shared == 0
    assert occupancy.programs(128, 64 * 1024, 4, 75) == (4, 1, 8)
    assert occupancy.programs(128, 0, 4, 90) == (4, 32, 16)


def test_every_gpu_is_of_one_generation():
    named = [name for generation in occupancy.MULTIPROCESSORS.values() for name in generation.gpus]
    assert sorted(named) == sorted(GPUS)
    for generation in occupancy.MULTIPROCESSORS.values():
        assert len({(GPUS[name].sram, GPUS[name].block_sram) for name in generation.gpus}) == 1
