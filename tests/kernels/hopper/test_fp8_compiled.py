"""What the compiler makes of the Hopper kernel in eight bits: no spills in its loop, maxima under products."""

import re

import pytest

from flashlib.gpus import GPUS
from flashlib.kernels.compiler import compiled, listings
from flashlib.kernels.hopper import launch_fp8

SIZES = [(d, causal) for d in (128, 64, 256) for causal in (False, True)]
SPILLS = {  # bytes of a thread, stored and loaded once per block, outside the loop
    **{("hopper_fp8", 64, False): 28, ("hopper_fp8", 256, True): 20},
    **{("hopper_int8", 64, False): 60, ("hopper_int8", 256, True): 16, ("hopper_int8", 256, False): 8},
}
KERNELS = ["hopper_fp8", "hopper_int8"]


def of(kernel, d, causal):
    return compiled.report(kernel=kernel, d=d, causal=causal)


@pytest.mark.compiles(each="kernel")
@pytest.mark.parametrize("d, causal", SIZES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_its_loop_spills_nothing_and_its_roles_share_the_registers(kernel, d, causal):
    made = of(kernel, d, causal)
    assert not made.notes and not made.counts("sass", loop=True)["spill"]
    assert made.spilled <= SPILLS.get((kernel, d, causal), 0)
    assert made.shared <= GPUS["H200"].block_sram
    tiles, consumers = launch_fp8.TILES[d, causal], made.B_r // 64
    assert (made.B_c, made.num_stages, consumers) == tiles[:3] and made.num_warps == 4 * (consumers + 1)
    assert sorted(role.name for role in made.roles) == ["consumer"] * consumers + ["producer"]
    assert all(role.used <= role.given for role in made.roles)
    assert sum(4 * 32 * role.given for role in made.roles) <= GPUS["H200"].registers // 4


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal", SIZES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_products_are_in_eight_bits_and_P_moves_nowhere(kernel, d, causal):
    made = of(kernel, d, causal)
    loop = made.loop("sass")
    assert not re.search(r"\bHGMMA|\bPRMT|\bSHFL\.IDX|\bST[SM]|\bI2F", loop), "P or S takes other instructions"
    of_scores, of_values = (len(re.findall(rf"\b{name}GMMA", loop)) for name in ("I", "Q"))
    steps_of_d, steps_of_keys = d // 32, made.B_c // 32
    expected = (steps_of_d, steps_of_keys) if kernel == "hopper_int8" else (0, steps_of_d + steps_of_keys)
    assert (of_scores, of_values) == expected


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal", SIZES)
def test_two_levels_cost_no_instruction(d, causal):
    """O = O alpha + P V takes a multiply-add per number of O, where one level takes a multiplication."""
    made = of("hopper_fp8", d, causal)
    each = 64 * d // 128  # numbers of O in a thread
    loop = made.loop("sass")
    exponents, products = 64 * 128 // 128, len(re.findall(r"\bFMUL", loop))
    assert (made.counts("sass", loop=True)["fma"] - exponents >= each) == launch_fp8.TILES[d, causal].TWO_LEVEL
    assert (products >= each) != launch_fp8.TILES[d, causal].TWO_LEVEL


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal", [(128, False), (64, True), (128, True)])
def test_maxima_are_found_under_the_product_before(d, causal):
    """With two consumers: both products begin, one wait leaves P V running, the other comes after all maxima."""
    seen = re.findall(r"QGMMA|DEPBAR\.LE gsb0, 0x\d|FMNMX", of("hopper_fp8", d, causal).loop("sass"))
    first, last = (seen.index(f"DEPBAR.LE gsb0, 0x{left}") for left in (1, 0))
    assert first < last and seen[first + 1 : last].count("FMNMX") >= 64 and "QGMMA" not in seen[first:]


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal", SIZES)
def test_one_turn_waits_and_arrives_as_often_as_the_protocol_says(d, causal):
    """Waits for K, V and, with turns, the turn; K, V and Q are released, and the turn passed on."""
    turn = of("hopper_fp8", d, causal).counts("ptx", loop=True)
    turns = launch_fp8.TILES[d, causal].TURNS
    assert (turn["mbarrier wait"], turn["mbarrier arrive"]) == (2 + turns, 3 + turns)
    assert listings.counts("ptx", of("hopper_fp8", d, causal).ptx)["setmaxnreg"]
