"""`bench.mine` compares a learner's step of decoding with ours, compiled or timed."""

import pytest
import torch

from flashlib import bench
from flashlib.bench import decode, learner, learner_decoding
from flashlib.bench.common import harness
from flashlib.checks.engine import solutions
from flashlib.kernels import INTERPRETED
from flashlib.kernels.compiler import learner_kernels


def my_decode(Q, K, V, lengths, table, parts):
    return learner_decoding.my_ours(Q, K, V, lengths, table, parts)


@pytest.fixture
def no_gpu(monkeypatch):
    """Small sizes on this machine, with a clock that always shows the same time, and no graphs."""
    monkeypatch.setattr(learner_decoding, "SIZES", ((1, 70), (2, 130)))
    monkeypatch.setattr(harness, "environment", lambda: {"gpu": "G", "torch": "1", "triton": "2", "date": "today"})
    monkeypatch.setattr(harness, "captured", lambda run, times: type("Graph", (), {"replay": staticmethod(run)}))
    times = iter(range(1, 99))
    monkeypatch.setattr(harness, "side_by_side", lambda runs: dict.fromkeys(runs, next(times) / 50))
    timed = learner_decoding.times
    monkeypatch.setattr(learner_decoding, "times", lambda answer: timed(answer, cold=0, device="cpu"))


def test_without_a_gpu_every_kernel_of_both_has_a_row():
    """Our kernel passed as a learner's is compiled to the same code."""
    for size, yours, ours in learner_decoding.reports(my_decode, learner.CAPABILITY):
        assert [report.kernel for report in yours] == ["_partial", "_merge"], size
        assert [(r.registers, r.shared, r.spilled) for r in yours] == [
            (r.registers, r.shared, r.spilled) for r in ours
        ]


@pytest.mark.skipif(not INTERPRETED, reason="where there is a GPU, kernels are timed")
def test_the_table_has_yours_and_ours(monkeypatch):
    monkeypatch.setattr(learner_decoding, "DS", (64,))
    table = bench.mine(solutions.solution("decode"))
    assert [row[:3] for row in table.rows] == [
        ("d = 64", "yours", "part_kernel"), ("d = 64", "yours", "merge_kernel"),
        ("d = 64", "ours", "_partial"), ("d = 64", "ours", "_merge"),
    ]  # fmt: skip


def test_the_solution_of_the_capstone_spills_nothing():
    for report in learner_kernels.reports(solutions.solution("decode"), "decode", d=128):
        assert report.fits and not report.spilled and report.programs >= 2


def test_an_unwritten_function_is_reported():
    def my_decode(Q, K, V, lengths, table, parts):
        raise NotImplementedError

    assert repr(bench.mine(my_decode)) == "not solved yet"


def test_a_step_is_verified_and_timed_in_pages(no_gpu):
    table = learner._decoding_timed(my_decode)
    assert (
        table.heads[1:] == ("yours", "ours", "sdpa", "yours / ours") and "pages of 64, G, torch 1" in table.title
    )
    assert [row[0] for row in table.rows] == ["B = 1, N = 70", "B = 2, N = 130"]
    for row in table.rows:
        assert row[3] > row[2] > row[1] > 0 and row[4] == round(row[1] / row[2], 2)


@pytest.mark.parametrize(
    "wrong, amount",
    [(lambda O: O[0] * 1.1, "few"), (lambda O: O[0] * torch.nan, "all")],
    ids=["values", "nan"],
)
def test_a_wrong_function_is_not_timed(wrong, amount, no_gpu, capsys):
    table = learner._decoding_timed(lambda *given: wrong(my_decode(*given)))
    assert all(row[1] == row[4] == "-" and row[2] > 0 for row in table.rows)
    assert capsys.readouterr().out.count("O of yours at DecodeSize") == 2


@pytest.mark.gpu
def test_on_a_gpu_yours_is_timed_with_ours():
    (row, *_) = bench.mine(solutions.solution("decode")).rows
    assert all(us > 0 for us in row[1:])


def test_parts_are_those_of_our_kernel():
    problem = decode.DecodeProblem(decode.DecodeSize(2, 4, 2, 200, 16), "cpu", cold=0)
    assert decode.parts_of(problem) >= 1
