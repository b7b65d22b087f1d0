"""A GPT learns the same with our attention as with torch's; the bench verifies, trains and records every run."""

import functools
import itertools
import json

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from flashlib import kernels
from flashlib.bench import gpt
from flashlib.bench.common import harness
from flashlib.lm import tokenizer
from flashlib.lm.model import LM, Config
from flashlib.lm.training import train

TEXT = "to be or not to be, that is the question "
SIZES = {"layers": 1, "width": 32, "heads": 2, "kv_heads": 2, "context": 18}
BY_NAME = {run.name: run for run in gpt.RUNS}


def sdpa(Q, K, V, causal):
    return scaled_dot_product_attention(Q, K, V, is_causal=causal, enable_gqa=True)


@pytest.fixture
def problem(monkeypatch):
    monkeypatch.setattr(gpt, "SHORT", 2)
    return gpt.TrainingProblem(TEXT, SIZES, batch=1, steps=3, device=kernels.DEVICE)


@pytest.fixture
def clock(monkeypatch):
    """Every step takes 2 ms and 5 MB."""

    def watch(steps):
        results = list(steps)
        return results, [2.0] * len(results), 5_000_000

    monkeypatch.setattr(harness, "watch", watch)
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_the_losses_are_those_of_sdpa(kv_heads, device):
    tokens, alphabet = tokenizer.encode_characters(TEXT)
    config = Config(vocab=len(alphabet), **SIZES | {"kv_heads": kv_heads})

    def losses(attention):
        small = LM(config, attention).to(device)
        steps = train(small, tokens.to(device), 4, batch=1, lr=1e-2)
        return torch.tensor([loss.item() for loss in steps])

    atol = 1e-5 if device == "cpu" else 0.03  # on a GPU in bf16
    torch.testing.assert_close(losses(gpt.ours), losses(sdpa), atol=atol, rtol=0)


@pytest.mark.parametrize("amount", ["few", "all"])
def test_every_run_is_verified_trained_and_recorded(amount, problem, clock, tmp_path, capsys, monkeypatch):
    whole = ["ours", "sdpa_flash", "sdpa_flash_again", "sdpa_flash_third"]
    short = ["eager", "ours_checkpointed", "ours_compiled"]
    assert [run.name for run in gpt.RUNS] == whole + short
    if amount == "few":
        whole, short = whole[:2] + whole[3:], short[1:2]
        monkeypatch.setattr(gpt, "RUNS", [run for run in gpt.RUNS if run.name in whole + short])
    rows, apart = gpt.measure(problem)
    assert [row["run"] for row in rows] == whole + short
    for row in rows:
        assert (row["ms"], row["mb"]) == (2.0, 5), row
        assert len(row["loss"]) == (3 if BY_NAME[row["run"]].whole else 2)
        assert row["loss"] == pytest.approx(rows[0]["loss"][: len(row["loss"])], abs=0.03)
    assert [(pair["one"], pair["other"]) for pair in apart] == list(itertools.combinations(whole, 2))
    by_name = {row["run"]: row for row in rows}
    for pair in apart:
        assert pair["apart"] == pytest.approx(
            gpt.difference(by_name[pair["one"]], by_name[pair["other"]]), abs=1e-4
        )
    assert "ours and sdpa_flash_third: smoothed curves at most 0.0" in capsys.readouterr().out
    harness.write(tmp_path / "gpt.json", {"gpu": "none", "runs": rows})
    assert json.loads((tmp_path / "gpt.json").read_text())["runs"] == rows


def test_a_run_that_fails_stops_only_if_it_is_needed(problem, clock):
    def fail(Q, K, V, causal):
        raise RuntimeError("no compiler\nsecond line")

    run = BY_NAME["eager"]._replace(attention=fail)
    with pytest.raises(RuntimeError, match="no compiler"):
        gpt.train(run, problem)
    row = gpt.train(run._replace(needed=False), problem)
    assert row["ms"] is None and row["loss"] == [] and row["reason"] == "RuntimeError: no compiler"
    assert gpt.line(row).endswith("no compiler")


@pytest.mark.parametrize(
    "wrong, amount",
    [
        (lambda Q, K, V, causal: sdpa(Q, K, V, False), "all"),
        (lambda Q, K, V, causal: V, "all"),
        (lambda Q, K, V, causal: sdpa(2 * Q, K, V, causal), "few"),
    ],
    ids=["sees the future", "sees itself", "another scale"],
)
def test_a_wrong_model_is_refused_at_its_real_width(wrong, amount, clock):
    sizes = gpt.SIZES | {"layers": 2, "context": 40}
    problem = gpt.TrainingProblem(TEXT * 2, sizes, batch=1, steps=1, device=kernels.DEVICE)
    with pytest.raises(AssertionError, match="eager's model is wrong: error"):
        gpt.train(BY_NAME["eager"]._replace(attention=wrong), problem)


def test_a_wrong_first_loss_is_refused(problem, clock):
    problem.loss *= 1.01
    with pytest.raises(AssertionError, match="eager is wrong: its first loss is"):
        gpt.train(BY_NAME["eager"], problem)


def test_smoothed_curves_are_compared_up_to_the_end_of_the_shorter():
    one, other = {"loss": [1.0] * 40}, {"loss": [1.0] * 20 + [3.0] * 5}
    assert gpt.difference(one, one) == 0
    assert gpt.difference(one, other) == pytest.approx(2 * 5 / gpt.WINDOW)
    assert gpt.smooth([1.0, 2.0]).tolist() == [1.5]


def test_the_text_is_available():
    text = gpt.TEXT.read_text(encoding="utf-8")
    assert 200_000 < len(text) < 300_000 and text.startswith("First Citizen:") and text.endswith("\n")
    Config(vocab=len(set(text)), **gpt.SIZES)
