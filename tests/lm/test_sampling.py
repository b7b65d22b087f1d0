"""The next token: as likely as in the model, and determined only by seed and place."""

import math

import numpy as np
import pytest
import torch

from flashlib.lm import sampling
from flashlib.lm.sampling import choose
from tests.lm.small import some


def test_tokens_are_drawn_as_often_as_they_are_likely():
    logits = torch.tensor([0.0, -math.inf, 1.0, 2.0, -1.0]).clamp(min=-1e30)
    for temperature in (1.0, 0.5, 2.0):
        p = torch.softmax(logits.double() / temperature, 0).numpy()
        n = 4000
        counts = np.bincount([choose(logits, temperature, 7, at) for at in range(n)], minlength=5)
        assert (np.abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all(), (counts, n * p)


def test_temperature_0_is_the_likeliest_and_a_small_one_nearly_so():
    logits = torch.tensor(some(61)).float() / 7
    logits[13] = 9
    for temperature in (0, 0.0, 1e-3, 1e-300, 5e-324):
        assert {choose(logits, temperature, seed, 0) for seed in range(20)} == {13}


@pytest.mark.parametrize("drawn, token", [(0.0, 1), (1 - 2**-53, 3)])
def test_a_token_that_cannot_come_is_never_drawn(drawn, token, monkeypatch):
    monkeypatch.setattr(sampling, "drawn", lambda seed, place: drawn)
    assert choose(torch.tensor([-1e30, 0.3, 0.1, 0.7, -1e30]), 1.0, 0, 0) == token


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_logits_may_be_an_array(dtype):
    logits = np.array(some(61)).astype(dtype)
    for place in range(20):
        for temperature in (0, 1.0):
            chosen = [choose(X, temperature, 3, place) for X in (logits, torch.from_numpy(logits))]
            assert chosen[0] == chosen[1]


def test_seed_and_place_decide_what_is_drawn():
    flat = torch.zeros(1000)
    drawn = [[choose(flat, 1.0, seed, place) for place in range(30)] for seed in (0, 1)]
    assert drawn[0] == [choose(flat, 1.0, 0, place) for place in range(30)]
    assert sum(a == b for a, b in zip(*drawn, strict=True)) < 5 and len(set(drawn[0])) > 25


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_nan_logits_are_refused(bad, temperature):
    with pytest.raises(ValueError, match="logits hold NaN or infinity"):
        choose(torch.tensor([0.0, bad, 1.0]), temperature, 0, 0)
