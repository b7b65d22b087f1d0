"""What the compiler makes of the portable kernel in eight bits, on Ada and Hopper: no spills, two-level sums."""

import re

import pytest

from flashlib.kernels.compiler import compiled

SIZES = [(d, capability) for capability in (89, 90) for d in (32, 64, 128, 256)]


@pytest.mark.compiles
@pytest.mark.parametrize("d, capability", SIZES)
@pytest.mark.parametrize("kernel", ["eight_bits", "eight_bits_int8"])
def test_it_spills_nothing_and_multiplies_eight_bits(kernel, d, capability):
    made = compiled.report(kernel=kernel, d=d, capability=capability)
    assert made.spilled == 0 and made.fits and not made.notes
    of_scores = ("IGMMA" if capability == 90 else "IMMA") if kernel == "eight_bits_int8" else "Q(G)?MMA"
    assert re.search(rf"\b{of_scores}", made.loop("sass"))


@pytest.mark.compiles
@pytest.mark.parametrize("d, capability", SIZES)
def test_each_tiles_product_is_added_in_fp32(d, capability):
    """Two-level sums: O = O alpha + P V takes a multiply-add for each of O's numbers in a thread."""
    made = compiled.report(kernel="eight_bits", d=d, capability=capability)
    scores, outputs = (made.B_r * n // (32 * made.num_warps) for n in (made.B_c, d))
    assert made.counts("sass", loop=True)["fma"] >= scores + outputs
