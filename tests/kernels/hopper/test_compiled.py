"""What the compiler makes of the Hopper kernel: no spills, wgmma and TMA, roles with the registers they need."""

import json
import os
import re
import subprocess
import sys

import pytest

from flashlib.gpus import GPUS
from flashlib.kernels.compiler import compiled, listings
from flashlib.kernels.hopper import launch

VARIANTS = [(d, causal, "bfloat16") for d in (64, 128, 256) for causal in (False, True)]
VARIANTS += [(64, True, "float16"), (128, False, "float16")]  # a different opcode suffix in SASS


def of(d, causal, dtype="bfloat16"):
    return compiled.report(kernel="hopper_forward", d=d, causal=causal, dtype=dtype)


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal, dtype", VARIANTS)
def test_it_spills_nothing_and_its_roles_share_the_registers(d, causal, dtype):
    made = of(d, causal, dtype)
    counted = made.counts("sass")
    assert made.spilled == counted["spill"] == 0 and not made.notes
    assert made.shared <= GPUS["H200"].block_sram
    assert counted["wgmma"] and counted["TMA"] and not counted["mma.sync"]
    tiles, consumers = launch.TILES[d], made.B_r // 64
    assert (made.B_c, made.num_stages, consumers) == tiles and made.num_warps == 4 * (consumers + 1)
    assert sorted(role.name for role in made.roles) == ["consumer"] * consumers + ["producer"]
    assert all(role.used <= role.given for role in made.roles)
    assert sum(4 * 32 * role.given for role in made.roles) <= GPUS["H200"].registers // 4
    # The first consumer gets the registers that the others leave.
    assert sorted(role.given for role in made.roles) == ([24, 160, 160, 168] if consumers == 3 else [24, 240, 240])


@pytest.mark.compiles
@pytest.mark.parametrize("causal", [False, True])
def test_few_rows_of_64_numbers_are_shared_by_two_consumers(causal):
    made = compiled.report(kernel="hopper_forward", d=64, causal=causal, shape=(2, 2, 2, launch.SHORT))
    assert (made.B_r, made.num_warps) == (128, 12) and made.spilled == 0 and not made.notes


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal", [(64, False), (128, True)])
def test_the_softmax_runs_under_the_product_before_it(d, causal):
    """In the loop: S and P V begin, one wait leaves P V running, the other comes after all exponentials."""
    loop = of(d, causal).loop("sass")
    seen = re.findall(r"HGMMA\.64x\d+x16|DEPBAR\.LE gsb0, 0x\d|MUFU\.EX2|TRYWAIT", loop)
    first, last = (seen.index(f"DEPBAR.LE gsb0, 0x{left}") for left in (1, 0))
    assert not {"MUFU.EX2"} & set(seen[last:]), "the wait for P V comes before the softmax is done"
    assert (
        seen[first + 1 : last].count("MUFU.EX2") == 128 * 64 // 128 + 2
    )  # of its 128 keys, and alpha of two rows
    assert not [what for what in seen[first:last] if "HGMMA" in what]
    assert [what for what in seen[:first] if "HGMMA" in what]
    assert "TRYWAIT" in seen[first:last], "a wait for a barrier keeps the last wait where it is"


def test_nothing_stops_the_warps_between_exponentials():
    loop = of(128, False).loop("sass")
    exponentials = [at.start() for at in re.finditer(r"MUFU\.EX2", loop)]
    assert "BAR.SYNC" not in loop[exponentials[0] : exponentials[-1]]


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal, dtype", VARIANTS)
def test_one_turn_waits_and_arrives_as_often_as_the_protocol_says(d, causal, dtype):
    """In the loop: waits for turn, v_full and k_full; arrivals at turn, k_empty, q_empty and v_empty."""
    made = of(d, causal, dtype)
    turns = 0 if d == 256 and causal else 1
    arrivals = 2 + turns + (d < 256)  # at d = 256 Q's slot is free only when O has been stored from it
    for kind in ("ptx", "sass"):
        turn = made.counts(kind, loop=True)
        found = turn["mbarrier wait"], turn["mbarrier arrive"], turn["setmaxnreg"], turn["TMA"]
        assert found == (2 + turns, arrivals, 0, 0)
    ptx, sass = made.counts("ptx"), made.counts("sass")
    assert sass["mbarrier wait"] == 2 * ptx["mbarrier wait"]  # once in place, once after the end of the program
    for name in ("mbarrier arrive", "setmaxnreg", "TMA", "wgmma", "wgmma wait", "ex2"):
        assert sass[name] == ptx[name] > 0, name


