"""The small GPT: what it refuses, that no letter sees a later one, and that it learns."""

from itertools import islice

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from flashlib import torch_ref
from flashlib.lm import gpt

SIZES = {"vocab": 11, "layers": 2, "width": 24, "heads": 4, "kv_heads": 2, "context": 9}


def sdpa(Q, K, V, causal):
    return scaled_dot_product_attention(Q, K, V, is_causal=causal, enable_gqa=True)


def model(attention=sdpa, seed=0, **sizes):
    return gpt.GPT(gpt.Config(**SIZES | sizes), attention, seed=seed)


def losses(text="to be or not to be, " * 20, attention=sdpa, steps=5, seed=0, batch=3, lr=1e-2, **sizes):
    tokens, alphabet = gpt.encode(text)
    small = model(attention, vocab=len(alphabet), **sizes)
    return [loss.item() for loss in gpt.train(small, tokens, steps, batch=batch, lr=lr, seed=seed)]


@pytest.mark.parametrize(
    "sizes, error, message",
    [
        ({"kv_heads": 3}, ValueError, "heads is 4; with kv_heads 3 it must be a multiple"),
        ({"width": 20}, ValueError, r"width is 20; it must be a multiple of 2 \* heads, 8"),
        ({"layers": 0}, ValueError, "layers is 0"),
        ({"context": 4.0}, TypeError, "context is 4.0"),
    ],
)
def test_impossible_sizes_are_refused(sizes, error, message):
    with pytest.raises(error, match=message):
        gpt.Config(**SIZES | sizes)


def test_what_does_not_fit_is_refused():
    tokens = torch.arange(12) % 11
    with pytest.raises(ValueError, match="N = 10; this model's context is 9"):
        model()(tokens[None, :10])
    with pytest.raises(ValueError, match="tokens go up to 11; this model's vocab is 11"):
        next(gpt.train(model(), tokens + 1, 1, batch=2))
    with pytest.raises(ValueError, match=r"tokens has shape \(9,\); expected one axis, longer than 9"):
        next(gpt.train(model(), tokens[:9], 1, batch=2))
    for arguments in ({"steps": 0, "batch": 2}, {"steps": 1, "batch": 0}):
        with pytest.raises(ValueError, match="is 0; accepted are whole numbers of at least 1"):
            next(gpt.train(model(), tokens, **arguments))


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_attention_is_given_heads(kv_heads):
    seen = []

    def attention(Q, K, V, causal):
        seen.append((Q.shape, K.shape, V.shape, causal))
        return sdpa(Q, K, V, causal)

    logits = model(attention, kv_heads=kv_heads)(torch.zeros(3, 7, dtype=torch.int64))
    assert logits.shape == (3, 7, 11)
    assert seen == [((3, 4, 7, 6), (3, kv_heads, 7, 6), (3, kv_heads, 7, 6), True)] * SIZES["layers"]


def test_a_later_token_changes_no_earlier_logit():
    small = model()
    tokens = torch.randint(11, (1, 9), generator=torch.Generator().manual_seed(0))
    other = tokens.clone()
    other[0, 5] = (other[0, 5] + 1) % 11
    changed = (small(tokens) != small(other)).any(dim=-1)[0]
    assert changed.tolist() == [False] * 5 + [True] * 4


def test_a_token_far_back_is_seen_and_its_place_counts():
    small = model()
    tokens, swapped = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[2, 1, 3, 4, 5]])
    assert not torch.allclose(small(tokens)[0, -1], small(swapped)[0, -1], atol=1e-6)


def test_rotary_scores_depend_on_the_distance_alone():
    small = model(context=64)
    Q, K = torch.randn(2, 64, 1, 6, generator=torch.Generator().manual_seed(0))[:, :1].expand(2, 64, 1, 6)
    Q, K = (gpt.rotate(X.transpose(0, 1), small.cos, small.sin)[0] for X in (Q, K))
    S = Q @ K.T
    torch.testing.assert_close(S[1:, 1:], S[:-1, :-1], atol=1e-5, rtol=0)
    assert (S[0] - S[0, 0]).abs().max() > 0.1


def test_weights_and_batches_are_those_of_the_seed():
    torch.manual_seed(1)
    first = model()
    torch.manual_seed(2)
    for W, same in zip(first.parameters(), model().parameters(), strict=True):
        assert torch.equal(W, same)
    assert not torch.equal(first.embedding.weight, model(seed=1).embedding.weight)
    tokens = torch.arange(50)
    for X, Y in islice(gpt.batches(tokens, 9, 4), 3):
        assert X.shape == Y.shape == (4, 9) and torch.equal(X + 1, Y)
    one, again, other = (torch.cat([X for X, _ in islice(gpt.batches(tokens, 9, 4, s), 3)]) for s in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert losses() == losses() != losses(seed=1)


def test_every_start_is_taken():
    starts = torch.cat([X[:, 0] for X, _ in islice(gpt.batches(torch.arange(12), 9, 4), 50)])
    assert set(starts.tolist()) == {0, 1, 2}


def test_characters_are_numbers():
    tokens, alphabet = gpt.encode("abba c")
    assert alphabet == [" ", "a", "b", "c"] and tokens.tolist() == [1, 2, 2, 1, 0, 3]


def test_the_loss_starts_at_that_of_a_guess_and_falls():
    found = losses(steps=60)
    assert abs(found[0] - torch.tensor(8.0).log()) < 0.3  # "to be, rn" has 8 characters
    assert found[-1] < found[0] / 3


def test_other_attention_gives_the_same_losses():
    def standard(Q, K, V, causal):
        return torch_ref.attention(Q, K, V, causal=causal).O

    given, expected = losses(attention=standard, kv_heads=4), losses(kv_heads=4)
    torch.testing.assert_close(torch.tensor(given), torch.tensor(expected), atol=1e-5, rtol=0)
