"""On a Hopper GPU: the kernels in eight bits against fp64 on the same numbers; and they never hang."""

import subprocess
import sys

import pytest
import torch

from flashlib.kernels import eight_bits, quantise
from flashlib.kernels.hopper import fp8, launch_fp8
from tests.kernels import eight

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")]
SIZES = [(1, 1), (1, 4099), (63, 65), (129, 127), (193, 1021), (1021, 193), (1024, 1024), (2047, 1021)]
FORMATS = sorted(quantise.FORMATS)
SUMS = 2.0**-5  # of a weight, for the 13 bits of sums of S and O


def tensors(N_q, N_k, d, heads=(2, 3, 3), dtype=torch.bfloat16):
    B, H, H_k = heads
    torch.manual_seed(N_q + N_k + d)
    given = [torch.randn(B, h, n, d, device="cuda") for h, n in ((H, N_q), (H_k, N_k), (H_k, N_k))]
    return tuple((X + 0.5 * torch.randn(d, device="cuda")).to(dtype) for X in given)


def check(Q, K, V, causal, qk="e4m3", module=fp8):
    hopper, d = module is fp8, Q.shape[3]
    small = quantise.quantised(Q, K, V, qk=qk, permuted=hopper)
    given = module.attention(Q, K, V, causal=causal, qk=qk)
    read = eight.stands_for(small, K.shape[2], permuted=hopper)
    eight.check(given, small, *read, causal, d**-0.5, weight=2.0**-4 + SUMS, of_lse=0.01)
    return given


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("qk", FORMATS)
@pytest.mark.parametrize("d", [64, 128, 256])
def test_equals_fp64(d, qk, causal, N_q, N_k, poisoned):
    check(*tensors(N_q, N_k, d), causal, qk)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("qk", FORMATS)
@pytest.mark.parametrize("d", [32, 64, 128, 256])
def test_the_portable_kernel_equals_fp64(d, qk, causal, poisoned):
    for N_q, N_k in SIZES:
        check(*tensors(N_q, N_k, d), causal, qk, module=eight_bits)


@pytest.mark.parametrize("heads", [(1, 8, 2), (3, 6, 1), (2, 16, 16)])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads(heads, causal, poisoned):
    check(*tensors(517, 771, 128, heads, torch.float16), causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_more_row_blocks_than_multiprocessors(d, causal, poisoned):
    """Programs compute several blocks: barriers, slots and O's place are reused."""
    check(*tensors(1000, 777, d, (5, 16, 4)), causal)


def test_two_level_sums_keep_what_one_level_loses():
    """Equal weights and values of one sign: with one sum for all tiles, O is a fifth too small at 16,384 keys."""
    Q = torch.zeros(1, 1, 128, 128, device="cuda", dtype=torch.bfloat16)
    K, V = (torch.rand(1, 1, 16384, 128, device="cuda").bfloat16() + 1 for _ in range(2))
    small = quantise.quantised(Q, K, V, permuted=True, centred=False)
    exact = V.double().mean(2)
    bias = {}
    for two_level in (False, True):
        tiles = launch_fp8.TILES[128, False]._replace(TWO_LEVEL=two_level)
        O = launch_fp8.of_quantised(fp8._attention, small, False, 1.0, tiles).O
        bias[two_level] = (O.double().mean(2) / exact - 1).mean().item()
    assert bias[False] < -0.15 and abs(bias[True]) < 0.02


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_it_repeats_to_the_bit(d, causal):
    Q, K, V = tensors(1500, 1700, d, (2, 16, 16))
    first = fp8.attention(Q, K, V, causal=causal)
    for _ in range(20):
        again = fp8.attention(Q, K, V, causal=causal)
        assert torch.equal(first.O, again.O) and torch.equal(first.lse, again.lse)


MANY = """
import torch
from flashlib.kernels import quantise
from flashlib.kernels.hopper import fp8, launch_fp8
torch.manual_seed(0)
Q, K, V = (torch.randn(2, 8, n, {d}, device="cuda").bfloat16() for n in (517, 771, 771))
small = quantise.quantised(Q, K, V, permuted=True)
run = lambda: launch_fp8.of_quantised(fp8._attention, small, {causal}, 0.1)
first = run()
for n in range(10_000):
    last = run()
torch.cuda.synchronize()
assert torch.equal(first.O, last.O) and torch.equal(first.lse, last.lse)
"""


@pytest.mark.parametrize("d, causal", [(64, False), (64, True), (128, False), (128, True), (256, False)])
def test_ten_thousand_launches_end(d, causal):
    done = subprocess.run(
        [sys.executable, "-c", MANY.format(d=d, causal=causal)], timeout=120, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
