"""What the compiler makes of the Hopper kernel: no spills, wgmma and TMA, roles with the registers they need."""

import re

import pytest

from flashlib.gpus import GPUS
from flashlib.kernels import compiled

VARIANTS = [(d, causal, "bfloat16") for d in (64, 128, 256) for causal in (False, True)]
VARIANTS += [(64, True, "float16"), (128, False, "float16")]  # in SASS other letters


def of(d, causal, dtype="bfloat16"):
    return compiled.report(kernel="hopper_forward", d=d, causal=causal, dtype=dtype)


@pytest.mark.parametrize("d, causal, dtype", VARIANTS)
def test_it_spills_nothing_and_its_roles_share_the_registers(d, causal, dtype):
    made = of(d, causal, dtype)
    counted = made.counts("sass")
    assert made.spilled == counted["spill"] == 0 and not made.notes
    assert made.shared <= GPUS["H200"].block_sram
    assert counted["wgmma"] and counted["TMA"] and not counted["mma.sync"]
    consumers = made.B_r // 64
    assert sorted(role.name for role in made.roles) == ["consumer"] * consumers + ["producer"]
    assert all(role.used <= role.given for role in made.roles)
    assert sum(4 * 32 * role.given for role in made.roles) <= compiled.REGISTERS
    # The first consumer gets what the others leave.
    assert sorted(role.given for role in made.roles) == ([24, 160, 160, 168] if consumers == 3 else [24, 240, 240])


@pytest.mark.parametrize("d, causal", [(64, False), (128, True)])
def test_the_softmax_runs_under_the_product_before_it(d, causal):
    """In the loop: S and P V are begun, one wait leaves P V running, the other follows all exponentials."""
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


def test_another_generation_is_refused():
    with pytest.raises(ValueError, match=r"capability \(8, 0\).*flashlib.kernels.forward.attention"):
        compiled.report(kernel="hopper_forward", d=64, capability=80)