def test_the_lines_of_named_instructions_are_returned_in_order():
    loop = of(128, False).loop("ptx")
    said = listings.lines("ptx", loop, "mbarrier wait", "mbarrier arrive", "wgmma wait").splitlines()
    order = [re.search(r"try_wait|arrive|wait_group", line)[0] for line in said]
    # turn and V are there; the next turn; S; K, and after the last S also Q, are free; the next K; P V; V is free
    expected = ["try_wait"] * 2 + ["arrive", "wait_group", "arrive", "arrive", "try_wait", "wait_group", "arrive"]
    assert order == expected
    assert set(said) <= {line.strip() for line in loop.splitlines()}
    every = listings.lines("sass", of(128, False).sass).splitlines()
    assert len(every) == sum(of(128, False).counts("sass").values())


@pytest.mark.compiles
def test_the_copies_of_kernels_without_roles_have_barriers_too():
    """With descriptors the compiler inserts them: one for K and V, one stage at a time."""
    hopper, ampere = (compiled.report(d=64, capability=capability) for capability in (90, 80))
    for kind in ("ptx", "sass"):
        told = hopper.counts(kind, loop=True)
        assert (told["mbarrier wait"], told["mbarrier arrive"], told["setmaxnreg"]) == (1, 1, 0)
        assert not any(ampere.counts(kind)[name] for name in ("mbarrier wait", "mbarrier arrive", "setmaxnreg"))


@pytest.mark.parametrize("kernel", ["hopper_forward", "hopper_r1_alike", "hopper_r6_persistent"])
def test_another_generation_is_refused(kernel):
    with pytest.raises(ValueError, match=r"capability \(8, 0\).*flashlib.kernels.forward.attention"):
        compiled.report(kernel=kernel, d=64, capability=80)


