"""Training: what it refuses, that weights and batches follow the seed, and that the model learns."""

import math
from itertools import islice

import pytest
import torch

from flashlib import torch_ref
from flashlib.lm import tokenizer
from flashlib.lm.model import LM, Config, sdpa
from flashlib.lm.training import batches, train

SIZES = {"vocab": 11, "layers": 2, "width": 24, "heads": 4, "kv_heads": 2, "context": 9}


def model(attention=sdpa, seed=0, **sizes):
    return LM(Config(**SIZES | sizes), attention, seed=seed)


def losses(text="to be or not to be, " * 20, attention=sdpa, steps=5, seed=0, batch=3, lr=1e-2, **sizes):
    tokens, alphabet = tokenizer.encode_characters(text)
    small = model(attention, vocab=len(alphabet), **sizes)
    return [loss.item() for loss in train(small, tokens, steps, batch=batch, lr=lr, seed=seed)]


def test_tokens_that_do_not_fit_are_refused():
    tokens = torch.arange(12) % 11
    with pytest.raises(ValueError, match="N = 10; this model's context is 9"):
        model()(tokens[None, :10])
    with pytest.raises(ValueError, match="tokens go up to 11; this model's vocab is 11"):
        next(train(model(), tokens + 1, 1, batch=2))
    with pytest.raises(ValueError, match=r"tokens has shape \(9,\); expected one axis, longer than 9"):
        next(train(model(), tokens[:9], 1, batch=2))
    next(train(model(), tokens[:10], 1, batch=2))  # one token more than the context is enough
    for arguments in ({"steps": 0, "batch": 2}, {"steps": 1, "batch": 0}):
        with pytest.raises(ValueError, match="is 0; accepted are whole numbers of at least 1"):
            next(train(model(), tokens, **arguments))


def test_weights_and_batches_are_those_of_the_seed():
    torch.manual_seed(1)
    first = model()
    torch.manual_seed(2)
    for W, same in zip(first.parameters(), model().parameters(), strict=True):
        assert torch.equal(W, same)
    assert not torch.equal(first.embedding.weight, model(seed=1).embedding.weight)
    tokens = torch.arange(50)
    for X, Y in islice(batches(tokens, 9, 4), 3):
        assert X.shape == Y.shape == (4, 9) and torch.equal(X + 1, Y)
    one, again, other = (torch.cat([X for X, _ in islice(batches(tokens, 9, 4, s), 3)]) for s in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert losses() == losses() != losses(seed=1)


def test_every_start_is_used():
    starts = torch.cat([X[:, 0] for X, _ in islice(batches(torch.arange(12), 9, 4), 50)])
    assert set(starts.tolist()) == {0, 1, 2}


def test_the_loss_starts_at_that_of_guessing_and_falls():
    found = losses(steps=60)
    assert abs(found[0] - torch.tensor(8.0).log()) < 0.3  # "to be, rn" has 8 characters
    assert found[-1] < found[0] / 3


def test_other_attention_gives_the_same_losses():
    def standard(Q, K, V, causal):
        return torch_ref.attention(Q, K, V, causal=causal).O

    given, expected = losses(attention=standard, kv_heads=4), losses(kv_heads=4)
    torch.testing.assert_close(torch.tensor(given), torch.tensor(expected), atol=1e-5, rtol=0)


def test_it_learns():
    text = torch.tensor(tokenizer.encode("to be or not to be, " * 20))
    model = LM(Config(vocab=256, layers=1, width=32, heads=2, kv_heads=1, context=16))
    losses = [loss.item() for loss in train(model, text, 60, batch=4, lr=1e-2)]
    assert abs(losses[0] - math.log(256)) < 0.3 and losses[-1] < losses[0] / 3
