"""`bench.mine` compares a learner's kernel with ours, compiled or timed."""

from types import SimpleNamespace

import pytest
import torch

from flashlib import bench
from flashlib.bench import learner, learner_resources
from flashlib.bench.common import harness, problem
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
def test_our_kernel_passed_as_a_learners_uses_the_same_resources():
    table = bench.mine(my_attention)
    for yours, ours in zip(table.rows[::2], table.rows[1::2], strict=True):
        assert (yours[:2], ours[:2]) == ((ours[0], "yours"), (yours[0], "ours"))
        assert yours[NUMBERS] == ours[NUMBERS] and yours[3] > 0
    rows, said = repr(table).split("\n\n")
    assert str(table.rows[-1][3]) in rows.splitlines()[-1]
    assert said.replace("\n", " ") == " ".join(table.sentences)


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


def test_an_unwritten_function_is_reported():
    def my_attention(Q, K, V, causal):
        raise NotImplementedError

    assert repr(bench.mine(my_attention)) == "not solved yet"


@pytest.mark.parametrize("given", [3, lambda Q, K: Q], ids=["number", "two arguments"])
def test_anything_but_such_a_function_is_refused(given):
    with pytest.raises(TypeError, match=r"was passed; pass my_attention\(Q, K, V, causal\) or my_softmax\(X\)"):
        bench.mine(given)


def test_an_exception_of_the_function_is_reported():
    with pytest.raises(CompileError, match="AttributeError: 'Tensor' object has no attribute 'columns'"):
        learner_kernels.reports(lambda X: X.columns, "softmax", d=64)
    with pytest.raises(CompileError, match="launched no kernel"):
        learner_kernels.reports(lambda X: X, "softmax", d=64)


@pytest.fixture
def made_up_gpu(monkeypatch):
    """The figures that would be shown, as nothing is drawn on a screen here."""
    from matplotlib import pyplot as plt

    shown = []
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    told = {"gpu": "G", "torch": "1", "triton": "2", "date": "today"}
    monkeypatch.setattr(harness, "environment", lambda: told)
    yield shown
    plt.close("all")


@pytest.mark.parametrize("capability, dtype, short", [(90, torch.bfloat16, "bf16"), (75, torch.float16, "fp16")])
def test_measured_speeds_are_shown_in_a_table_and_a_figure(capability, dtype, short, made_up_gpu, monkeypatch):
    """Each size and peer has a different speed; yours does not support the last size, flex none with a mask."""
    measured = {}
    monkeypatch.setattr(harness, "capability", lambda: capability)

    def measure(size, given, **options):
        assert options == {"dtype": dtype, "needed": ("ours",)}, "a T4 has no bf16, and PyTorch no flash for it"
        Q, K, V = torch.randn(3, 1, 1, 5, 4)
        assert torch.equal(given["yours"](Q, K, V, size.causal), Q + size.causal)
        assert size.B * size.N == 16384 and size.H_q == size.H_k == 2048 // size.d
        speeds = {name: 10.0 * len(measured) + at for at, name in enumerate(given, 1)}
        speeds |= {"flex": None} if size.causal else {}
        measured[size] = speeds | ({"yours": None} if len(measured) == 3 else {})
        return {"tflops": measured[size]}

    monkeypatch.setattr(problem, "measure", measure)
    table = learner._attention_timed(lambda Q, K, V, causal: (Q + causal, V))
    assert [(size.d, size.causal) for size in measured] == [(64, False), (64, True), (128, False), (128, True)]
    assert table.heads[1:] == ("yours", *learner.ATTENTION_PEERS, "yours / ours")
    assert table.title.startswith(f"TFLOP/s, {short}, N = 4096, G, torch 1")
    (figure,) = made_up_gpu
    for row, ax, (size, speeds) in zip(table.rows, figure.axes, measured.items(), strict=True):
        assert row[0] == ax.get_title() == f"d = {size.d}, {'causal' if size.causal else 'no mask'}"
        assert row[1:-1] == tuple(speed or "-" for speed in speeds.values())
        assert row[-1] == (round(speeds["yours"] / speeds["ours"], 2) if speeds["yours"] else "-")
        assert [bar.get_width() for bar in ax.patches] == [speed or 0 for speed in speeds.values()]
        assert [text.get_text() for text in ax.texts] == [f"{x:.0f}" if x else "none" for x in speeds.values()]
        assert ax.patches[0].get_facecolor() != ax.patches[1].get_facecolor() == ax.patches[-1].get_facecolor()


@pytest.mark.parametrize("wrong", [False, True])
def test_softmax_counts_each_byte_read_once_and_written_once(wrong, made_up_gpu, monkeypatch, capsys):
    randn = torch.randn
    monkeypatch.setattr(torch, "randn", lambda *shape, device: randn(*shape))
    monkeypatch.setattr(learner, "ROWS", 80)
    monkeypatch.setattr(learner, "LENGTHS", (100, 1000))
    ms = {"yours": 0.001, "ours": 0.0005, "torch": 0.002, "copy": 0.00025}
    monkeypatch.setattr(harness, "side_by_side", lambda runs: {name: ms[name] for name in runs})
    table = learner._softmax_timed(lambda X: X.softmax(-1) * (1.1 if wrong else 1))
    assert table.heads == ("", *ms)
    for row, length in zip(table.rows, (100, 1000), strict=True):
        speeds = [round(2 * 4 * 80 * length / (1e6 * t)) for t in ms.values()]
        assert row == (f"rows of {length}", *(["-", *speeds[1:]] if wrong else speeds))
    assert capsys.readouterr().out.count("softmax of rows of") == 2 * wrong


def test_the_table_has_kilobytes_of_shared_memory_beside_the_registers():
    report = SimpleNamespace(kernel="k", registers=1, spilled=2, shared=4608, num_warps=5, programs=6)
    ours = SimpleNamespace(**vars(report) | {"kernel": "o", "shared": 1024})
    assert [one.row for one in learner_resources.yours_and_ours("d = 64", [report], ours)] == [
        ("d = 64", "yours", "k", 1, 2, 4.5, 5, 6), ("d = 64", "ours", "o", 1, 2, 1.0, 5, 6),
    ]  # fmt: skip


@pytest.mark.gpu
def test_on_a_gpu_a_wrong_function_is_not_timed(capsys):
    import matplotlib

    matplotlib.use("agg")
    right = bench.mine(my_attention)
    wrong = bench.mine(lambda Q, K, V, causal: 1.1 * my_attention(Q, K, V, causal).O)
    assert len(right.rows) == len(wrong.rows) == 4
    assert right.then.rows and right.then.sentences
    assert all(row[1] > 0 and row[-1] > 0 for row in right.rows)
    assert all(row[1] == row[-1] == "-" for row in wrong.rows)
    assert capsys.readouterr().out.count("O of yours at Size") == 4


@pytest.mark.gpu
def test_on_a_gpu_softmax_is_timed_unless_it_is_wrong(capsys):
    assert all(row[1] > 0 for row in bench.mine(lambda X: softmax.softmax(X)).rows)
    assert all(row[1] == "-" for row in bench.mine(lambda X: 1.1 * softmax.softmax(X)).rows)
    assert capsys.readouterr().out.count("softmax of rows of") == 3
