"""The fastest tile comes first, with the speed that follows from its time; with a made-up clock."""

import functools
import sys
from types import SimpleNamespace

import pytest
import torch

from flashlib import torch_ref
from flashlib.bench import tune
from flashlib.bench.common import harness
from flashlib.kernels import forward

CHOICES = {"B_r": (64, 128), "B_c": (32, 64), "num_warps": (4,), "num_stages": (1, 2)}


@pytest.fixture
def asked(monkeypatch):
    """The calls: the more rows a tile has, the longer it takes, and the less the more keys and stages it has."""
    asked = []

    def attention(Q, K, V, *, causal, B_r, B_c, num_warps, num_stages):
        if B_r * B_c == 128 * 64:
            raise ValueError("it does not fit")
        asked.append((tuple(Q.shape), causal))
        return torch_ref.attention(Q, K, V, causal=causal)

    def median_ms(run, rep_ms):
        options = run.__defaults__[0]
        return options["B_r"] / options["B_c"] / options["num_stages"]

    monkeypatch.setattr(tune, "CHOICES", CHOICES)
    monkeypatch.setattr(tune, "HEADS", 3)
    monkeypatch.setattr(tune, "BenchProblem", functools.partial(tune.BenchProblem, device="cpu"))
    monkeypatch.setattr(forward, "attention", attention)
    monkeypatch.setattr(harness, "median_ms", median_ms)
    return asked


@pytest.mark.parametrize("causal", [False, True])
def test_the_fastest_comes_first_with_its_tflops(causal, asked):
    ranked = tune.rank(16, 48, causal, torch.float32, tokens=100)
    assert set(asked) == {((2, 3, 48, 16), causal)} and len(ranked) == 6
    flops = 2 * 3 * 4 * 48 * 48 * 16 / (2 if causal else 1)
    for tflops, options in ranked:
        assert tflops == pytest.approx(flops / (options["B_r"] / options["B_c"] / options["num_stages"]) / 1e9)
    assert [tflops for tflops, _ in ranked] == sorted((tflops for tflops, _ in ranked), reverse=True)
    assert ranked[0][1] == {"B_r": 64, "B_c": 64, "num_warps": 4, "num_stages": 2}


def test_a_wrong_choice_is_not_ranked(asked, monkeypatch):
    monkeypatch.setattr(forward, "attention", lambda Q, K, V, **options: SimpleNamespace(O=V))
    with pytest.raises(AssertionError, match="O of {'B_r': 64.* is wrong"):
        tune.rank(16, 48, False, torch.float32)


def test_a_dozen_are_shown_and_all_are_counted(monkeypatch, capsys):
    ranked = [(100.25 - k, {"B_r": 64, "B_c": 32, "num_warps": 4, "num_stages": k}) for k in range(20)]
    given = []
    monkeypatch.setattr(tune, "rank", lambda *of: given.append(of) or ranked)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(harness, "environment", lambda: {"gpu": "none"})
    monkeypatch.setattr(sys, "argv", ["tune", "--d", "64", "--N", "512", "--causal", "--dtype", "float16"])
    tune.main()
    assert given == [(64, 512, True, torch.float16)]
    first, heads, *rows, last = capsys.readouterr().out.splitlines()
    assert first == "none, d=64, N=512, causal=True, float16" and last == "20 of 36 choices fit this GPU"
    assert heads.split() == [*tune.CHOICES, "TFLOP/s"]
    assert [row.split() for row in rows] == [["64", "32", "4", str(k), f"{100.25 - k:.1f}"] for k in range(12)]
