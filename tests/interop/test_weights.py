"""The small pretrained model: it is what its hash says, and writes the same text with ours as with eager."""

import os

import pytest

from flashlib.interop import weights
from tests import required


def test_without_weights_a_sentence_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLIB_MODELS", str(tmp_path))
    assert not weights.are_here() and weights.folder().parent == tmp_path
    with pytest.raises(
        FileNotFoundError, match=f"weights of {weights.NAME} are not in .*: run make models"
    ) as error:
        weights.load()
    assert "\n" not in str(error.value)
    with pytest.raises(FileNotFoundError, match="no folder of a model: there is no config.json in it"):
        weights.load(tmp_path)


@pytest.mark.parametrize("variables, folder", [({"XDG_CACHE_HOME": "/c"}, "/c"), ({"HOME": "/h"}, "/h/.cache")])
def test_they_lie_in_the_cache_of_the_user(variables, folder, monkeypatch):
    for name in ("XDG_CACHE_HOME", "FLASHLIB_MODELS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if os.name == "posix":
        assert str(weights.folder()) == f"{folder}/flashlib/models/{weights.NAME}"


def test_a_file_of_another_hash_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLIB_MODELS", str(tmp_path / "models"))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=f"has the SHA-256 .*; that of {weights.PACKAGE} is {weights.SHA256}"):
        weights.convert(tmp_path / "model.gguf")
    assert not (tmp_path / "models").exists()


def test_nothing_is_asked_of_the_hub():
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"


PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def loaded():
    required.package("transformers", "run make models")
    if not weights.are_here():
        required.missing("The weights are not here: run make models")
    import torch

    model, tokenizer = weights.load()
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    with torch.no_grad():
        eager = model(ids).logits
    return model, tokenizer, ids, eager


def test_it_speaks(loaded):
    model, tokenizer, ids, _ = loaded
    assert sum(p.numel() for p in model.parameters()) == 134_515_008 and not model.training
    text = model.generate(ids, max_new_tokens=2, do_sample=False)
    assert tokenizer.decode(text[0]) == f"{PROMPT} Paris."


@pytest.mark.parametrize("amount, engine", [("few", "tiles"), ("all", "kernels"), ("all", "torch_ref")])
def test_it_says_the_same_with_ours(amount, engine, loaded):
    import torch

    from flashlib.interop.transformers import register

    model, tokenizer, ids, eager = loaded
    model.set_attn_implementation(register(f"tested_{engine}", engine))
    if engine == "kernels":
        from flashlib import kernels

        model, ids = model.to(kernels.DEVICE), ids.to(kernels.DEVICE)
    try:
        with torch.no_grad():
            logits = model(ids).logits.cpu()
        assert (logits - eager).abs().max() <= 1e-5 * eager.abs().max()
        if amount == "all":
            text = model.generate(ids, max_new_tokens=3, do_sample=False)
            assert tokenizer.decode(text[0]).startswith(f"{PROMPT} Paris.")
    finally:
        model.cpu().set_attn_implementation("eager")
