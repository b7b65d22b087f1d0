"""A model that is stored: it comes back the same, and a file without one is refused."""

import pytest
import torch
from safetensors.torch import save_file

from flashlib.bench.lm import CONFIG as TRAINED
from flashlib.lm import checkpoint
from flashlib.lm.model import LM
from tests.lm.small import CONFIG, one_thread, small, some  # noqa: F401, a fixture for all tests here


def test_a_loaded_model_writes_the_same_as_the_saved_one(tmp_path):
    model, path = small(), tmp_path / "new" / "model.safetensors"
    with torch.no_grad():
        for W in model.parameters():
            W.copy_(W.half())
    checkpoint.save(model, path, loss=1.25, gpu="none")
    for device in ("cpu", None):
        again, about = checkpoint.load(path, device=device)
        assert about == {"loss": "1.25", "gpu": "none"} and again.config == CONFIG
        for name, W in model.state_dict().items():
            same = again.state_dict()[name]
            assert same.dtype == torch.float32 and torch.equal(W, same)
        assert list(again.generate(some(5), 9)) == list(model.generate(some(5), 9))


def test_the_models_weights_are_below_3_mb(tmp_path):
    path = tmp_path / "model.safetensors"
    checkpoint.save(LM(TRAINED), path)
    assert sum(W.numel() for W in LM(TRAINED).parameters()) == 754_816
    assert 2 * 754_816 < path.stat().st_size < 1.6e6


def test_a_file_without_a_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="python -m flashlib.bench.lm --out .*none trains a model"):
        checkpoint.load(tmp_path / "none")
    garbage, other, partly = (tmp_path / name for name in ("garbage", "other", "partly"))
    garbage.write_bytes(b"\x00" * 100)
    save_file({"W": torch.zeros(2)}, other)
    model = small()
    model.norm = torch.nn.Identity()
    checkpoint.save(model, partly)
    for path, reason in ((garbage, ""), (other, "its format is None"), (partly, 'Missing key.*"norm.weight"')):
        with pytest.raises(
            ValueError, match=f"(?s){path.name} has no model that flashlib.lm.checkpoint.save wrote: .*{reason}"
        ):
            checkpoint.load(path)
