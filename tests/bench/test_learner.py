"""`bench.mine` puts a learner's kernel beside ours, as it is compiled or timed."""

import pytest
import torch

from flashlib import bench
from flashlib.checks.engine import solutions
from flashlib.kernels import INTERPRETED, forward, softmax, triton
from flashlib.kernels.compiler import learner_kernels
from flashlib.kernels.compiler.client import CompileError

tl = triton.language
NUMBERS = slice(3, None)  # of a row: what a kernel takes


@triton.jit
def twice_kernel(X_ptr, Y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, BLOCK)
    x = tl.load(X_ptr + offs, mask=tl.arange(0, BLOCK) < N)
    tl.store(Y_ptr + offs, 2 * x, mask=tl.arange(0, BLOCK) < N)


def my_attention(Q, K, V, causal):
    return forward.attention(Q, K, V, causal=causal)


def my_softmax(X):
    Y = torch.empty_like(X)
    twice_kernel[(len(X),)](X, Y, X.shape[1], BLOCK=triton.next_power_of_2(X.shape[1]))
    return softmax.softmax(X)


@pytest.mark.skipif(not INTERPRETED, reason="where there is a GPU, kernels are timed")
def test_our_own_kernel_takes_what_ours_takes():
    table = bench.mine(my_attention)
    for yours, ours in zip(table.rows[::2], table.rows[1::2], strict=True):
        assert (yours[:2], ours[:2]) == ((ours[0], "yours"), (yours[0], "ours"))
        assert yours[NUMBERS] == ours[NUMBERS] and yours[3] > 0
    assert str(table.rows[-1][3]) in repr(table).splitlines()[-1]


@pytest.mark.skipif(not INTERPRETED, reason="where there is a GPU, kernels are timed")
def test_every_kernel_that_is_launched_has_a_row():
    table = bench.mine(my_softmax)
    assert [row[1:3] for row in table.rows[:3]] == [
        ("yours", "twice_kernel"), ("yours", "_softmax"), ("ours", "softmax"),
    ]  # fmt: skip
    assert table.rows[1][NUMBERS] == table.rows[2][NUMBERS] != table.rows[0][NUMBERS]


def test_the_solution_of_the_capstone_spills_nothing():
    for d in (64, 128):
        (report,) = learner_kernels.reports(solutions.solution("attention"), "attention", d=d, causal=True)
        assert report.fits and not report.spilled and report.programs >= 2


def test_what_is_not_written_yet_is_told():
    def my_attention(Q, K, V, causal):
        raise NotImplementedError

    assert repr(bench.mine(my_attention)) == "not solved yet"


@pytest.mark.parametrize("given", [3, lambda Q, K: Q], ids=["number", "two arguments"])
def test_what_is_no_such_function_is_refused(given):
    with pytest.raises(TypeError, match=r"was passed; pass my_attention\(Q, K, V, causal\) or my_softmax\(X\)"):
        bench.mine(given)


def test_what_a_function_raises_is_told():
    with pytest.raises(CompileError, match="AttributeError: 'Tensor' object has no attribute 'columns'"):
        learner_kernels.reports(lambda X: X.columns, "softmax", d=64)
    with pytest.raises(CompileError, match="launched no kernel"):
        learner_kernels.reports(lambda X: X, "softmax", d=64)


@pytest.mark.gpu
def test_on_a_gpu_what_is_wrong_is_not_timed(capsys):
    import matplotlib

    matplotlib.use("agg")
    right = bench.mine(my_attention)
    wrong = bench.mine(lambda Q, K, V, causal: 1.1 * my_attention(Q, K, V, causal).O)
    assert len(right.rows) == len(wrong.rows) == 4
    assert all(row[1] > 0 and row[-1] > 0 for row in right.rows)
    assert all(row[1] == row[-1] == "-" for row in wrong.rows)
    assert capsys.readouterr().out.count("O of yours at Size") == 4


@pytest.mark.gpu
def test_on_a_gpu_softmax_is_timed_unless_it_is_wrong(capsys):
    assert all(row[1] > 0 for row in bench.mine(lambda X: softmax.softmax(X)).rows)
    assert all(row[1] == "-" for row in bench.mine(lambda X: 1.1 * softmax.softmax(X)).rows)
    assert capsys.readouterr().out.count("softmax of rows of") == 3
