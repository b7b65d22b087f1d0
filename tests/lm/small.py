"""A small model and its inputs, for all tests that need a model."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from flashlib.lm import cached_attention
from flashlib.lm.model import LM, Config

CONFIG = Config(vocab=61, layers=2, width=64, heads=4, kv_heads=2, context=48)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The products are tiny: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def small(seed=0, device="cpu", dtype=torch.float32, **sizes):
    """Return a model of random weights, so large that each token depends on all before it."""
    model = LM(Config(**vars(CONFIG) | sizes), seed=seed)
    with torch.no_grad():
        for name, W in model.named_parameters():
            W *= {1: 1, 2: 15}[W.ndim] if name != "embedding.weight" else 10
    return model.to(device, dtype)


def way(name, device="cpu"):
    """Return `gathered` or `kernels`; skip kernels where they cannot run on this device."""
    if name == "kernels":
        if not find_spec("triton"):  # imported by flashlib.kernels, which says first how it runs
            pytest.skip("there is no Triton")
        from flashlib.kernels import INTERPRETED

        if device == "cpu" and not INTERPRETED:
            pytest.skip("kernels are compiled here")
    return getattr(cached_attention, name)


def some(n, seed=0):
    return np.random.default_rng(seed).integers(CONFIG.vocab, size=n).tolist()
