"""Closed forms where they can be worked out by hand, and their limits; test_memory checks them to the byte."""

from collections import Counter

import numpy as np
import pytest

from flashlib import cost, masks, naive, tiled
from flashlib.gpus import GPUS
from flashlib.types import Traffic
from tests import oracle

SIZES = {"N_q": 4096, "N_k": 4096, "d": 64}
FORMS = [
    cost.flops,
    lambda *a, **k: cost.standard_traffic(*a, dtype="float16"),
    lambda *a, **k: cost.fa1_traffic(*a, B_r=64, B_c=64, dtype="float16", **k),
    lambda *a, **k: cost.fa2_traffic(*a, B_r=64, B_c=64, dtype="float16", **k),
]


def test_flops_follow_the_convention():
    assert cost.flops(4096, 4096, 64) == 4 * 4096**2 * 64
    assert cost.flops(4096, 4096, 64, causal=True) == 2 * 4096**2 * 64


def test_standard_attention_writes_and_reads_S_and_P():
    traffic = cost.standard_traffic(16384, 16384, 64, dtype="float32")
    S = 16384 * 16384 * 4
    assert S == 1_073_741_824
    assert 4 * S < traffic.total < 4 * S * 1.01


def test_break_even_block_sizes():
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


def test_without_queries_only_the_keys_are_moved():
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


def test_sizes_do_not_overflow_and_dtypes_may_be_named_in_many_ways():
    n = np.int32(65536)
    assert cost.flops(n, n, np.int32(64)) == 4 * 65536**2 * 64
    for of, B in ((np.uint8, 100), (np.int32, 60000)):
        assert cost.sram_bytes(of(B), of(B), of(64), "float16") == cost.sram_bytes(B, B, 64, "float16")
        largest = (cost.largest_B_r(10**9, B_c=n(B), d=n(200), dtype="float16") for n in (of, int))
        assert len(set(largest)) == 1
    for mask in (None, masks.window(300, 0), masks.from_function(lambda r, c: c % 300 < r)):
        sizes = {"causal": True, "mask": mask}
        small, plain = {"B_r": np.uint8(128), "B_c": np.int8(64)}, {"B_r": 128, "B_c": 64}
        given, expected = (cost.computed_tiles(1000, 1000, **blocks, **sizes) for blocks in (small, plain))
        assert np.array_equal(given, expected)
        given, expected = (cost.fa2_work(1000, 1000, 64, **blocks, **sizes) for blocks in (small, plain))
        assert given == expected
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


class Counting(np.ndarray):
    """An array that counts, in `done`, how many numbers each kind of arithmetic processes."""

    done: Counter

    def __array_finalize__(self, parent):
        self.done = getattr(parent, "done", None)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        plain = [np.asarray(X) for X in inputs]
        out = None if out is None else tuple(np.asarray(X) for X in out)
        result = np.asarray(getattr(ufunc, method)(*plain, **kwargs, **({"out": out} if out else {})))
        if ufunc is np.matmul:
            self.done["matmul"] += 2 * result.size * plain[0].shape[-1]
        elif ufunc in (np.exp, np.log):
            self.done["exp"] += result.size
        elif ufunc not in (np.equal, np.invert):
            self.done["other"] += (plain[0] if method == "reduce" else result).size
        return self._like(result)

    def __array_function__(self, func, types, args, kwargs):
        result = super().__array_function__(func, types, args, kwargs)
        return self._like(result) if isinstance(result, np.ndarray) else result

    def _like(self, result):
        result = result.view(Counting)
        result.done = self.done
        return result


def operations(attention, arrays, **options):
    done = Counter()
    placed = [X.view(Counting) for X in arrays]
    for X in placed:
        X.done = done
    attention(*placed, **options)
    return cost.Work(done["matmul"], done["exp"], done["other"])


@pytest.mark.parametrize("causal", [False, True])
def test_counted_operations_equal_the_closed_forms(causal, rng):
    for _ in range(60):
        N_q, N_k, d, B_r, B_c = case = tuple(int(n) for n in rng.integers([1, 1, 1, 1, 1], [20, 20, 6, 9, 9]))
        if causal and N_k < N_q:  # the state of rows that see no key comes from no Counting array
            continue
        arrays, tiles = oracle.inputs(rng, N_q, N_k, d), {"B_r": B_r, "B_c": B_c, "causal": causal}
        assert operations(naive.attention, arrays, causal=causal) == cost.standard_work(N_q, N_k, d), case
        for order, form in (("fa1", cost.fa1_work), ("fa2", cost.fa2_work)):
            given = operations(tiled.attention, arrays, order=order, **tiles)
            assert given == form(N_q, N_k, d, **tiles), (order, case)


def test_fa2_does_fewer_operations_than_fa1_and_more_the_more_often_it_rescales():
    tiles = {"B_r": 64, "B_c": 64}
    fa1, fa2 = (form(**SIZES, **tiles) for form in (cost.fa1_work, cost.fa2_work))
    assert fa1.matmul == fa2.matmul == cost.flops(**SIZES) and fa2.other < fa1.other
    assert (
        cost.fa2_work(**SIZES, B_r=64, B_c=4096).total < fa2.total < cost.fa2_work(**SIZES, B_r=64, B_c=32).total
    )


def test_the_largest_row_block_fits_and_one_row_more_does_not(rng):
    for _ in range(100):
        B_c, d, capacity = (int(n) for n in rng.integers([1, 1, 0], [70, 130, 60_000]))
        dtype = str(rng.choice(["bfloat16", "float32", "float64"]))
        B_r = cost.largest_B_r(capacity, B_c=B_c, d=d, dtype=dtype)
        assert B_r == 0 or cost.sram_bytes(B_r, B_c, d, dtype) <= capacity
        assert cost.sram_bytes(B_r + 1, B_c, d, dtype) > capacity
    with pytest.raises(ValueError, match="capacity is -1"):
        cost.largest_B_r(-1, B_c=1, d=1, dtype="float32")


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_the_roofline_bends_at_the_ridge(gpu):
    """Below the ridge point bytes limit the speed, above it FLOPs; at the ridge point both take the same time."""
    traffic = Traffic(read=10**9)
    for share in (0.5, 1, 2):
        flops = share * gpu.ridge * traffic.total
        seconds = cost.roofline_seconds(flops, traffic, gpu)
        assert cost.intensity(flops, traffic) == pytest.approx(share * gpu.ridge)
        assert seconds == pytest.approx(max(1, share) * traffic.total / gpu.bandwidth)
    assert cost.intensity(1, Traffic()) == np.inf


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_every_number_of_a_gpu_has_a_source(gpu):
    numbers = {"sms", "sram", "block_sram", "registers", "l2", "memory", "bandwidth", "fp16", "bf16"}
    assert set(gpu.sources) == numbers | {name for name in ("link", "clock", "latency") if getattr(gpu, name)}
    assert all(len(source) > 20 for source in gpu.sources.values())
    assert gpu.block_sram <= gpu.sram <= gpu.registers < gpu.l2 < gpu.memory
    assert gpu.all_sram == gpu.sms * gpu.sram
    if gpu.clock:
        assert gpu.sram_bandwidth > 5 * gpu.bandwidth
