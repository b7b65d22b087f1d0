"""The Hopper rungs compiled: no spills, and the softmax under a product; they refuse what they do not take."""

import re

import pytest
import torch

from flashlib.gpus import GPUS
from flashlib.kernels.compiler import compiled
from tests.kernels.hopper.on_a_cpu import FORWARD_RUNGS, MODULES


def report(name, d, causal, dtype):
    return compiled.report(kernel=f"hopper_{name}", d=d, dtype=dtype, causal=causal)


VARIANTS = [
    (name, 128, False, "bfloat16") for name in FORWARD_RUNGS
]  # up to r4 tiles are the same at d = 64, and O is smaller
VARIANTS += [("r1_alike", 64, True, "float16"), ("r5_registers", 64, False, "float16")]
VARIANTS += [("r6_persistent", 64, True, "bfloat16")]


@pytest.mark.compiles(each="name")
@pytest.mark.parametrize("name, d, causal, dtype", VARIANTS)
def test_it_compiles_without_a_spill(name, d, causal, dtype):
    made = report(name, d, causal, dtype)
    counted = made.counts("sass")
    assert made.spilled == counted["spill"] == 0 and not made.notes
    assert made.shared <= GPUS["H200"].block_sram
    assert counted["wgmma"] and counted["TMA"] and not counted["mma.sync"]
    moved = name in ("r5_registers", "r6_persistent")
    assert sorted(role.given for role in made.roles) == ([24, 240, 240] if moved else [])
    assert made.registers <= (255 if name == "r1_alike" else 168)  # of 8 warps, or of 12


@pytest.mark.compiles
@pytest.mark.parametrize("name", FORWARD_RUNGS)
def test_from_r4_on_the_softmax_runs_under_a_product(name):
    """In the loop exponentials come after a wait that leaves P V running, and before the one for P V."""
    loop = report(name, 128, False, "bfloat16").loop("sass")
    seen = re.findall(r"DEPBAR\.LE gsb0, 0x\d|MUFU\.EX2", loop)
    first = seen.index("MUFU.EX2")
    count = seen.count("MUFU.EX2")
    before, after = seen[first - 1], seen[(first + count) % len(seen)]  # around: the compiler turns loops
    assert after == "DEPBAR.LE gsb0, 0x0"  # in r1 to r3 for what is issued after the exponentials
    assert before == f"DEPBAR.LE gsb0, 0x{int(name >= 'r4')}"


@pytest.mark.parametrize("name", FORWARD_RUNGS)
def test_a_rung_refuses_what_it_does_not_take(name):
    Q = torch.zeros(1, 1, 5, 64)
    with pytest.raises(ValueError, match=r"flashlib\.kernels\.forward\.attention"):
        MODULES[name].attention(Q, Q, Q)
