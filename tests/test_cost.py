"""Closed forms where they can be worked out by hand, and their limits; test_memory holds them to the byte."""

import numpy as np
import pytest

from flashlib import cost

SIZES = {"N_q": 4096, "N_k": 4096, "d": 64}
FORMS = [
    cost.flops,
    lambda *a, **k: cost.standard_traffic(*a, dtype="float16"),
    lambda *a, **k: cost.fa1_traffic(*a, B_r=64, B_c=64, dtype="float16", **k),
    lambda *a, **k: cost.fa2_traffic(*a, B_r=64, B_c=64, dtype="float16", **k),
]


def test_flops_by_the_convention():
    assert cost.flops(4096, 4096, 64) == 4 * 4096**2 * 64
    assert cost.flops(4096, 4096, 64, causal=True) == 2 * 4096**2 * 64


def test_standard_attention_writes_and_reads_S_and_P():
    traffic = cost.standard_traffic(16384, 16384, 64, dtype="float32")
    S = 16384 * 16384 * 4
    assert S == 1_073_741_824
    assert 4 * S < traffic.total < 4 * S * 1.01


def test_break_even_blocks():
    """Without a mask FA2 breaks even near B_r = d / 2 and FA1 near B_c = 3 d / 4."""
    standard = cost.standard_traffic(**SIZES, dtype="float16").total

    def ratio(form, B):
        return form(**SIZES, B_r=B, B_c=B, dtype="float16").total / standard

    assert ratio(cost.fa2_traffic, 32) == pytest.approx(1, abs=0.02)
    assert ratio(cost.fa1_traffic, 48) == pytest.approx(1, abs=0.05)
    assert ratio(cost.fa2_traffic, 8) > 3 and ratio(cost.fa2_traffic, 128) < 0.3


@pytest.mark.parametrize("T", [1, 2, 4, 16])
def test_causal_share_of_tiles(T):
    tiles = cost.tiles_per_row_block(8 * T, 8 * T, B_r=8, B_c=8, causal=True)
    assert sum(tiles) / T**2 == (T + 1) / (2 * T)


def test_sram_holds_one_tile_of_everything():
    # Q_i 4x4, K_j and V_j 2x4 each, O_acc 4x4, S_ij 4x2, m and l 4 each: 64 numbers
    assert cost.sram_bytes(4, 2, 4, "float32") == 64 * 4
    assert cost.sram_bytes(4, 2, 4, "bfloat16") == 32 * 2 + 32 * 4
    assert cost.sram_bytes(4, 2, 4, np.float16) == cost.sram_bytes(4, 2, 4, "float16")


def test_nothing_is_moved_for_no_queries_but_the_keys():
    assert cost.fa2_traffic(0, 5, 2, B_r=2, B_c=2, dtype="float32").total == 0
    assert cost.fa1_traffic(0, 5, 2, B_r=2, B_c=2, dtype="float32").read == 2 * 5 * 2 * 4


@pytest.mark.parametrize("form", FORMS)
def test_bad_sizes_are_refused(form):
    with pytest.raises(ValueError, match="N_q is -1; accepted are whole numbers of at least 0"):
        form(-1, 4, 4)
    with pytest.raises(TypeError, match="N_k is 4.5; accepted are whole numbers"):
        form(4, 4.5, 4)
    with pytest.raises(ValueError, match="d is 0; accepted are whole numbers of at least 1"):
        form(4, 4, 0)


def test_sizes_do_not_overflow_and_dtypes_have_many_names():
    n = np.int32(65536)
    assert cost.flops(n, n, np.int32(64)) == 4 * 65536**2 * 64
    torch = pytest.importorskip("torch")
    for dtype in ("bfloat16", torch.bfloat16):
        assert cost.sram_bytes(4, 2, 4, dtype) == 192
    for dtype in ("float16", np.float16, np.dtype("float16"), torch.float16):
        assert cost.sram_bytes(4, 2, 4, dtype) == 192


@pytest.mark.parametrize("dtype", ["int8", "float8", np.int32, object, None])
def test_bad_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype is .*; accepted are float16, bfloat16, float32, float64"):
        cost.sram_bytes(4, 4, 4, dtype)


def test_bad_blocks_are_refused():
    with pytest.raises(ValueError, match="B_c is 0"):
        cost.fa2_traffic(4, 4, 4, B_r=1, B_c=0, dtype="float32")
