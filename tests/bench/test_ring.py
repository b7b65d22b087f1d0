"""The benchmark of rings: what is timed is correct, a wrong way is not timed, and derived numbers are right."""

import pytest
import torch
import torch.distributed as dist

pytest.importorskip("cloudpickle")
from flashlib import masks, torch_ref  # noqa: E402
from flashlib.bench import ring as bench  # noqa: E402
from flashlib.bench.common import sampled  # noqa: E402
from flashlib.ring import processes  # noqa: E402

SIZES = [
    bench.RingSize(48, 4, 2, 16),
    bench.RingSize(37, 2, 2, 16, left=9),
    bench.RingSize(40, 2, 1, 16, documents=11),
]


def clock(run, calls):
    """Return the time of a run by its name: 8 ms on one GPU and 5 over ranks."""
    run()
    return 5.0 + dist.get_rank()


def without_kernels(Q, K, V, causal, mask):
    return torch_ref.attention(Q, K, V, causal=causal, mask=mask).O


def on_this_rank():
    """Return the rows of all sizes on CPUs, and what a wrong way raises."""
    bench._one_gpu = without_kernels
    found = [row for size in SIZES for row in bench.rows(size, "cpu", clock)]
    problem, way = bench.RankProblem(SIZES[0], "cpu"), bench.ways(SIZES[1], "cpu")["ring"]
    with pytest.raises(AssertionError, match="of ring at RingSize.* is wrong"):
        problem.verify("ring", way)
    return found


def test_rows_say_what_was_timed():
    of_ranks = processes.run(on_this_rank, ranks=4, seconds=100)
    assert all([row["ms"] for row in one] == [row["ms"] for row in of_ranks[0]] for one in of_ranks)
    rows = of_ranks[0]
    assert [(row["N"], row["pass"]) for row in rows] == [(s.N, p) for s in SIZES for p in ("forward", "both")]
    names = ["ring", "ring_in_turn", "ring_contiguous", "all_gather", "ulysses", "two_d", "one_gpu"]
    for row in rows:
        assert row["ranks"] == 4
        assert list(row["ms"]) == list(row["error"]) == names and set(row["ms"].values()) == {8.0}
        assert set(row["efficiency"].values()) == {0.25} and 0 < max(row["error"].values()) < 0.1
    assert rows[0]["bytes"] == 2 * 2 * 12 * 16 * 2 and rows[1]["bytes"] == 4 * rows[0]["bytes"]
    text = bench.summary({"rows": rows})
    assert (
        "N 48, heads 4/2, causal, forward, 4 ranks:\n                ring      8.00 ms, efficiency 0.250" in text
    )
    assert "window 10, both" in text and "documents of 11, forward" in text


def test_a_prediction_keeps_the_cost_of_a_byte():
    row = {"ms": {"ring": 55.0, "ring_copy_engines": 52.0, "one_gpu": 100.0}}
    # two ranks: 2 ms for half of K and V. Four: three hops of a quarter, 3 ms beside 25; eight: 7 of an eighth
    assert bench.predicted(row, 2) == {"4": round(25 / 28, 3), "8": round(12.5 / 16, 3)}
    assert list(bench.predicted(row, 4)) == ["8"] and bench.predicted(row, 8) == {}


@pytest.mark.parametrize("left", [None, 9])
def test_a_sample_equals_the_whole_result(left):
    size = bench.RingSize(61, 4, 2, 16, left=left)
    Q, K, V, dO = bench_tensors(size)
    leaves = [X.double().requires_grad_() for X in (Q, K, V)]
    O, _ = torch_ref.attention(*leaves, causal=True, mask=size.mask)
    known = O, *torch.autograd.grad(O, leaves, dO.double())
    rows, keys = torch.tensor([0, 7, 60]), torch.tensor([3, 59])
    mask = masks.combined(size.mask, True)
    found = sampled.results(Q, K, V, dO, mask, rows, keys, rounded=False)
    for X, Y, at in zip(found, known, (rows, rows, keys, keys), strict=True):
        torch.testing.assert_close(X, Y[0, 0, at], rtol=1e-9, atol=1e-9)
    rough = sampled.results(Q, K, V, dO, mask, rows, keys, rounded=True)
    for X, Y in zip(rough, found, strict=True):
        assert 0 < (X - Y).abs().max() < 0.1


def bench_tensors(size):
    shapes = ((1, n, size.N, size.d) for n in (size.H, size.H_k, size.H_k, size.H))
    g = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=g).bfloat16() for shape in shapes]
