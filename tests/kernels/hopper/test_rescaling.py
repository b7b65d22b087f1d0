"""The Hopper forward with other rules for when O is rescaled, on a CPU."""

import pytest
import torch

from flashlib import gluon
from flashlib.kernels.compiler import compiled
from flashlib.kernels.hopper import forward, rescaling
from tests.kernels.hopper import on_a_cpu

SIZES = on_a_cpu.Sizes((1, 2, 1), 70, 330, 64, True)


@pytest.fixture(scope="module")
def results():
    """Results of each tau, of `forward` and in fp64; maxima grow in each tile, as kernels begin at the end."""
    Q, K, V, *_ = on_a_cpu.inputs(SIZES)
    K = K * torch.linspace(2, 0.2, SIZES.N_k)[:, None].to(K.dtype)
    with on_a_cpu.tiled(on_a_cpu.Tiles()), gluon.on_cpu(seed=3, multiprocessors=2):
        found = {tau: rescaling.attention(Q, K, V, causal=True, tau=tau) for tau in rescaling.TAUS}
        return found, forward.attention(Q, K, V, causal=True), on_a_cpu.exact(Q, K, V, causal=True)


def test_what_a_warp_skips_changes_no_bit(results):
    found, plain, _ = results
    for tau in (None, 0):
        assert torch.equal(found[tau].O, plain.O) and torch.equal(found[tau].lse, plain.lse)


def test_a_later_maximum_gives_the_same_result_up_to_rounding(results):
    found, plain, exact = results
    assert not torch.equal(found[8].O, plain.O), "some maxima grew by less than 8"
    error, usual = ((O.double() - exact.O).abs().max() for O in (found[8].O, plain.O))
    assert error <= 4 * usual
    torch.testing.assert_close(found[8].lse.double(), exact.lse, rtol=1e-5, atol=1e-5)


def test_another_tau_is_refused():
    with pytest.raises(ValueError, match="tau is 4; accepted are None, 0, 8"):
        rescaling.attention(*[torch.zeros(1, 1, 8, 64)] * 3, tau=4)


@pytest.mark.compiles
@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("kernel, votes", [("hopper_always_rescaled", 1), ("hopper_lazily_rescaled", 2)])
def test_rules_compile_without_spills(kernel, votes, d):
    made = compiled.report(kernel=kernel, d=d, causal=True)
    assert made.spilled == 0 and not made.notes and made.loop("sass").count("VOTE") == votes