@pytest.mark.compiles
def test_a_launch_has_one_config_however_far_it_is_compiled():
    """A launch has 4 warps, the compiled kernel those of all roles; records compare launches."""
    asked = {"kernel": "hopper_forward", "d": 128, "shape": (1, 4, 2, 4096)}
    config, sass = (compiled.launch(**asked, until=until) for until in ("config", "sass"))
    assert config.config == sass.config == [128, 128, 4, 2] and len(sass.sass) == 12


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal, dtype", [(d, c, "bfloat16") for d in (64, 128) for c in (False, True)])
def test_the_loop_of_the_backward_hardly_spills_and_waits_as_its_protocol_says(d, causal, dtype):
    """In the loop over whole tiles: five products, a wait for Q, dO, dS and the reducer, an arrival at three."""
    made = compiled.report(kernel="hopper_backward", d=d, causal=causal, dtype=dtype)
    assert made.shared <= GPUS["H200"].block_sram and not made.notes
    # A role that copies is called a producer: so is the finisher, but not the reducer, which adds.
    assert (
        sorted((role.name, role.given) for role in made.roles) == [("consumer", 240)] * 2 + [("producer", 24)] * 2
    )
    assert all(role.used <= role.given for role in made.roles)
    for kind in ("ptx", "sass"):
        loop = made.counts(kind, loop=True)
        halves = 128 // d  # of 64 rows, in a tile
        assert (loop["mbarrier wait"], loop["mbarrier arrive"]) == (4, 3)
        assert loop["wgmma"] == halves * (2 * d // 16 + 2 * 64 // 16) + 128 // 16  # each sums 16 of d, rows, keys
        assert loop["ex2"] == halves * 64 * 64 // 128 and loop["atomic add"] == 0
        assert loop["spill"] <= (2 if (d, causal) == (128, False) else 0)  # loads of an address, no stores
    assert made.counts("sass")["atomic add"] == 2  # counts: the copy unit adds dQ
    assert len(re.findall(r"UTMAREDG\S+ADD", made.sass)) == 2


@pytest.mark.compiles
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["dkv", "dq"])
def test_the_passes_at_d_256_spill_nothing(name, causal, dtype):
    """In the loop over whole tiles: two or three products of each consumer, and the waits of their tables."""
    made = compiled.report(kernel=f"hopper_{name}_256", d=256, causal=causal, dtype=dtype)
    assert made.shared <= GPUS["H200"].block_sram and not made.notes and made.spilled == 0
    given = sorted((role.name, role.given) for role in made.roles)
    assert given == [("consumer", 240)] * 2 + [("producer", 24)]
    assert all(role.used <= role.given for role in made.roles)
    scores = 256 // 16  # each product of a tile sums 16 of d, rows or keys
    for kind in ("ptx", "sass"):
        loop = made.counts(kind, loop=True)
        at_barriers = loop["mbarrier wait"], loop["mbarrier arrive"]
        if name == "dq":  # K and V have come; dQ and dP are done
            assert (loop["wgmma"], loop["wgmma wait"], *at_barriers) == (2 * scores + 64 // 16, 3, 2, 2)
        else:  # of one of the consumers, who share five: full, of Q, dO and P; empty, of Q and dO
            assert (loop["wgmma"], loop["wgmma wait"]) == (scores + 64 // 16, 2)
            assert at_barriers in ((2, 3), (3, 2))


@pytest.mark.parametrize("kernel, d", [("hopper_backward", 256), ("hopper_dkv_256", 128), ("hopper_dq_256", 64)])
def test_the_backward_at_d_256_has_different_kernels(kernel, d):
    with pytest.raises(ValueError, match="two passes, 'hopper_dkv_256' and 'hopper_dq_256'"):
        compiled.report(kernel=kernel, d=d)


@pytest.mark.process
@pytest.mark.parametrize("amount", ["few", "all"])
def test_results_in_fp32_spill_nothing_in_a_loop(amount):
    """Outside the loop the backward spills as in 16 bits: roles have few registers while they start."""
    command = [sys.executable, "-m", "tests.kernels.compiler.compiled_hopper", amount]
    environment = os.environ | {"TRITON_INTERPRET": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found and not any(made["in_loop"] or made["notes"] or not made["fits"] for made in found), found
    spilled = {made["kernel"] for made in found if made["spilled"]}
    assert spilled <= {"_backward"} and all(made["spilled"] < 400 for made in found), found


@pytest.mark.compiles
@pytest.mark.parametrize("d, causal", [(d, causal) for d in (64, 128, 256) for causal in (False, True)])
def test_a_warp_skips_the_products_that_change_nothing(d, causal):
    """In the loop: one branch jumps over O's products, and one over comparisons of floats; the rest has few."""
    loop = of(d, causal).loop("sass")
    keys = launch.TILES[d].B_C
    skipped = [re.split(r"\.L_\w+:", block.partition("BRA")[2])[0] for block in loop.split("VOTE")[1:]]
    products, maxima = sorted(skipped, key=lambda block: "FMNMX" in block)
    assert products.count("FMUL") == d // 2 and maxima.count("FMNMX") >= keys // 2 - 4
    rest = loop.replace(products, "").replace(maxima, "")
    assert rest.count("FMUL") < 16 and rest.count("FMNMX") < 16 and rest.count("VIMNMX3") >= keys // 4 - 4
