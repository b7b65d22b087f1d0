"""`bench.mine` passes the tables and functions of its cases to a learner's kernel for any mask."""

import functools

import numpy as np
import pytest
import torch

from flashlib import masks
from flashlib.bench import cases, learner, learner_variants
from flashlib.bench.common import harness, problem
from flashlib.bench.common.problem import Size
from flashlib.bench.common.sizes import usual_size
from flashlib.checks.engine import solutions
from flashlib.kernels import DEVICE, INTERPRETED, triton

tl = triton.language
H = usual_size(learner_variants.D, False, learner_variants.N).H_q


@triton.jit
def _called(
    S_ptr, seen_ptr, changed_ptr, first, h, SEEN: tl.constexpr, SCORE: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    r, c = first + tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = tl.arange(0, N)[:, None] * N + c
    tl.store(seen_ptr + at, tl.where(SEEN(0, h, r, c), 1, 0))
    tl.store(changed_ptr + at, SCORE(tl.load(S_ptr + at), 0, h, r, c))


@pytest.mark.parametrize("h", [0, 5])
@pytest.mark.parametrize("first", [0, 4064, 1003])
@pytest.mark.parametrize("name", learner_variants.FUNCTIONS)
def test_the_functions_of_a_case_agree_with_its_mask(name, first, h):
    n, N = 64, learner_variants.N
    if name == "every 4th key":  # an array of N x N, which does not depend on N
        N = first + n
    if "blocks" in name:
        pytest.skip("its tiles are all whole: nothing is asked")
    S = (30 * torch.randn(n, n)).to(DEVICE)
    seen, changed = torch.zeros(n, n, dtype=torch.int32, device=DEVICE), torch.full_like(S, torch.nan)
    _called[(1,)](S, seen, changed, first, h, *learner_variants.FUNCTIONS[name], n)
    rows, cols = slice(first, first + n), slice(0, n)
    of_case = cases.named(name)
    mask = masks.causal() & masks.alibi(masks.alibi_slopes(H)[h]) if "ALiBi" in name else of_case.mask(N, H)
    tiles = mask.on(N, N)
    right = np.broadcast_to(tiles.seen(rows, cols), (n, n))
    assert np.array_equal(seen.cpu().numpy() != 0, right)
    scores = tiles.scores(S.cpu().double().numpy(), rows, cols)
    assert np.allclose(changed.cpu().numpy()[right], scores[right], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("N, B_r, B_c", [(37, 8, 5), (64, 16, 16), (5, 16, 8)])
@pytest.mark.parametrize(
    "mask", [masks.window(6, 0), masks.causal(), masks.from_function(lambda r, c: (r - c) % 3 == 0)], ids=str
)
def test_tables_are_those_of_the_exercise(mask, N, B_r, B_c):
    seen = mask.on(N, N).seen(slice(0, N), slice(0, N))
    right = solutions.solution("block_table")(np.broadcast_to(seen, (N, N)), B_r, B_c)
    for given, expected in zip(learner_variants.table_of(mask, N, B_r, B_c, "cpu"), right, strict=True):
        assert given.dtype == torch.int32 and np.array_equal(given.numpy(), expected)


@pytest.fixture
def small(monkeypatch):
    """The same at a small size, with made-up milliseconds."""
    monkeypatch.setattr(learner_variants, "TILE", (32, 32))
    monkeypatch.setattr(
        learner_variants, "FUNCTIONS", {"causal ALiBi": learner_variants.FUNCTIONS["causal ALiBi"]}
    )
    monkeypatch.setattr(
        "flashlib.bench.common.sizes.usual_size", lambda d, causal, N: Size(1, 16, 16, 96, 16, causal)
    )
    in_fp16 = functools.partial(
        problem.tensors, dtype=torch.float16
    )  # the interpreter has bf16 only for our kernels
    monkeypatch.setattr("flashlib.bench.variants.tensors", in_fp16)
    made_up = {"yours": 2.0, "ours": 1.0, "flex": 4.0}
    monkeypatch.setattr(harness, "side_by_side", lambda runs: {name: made_up[name] for name in runs})
    monkeypatch.setattr(
        "flashlib.bench.variants.VariantProblem.flex", lambda problem, *tensors: problem.ours(*tensors)
    )
    told = {"gpu": "G", "torch": "1", "triton": "2", "date": "today"}
    monkeypatch.setattr(harness, "environment", lambda: told)
    times = learner_variants.times
    monkeypatch.setattr(learner_variants, "times", lambda answer: times(answer, device=DEVICE))


@pytest.mark.skipif(not INTERPRETED, reason="the solution's tiles are chosen for the interpreter")
@pytest.mark.parametrize("wrong", [False, True])
def test_a_correct_kernel_is_timed_and_a_wrong_one_is_not(wrong, small, capsys):
    solution = solutions.solution("variant")

    def my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C):
        O, lse = solution(Q, K, V, table, SEEN, SCORE, B_R, B_C)
        return O + wrong, lse

    table = learner._variant_timed(my_variant)
    assert table.heads == ("", *learner_variants.PEERS, "yours / ours")
    assert table.rows == [("causal ALiBi", *(("-", 1.0, 4.0, "-") if wrong else (2.0, 1.0, 4.0, 2.0)))]
    assert ("yours" in capsys.readouterr().out) == wrong and "G, torch 1" in table.title


@pytest.mark.compiles
def test_the_solution_of_the_capstone_spills_nothing():
    for name, yours, ours in learner_variants.reports(solutions.solution("variant"), learner.CAPABILITY)[:1]:
        (report,) = yours
        assert name in learner_variants.FUNCTIONS and ours.kernel == "_forward"
        assert report.fits and not report.spilled
