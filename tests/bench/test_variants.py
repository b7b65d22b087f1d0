"""The benchmark of variants: the recorded kernels are today's, and a wrong result is not timed."""

import json

import numpy as np
import pytest
import torch

from flashlib import masks, torch_ref
from flashlib.bench import cases, variants
from flashlib.bench.common import harness
from flashlib.bench.common.problem import Size
from flashlib.kernels import backward as backward_kernels
from flashlib.kernels import forward as forward_kernels
from flashlib.kernels.compiler import client, compiled
from tests.bench import recorded

SIZE = Size(1, 2, 2, 64, 16, False)
RECORD = json.loads((recorded.DATA / "h200_variants.json").read_text(encoding="utf-8"))


def checked():
    """One row of each variant and pass, with one d or the other; a shorter one for bits, which take time."""
    for row in RECORD["rows"]:
        N = 4096 if row["case"] == "every 4th key" else 16384
        if row["N"] == N and (row["d"] == 64) == (row["pass"] == "forward"):
            for kernel in row["kernels"]:
                name = kernel["kernel"]
                yield pytest.param(row, name, kernel["ttgir"], id=f"{row['case']}-{name}")


def attention(Q, K, V, *, causal, case):
    """Launch the forward kernel for `today`."""
    return forward_kernels.attention(Q, K, V, mask=cases.named(case).mask(Q.shape[2], Q.shape[1]))


def backward(Q, K, V, O, lse, dO, *, causal, case):
    """Launch the backward kernels for `today`."""
    mask = cases.named(case).mask(Q.shape[2], Q.shape[1])
    return backward_kernels.backward(Q, K, V, O, lse, dO, mask=mask)


def today(row, kernel) -> str:
    """Return the hash of what a kernel of a row is compiled to today, without a GPU."""
    call = "attention" if kernel == "_forward" else "backward"
    asked = {"kernel": kernel, "d": row["d"], "dtype": "bfloat16", "causal": False, "capability": 90}
    asked |= {"module": __name__, "call": call, "launched": kernel, "options": {"case": row["case"]}}
    found = client.compile_for_gpu(asked | {"shape": (row["B"], row["H"], row["H"], row["N"]), "until": "ttgir"})
    return compiled.hash_of(found["ttgir"], found["compile_options"])


@pytest.mark.compiles(each="kernel")
@pytest.mark.parametrize("row, kernel, ttgir", list(checked()))
def test_what_was_timed_is_what_is_compiled_today(row, kernel, ttgir):
    again = "make the record again: python -m flashlib.bench.variants --out notebooks/data/h200_variants.json"
    assert RECORD["triton"] == recorded.pinned_triton(), again
    assert today(row, kernel) == ttgir, again


def test_every_variant_and_size_is_recorded():
    found = {(row["case"], row["pass"], row["d"], row["N"]) for row in RECORD["rows"]}
    names = [case.name for case in cases.CASES]
    passes = "forward", "backward"
    assert found == {(c, p, d, N) for c in names for p in passes for d in (64, 128) for N in variants.LENGTHS}


@pytest.fixture
def small(monkeypatch):
    """Tables of small blocks, no clock, and standard attention in place of FlexAttention."""
    monkeypatch.setattr(cases, "BLOCK", 16)
    monkeypatch.setattr(harness, "side_by_side", lambda runs: dict.fromkeys(runs, 1.0))
    monkeypatch.setattr(variants, "prepare", lambda problem: {})

    def standard(problem, Q, K, V):
        found = torch_ref.attention(Q, K, V, mask=problem.mask)
        return (variants.sink.add(found, cases.SINK) if problem.case.with_sink else found).O

    monkeypatch.setattr(variants.VariantProblem, "flex", standard)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_a_row_says_what_was_timed(case, gradients, small):
    torch.manual_seed(0)
    row = variants.measure(case, SIZE, gradients, device="cpu")
    assert row["ms"]["ours"] == row["ms"]["flex"] == 1.0 and (row["ms"]["sdpa_mask"] == 1.0) == bool(case.numbers)
    assert 0 < row["tiles"] <= 1 and abs(row["per_tile"] - row["tiles"]) < 1e-3
    assert len(row["kernels"]) == 1 + gradients


def test_a_row_counts_the_tiles_that_the_kernels_compute(monkeypatch):
    monkeypatch.setattr(cases, "lengths", lambda N: np.array([130, 333, 37, N - 500]))
    size = SIZE._replace(N=700)
    problem = variants.VariantProblem(cases.named("documents"), size, True, device="cpu")
    for launch in problem.passes():
        transposed = launch.kernel.__name__ == "_dkv"
        own, streamed = (launch.config[n] for n in (("B_C", "B_R") if transposed else ("B_R", "B_C")))
        first, end = problem.mask.keys(masks.Place(size.N, size.N))
        sees = (np.arange(size.N) >= first[:, None]) & (np.arange(size.N) < end[:, None])
        computed = 0
        for at in range(0, size.N, own):
            seen = np.flatnonzero((sees.T if transposed else sees)[at : at + own].any(0))
            begin = seen[0] // streamed * streamed if transposed else seen[0]
            computed += -(-(seen[-1] + 1 - begin) // streamed)
        share = computed / -(-size.N // own) / -(-size.N // streamed)
        assert variants.tiles(launch, problem.mask, size) == pytest.approx(share)


@pytest.mark.parametrize("gradients", [False, True])
def test_packed_sequences_are_those_of_the_documents(gradients, small, monkeypatch):
    monkeypatch.setattr(cases, "lengths", lambda N: np.array([3, 20, 1, N - 24]))
    row = variants.packed(SIZE._replace(B=2), gradients, device="cpu")
    assert (row["sequences"], row["longest"], row["tokens"]) == (8, 40, 128) and row["ms"]["ours"] == 1.0


def test_a_wrong_result_is_not_timed(small):
    torch.manual_seed(0)
    problem = variants.VariantProblem(cases.named("causal ALiBi"), SIZE, False, device="cpu")
    problem.verify("ours", problem.run(problem.ours)())
    with pytest.raises(AssertionError, match="O of plain, causal ALiBi is wrong"):
        problem.verify("plain", problem.run(problem.plain)())


def test_the_lengths_of_documents_fill_the_tokens():
    for N in variants.LENGTHS:
        assert cases.lengths(N).sum() == N and (cases.lengths(N) > 0).all()
