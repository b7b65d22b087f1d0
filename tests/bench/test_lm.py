"""Training the language model: the best weights are saved, wrong attention and a wrong cache are refused."""

import sys

import pytest
import torch

from flashlib import kernels
from flashlib.bench import lm
from flashlib.lm import checkpoint, tokenizer
from flashlib.lm.model import LM, Config, sdpa

CONFIG = Config(vocab=256, layers=1, width=32, heads=2, kv_heads=1, context=16)
TEXT = "to be or not to be, " * 9


def small(attention=lm.ours):
    return LM(CONFIG, attention).to(kernels.DEVICE)


def test_a_model_is_trained_with_our_attention_saved_and_checked(tmp_path, capsys):
    tokens, held_out = lm.split(TEXT, kernels.DEVICE)
    assert len(tokens) == 162 and len(held_out) == 18
    trained = small()
    before = lm.held_out_loss(trained, held_out)
    lm.verify(trained, tokens[None, :16])
    best = lm.train(trained, tokens, held_out, 2, batch=3, every=1)
    assert best["step"] == 2 and best["loss"] < before
    assert lm.held_out_loss(trained, held_out) == pytest.approx(best["loss"], abs=1e-3)
    path = tmp_path / "lm.safetensors"
    checkpoint.save(trained, path, **best, versions="none")
    capsys.readouterr()
    lm.check(path, n=9)
    said = capsys.readouterr().out
    assert f"loss {best['loss']}" in said and "step 2" in said and "versions none" in said
    assert said.count("ROMEO:") == 2


def test_the_held_out_loss_is_over_all_full_contexts():
    tokens = torch.tensor(tokenizer.encode(TEXT[:37]), device=kernels.DEVICE)
    trained = small(sdpa)
    given = lm.held_out_loss(trained, tokens)
    with torch.no_grad():
        logits = torch.cat([trained(tokens[at : at + 16][None])[0] for at in (0, 16)]).double()
    exact = -logits.log_softmax(-1)[torch.arange(32), tokens[1:33]].mean().item()
    assert abs(given - exact) < (1e-5 if kernels.INTERPRETED else 1e-2)


def test_the_weights_with_the_lowest_loss_are_saved(monkeypatch):
    tokens, _ = lm.split(TEXT, kernels.DEVICE)
    trained, seen = small(sdpa), []
    losses = iter([3.0, 2.0, float("nan"), 2.5])

    def loss_of(model, held_out):
        seen.append({name: W.clone() for name, W in model.state_dict().items()})
        return next(losses)

    monkeypatch.setattr(lm, "held_out_loss", loss_of)
    assert lm.train(trained, tokens, None, 7, batch=2, every=2) == {"loss": 2.0, "step": 4}
    for name, W in trained.state_dict().items():
        assert torch.equal(W, seen[1][name])
    assert not torch.equal(seen[1]["embedding.weight"], seen[3]["embedding.weight"])


def test_a_loss_that_is_not_a_number_is_refused(monkeypatch):
    monkeypatch.setattr(lm, "held_out_loss", lambda of, held_out: float("nan"))
    tokens, _ = lm.split(TEXT, kernels.DEVICE)
    with pytest.raises(AssertionError, match="never a number"):
        lm.train(small(sdpa), tokens, None, 2, batch=2)


def test_a_wrong_attention_is_refused():
    def wrong(Q, K, V, causal):
        return sdpa(Q, K, V, False)

    with pytest.raises(AssertionError, match="the model is wrong: error"):
        lm.verify(small(wrong), torch.tensor([tokenizer.encode(TEXT[:16])], device=kernels.DEVICE))


def test_a_file_that_writes_a_different_text_with_a_cache_is_refused(tmp_path, monkeypatch):
    checkpoint.save(small(), tmp_path / "lm.safetensors")
    monkeypatch.setattr(lm, "gathered", lambda Q, K, V, layer, new: torch.randn_like(Q))
    with pytest.raises(AssertionError, match="at temperature 0 the text differs with a cache"):
        lm.check(tmp_path / "lm.safetensors", n=9)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_is_trained_with_sdpa_and_the_file_says_so(tmp_path, monkeypatch):
    path = tmp_path / "lm.safetensors"
    monkeypatch.setattr(sys, "argv", ["lm", "--out", str(path), "--steps", "1"])
    monkeypatch.setattr(lm, "BATCH", 2)
    monkeypatch.setattr(lm, "check", lambda path: None)
    monkeypatch.setattr(lm, "CONFIG", CONFIG)
    lm.main()
    about = checkpoint.load(path)[1]
    assert about["attention"] == "SDPA" and about["step"] == "1" and "cpu" in about and "gpu" not in about
