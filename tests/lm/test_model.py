"""The language model: a cache does not change a text, however it is cut and batched."""

import contextlib
import math

import numpy as np
import pytest
import torch

from flashlib.cache import OutOfPages
from flashlib.lm import rotary
from flashlib.lm.cached_attention import gathered
from flashlib.lm.model import Config, sdpa
from tests import oracle
from tests.lm.small import CONFIG, one_thread, small, some, way  # noqa: F401, a fixture for all tests here

OVER = ["gathered", "kernels"]
ON_GPU = [pytest.param(over, "cuda", marks=pytest.mark.gpu) for over in OVER]


def logits_of(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens], device=model.embedding.weight.device))[0]


def cut(model, tokens, sizes, over, page=4):
    """Return the logits of tokens that are given to a cache in pieces of these sizes."""
    cache = model.cache(-(-len(tokens) // page), page)
    sequence, found = cache.start()[0], []
    for n in sizes:
        at = int(cache.lengths([sequence])[0])
        found.append(model.step([tokens[at : at + n]], cache, [sequence], over)[0])
    cache.check()
    return torch.cat(found)


def close(given, model, tokens, eps=2**-24):
    """Check logits against fp64: at most four times the error of the model without a cache, plus a rounding."""
    exact = logits_of(small().double(), tokens).numpy()
    plain = logits_of(model, tokens).double().cpu().numpy()
    rounding = 2 * oracle.worst(plain, exact) + 4 * eps * np.abs(exact).max()
    oracle.assert_close(given.double().cpu().numpy(), exact, plain=plain, rounding=rounding)


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
        Config(**vars(CONFIG) | sizes)


@pytest.mark.parametrize("over, temperature", [*(("gathered", n) for n in (0, 1.0, 0.3)), ("kernels", 0.7)])
def test_text_is_the_same_with_a_cache_and_without(over, temperature):
    model, given, ways = small(), some(7), (way(over), None)
    n = 23 if over == "gathered" else 4
    with_cache, without = (list(model.generate(given, n, seed=5, temperature=temperature, over=o)) for o in ways)
    assert with_cache == without and len(set(with_cache)) > n // 3, "the same, and no token again and again"


CHUNKS = [[13], [5, 1, 7], [4, 4, 5], [12, 1], [1] * 13]


@pytest.mark.parametrize("over, sizes", [("gathered", sizes) for sizes in CHUNKS] + [("kernels", CHUNKS[1])])
def test_logits_equal_those_without_a_cache_for_any_chunks(over, sizes):
    model, tokens = small(), some(13)
    close(cut(model, tokens, sizes, way(over)), model, tokens)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("over, device", [("gathered", "cpu"), *ON_GPU])
def test_logits_are_within_the_tolerance_of_the_dtype(dtype, over, device):
    check_dtype(getattr(torch, dtype), over, device)


def test_interpreted_kernels_are_within_the_tolerance_of_bf16():
    check_dtype(torch.bfloat16, "kernels", "cpu")


def check_dtype(dtype, over, device):
    model, tokens = small(device=device, dtype=dtype), some(13)
    logits = cut(model, tokens, [9, 1, 3], way(over, device))
    assert logits.dtype == dtype and logits.device.type == device
    close(logits, model, tokens, eps=torch.finfo(dtype).eps / 2)


@pytest.mark.parametrize("over", OVER)
def test_a_ragged_batch_equals_each_sequence_alone(over):
    model, texts, over = small(), [some(n, seed=n) for n in (3, 16, 9)], way(over)
    cache = model.cache(11, page=4)
    sequences = [cache.start()[0] for _ in texts]
    for sequence, tokens in zip(sequences, texts, strict=True):
        model.step([tokens[:-1]], cache, [sequence], over)
    found = model.step([[tokens[-1]] for tokens in texts], cache, sequences, over)
    for row, tokens in zip(found[:, 0], texts, strict=True):
        torch.testing.assert_close(row, logits_of(model, tokens)[-1], atol=1e-4, rtol=0)
    cache.check()


@pytest.mark.parametrize("over", OVER)
def test_pages_that_are_shared_by_content_give_the_same_logits(over):
    model, tokens, over = small(), some(14), way(over)
    cache = model.cache(7, page=4)
    first, known = cache.start(tokens)
    model.step([tokens], cache, [first], over)
    other = [*tokens[:9], 3, 4]
    second, known = cache.start(other)
    assert known == 8
    given = model.step([other[known:]], cache, [second], over)[0]
    torch.testing.assert_close(given, logits_of(model, other)[known:], atol=1e-4, rtol=0)


def test_an_interrupted_text_continues_as_it_would_have():
    model, prompt = small(), some(5)
    whole = list(model.generate(prompt, 20, seed=3))
    for at in (1, 8, 19):
        assert list(model.generate(prompt + whole[:at], 20 - at, seed=3)) == whole[at:]
    assert list(model.generate(prompt, 20, seed=4)) != whole
    iterated = model.generate(prompt, 20, seed=3)
    assert [next(iterated) for _ in range(3)] == whole[:3], "one at a time"


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_attention_in_training_gets_rotated_heads(kv_heads):
    seen = []

    def attention(Q, K, V, causal):
        seen.append((tuple(Q.shape), tuple(K.shape), tuple(V.shape), causal))
        return sdpa(Q, K, V, causal)

    model = small(kv_heads=kv_heads)
    expected = model(torch.tensor([some(9), some(9, seed=1)]))
    model.attention = attention
    torch.testing.assert_close(model(torch.tensor([some(9), some(9, seed=1)])), expected)
    assert seen == [((2, 4, 9, 16), (2, kv_heads, 9, 16), (2, kv_heads, 9, 16), True)] * 2


def test_angles_stay_in_fp32_beside_weights_of_another_dtype():
    model = small(dtype=torch.bfloat16)
    for X, exact in zip(model.angles, rotary.angles(CONFIG.context, 16, device="cpu"), strict=True):
        assert torch.equal(X, exact) and X.dtype == torch.float32
    assert model.state_dict().keys() == dict(model.named_parameters()).keys(), "a file has only weights"


def test_positions_matter_and_later_tokens_do_not_change_earlier_logits():
    model, tokens = small(), some(9)
    swapped, other = [tokens[1], tokens[0], *tokens[2:]], [*tokens[:5], (tokens[5] + 1) % 61, *tokens[6:]]
    plain, swapped, other = (logits_of(model, given) for given in (tokens, swapped, other))
    assert (plain[-1] - swapped[-1]).abs().max() > 1e-3
    assert (plain != other).any(-1).tolist() == [False] * 5 + [True] * 4


@pytest.mark.parametrize(
    "tokens, sequences, error, message",
    [
        ([[61]], [0], ValueError, "tokens go from 61 to 61; accepted are 0 to 60"),
        ([[-1]], [0], ValueError, "tokens go from -1 to -1"),
        ([[1.0]], [0], TypeError, "tokens have dtype torch.float32; pass whole numbers"),
        ([[True]], [0], TypeError, "tokens have dtype torch.bool"),
        ([1], [0], ValueError, r"tokens have shape \(1,\) and there are 1 sequences; pass \(B, n\)"),
        ([[]], [0], ValueError, r"tokens have shape \(1, 0\)"),
        ([[1], [2]], [0], ValueError, r"tokens have shape \(2, 1\) and there are 1 sequences"),
        ([[1], [2, 3]], [0, 1], TypeError, r"tokens are not \(B, n\) whole numbers"),
        ([[1], [2]], [0, 0], ValueError, r"sequences are \[0, 0\]; pass each once"),
        ([[1], [2]], [0, 7], ValueError, "there is no sequence 7"),
        ([[1] * 46], [0], ValueError, "a sequence would have 49 tokens; this model's context is 48"),
        ([[1] * 6] * 2, [0, 1], OutOfPages, "6 more tokens need 1 pages"),
    ],
)
def test_a_refused_step_changes_nothing(tokens, sequences, error, message):
    model, cache = small(), small().cache(4, page=4)
    for n in (3, 2):
        model.step([some(n)], cache, [cache.start()[0]])
    used, lengths = cache.used, cache.lengths([0, 1]).tolist()
    with pytest.raises(error, match=message):
        model.step(tokens, cache, sequences)
    assert (cache.used, cache.lengths([0, 1]).tolist()) == (used, lengths)
    cache.check()


def test_a_failed_step_leaves_no_token_that_could_be_shared():
    model, tokens = small(), some(13)
    cache = model.cache(5, page=4)
    sequence, _ = cache.start(tokens)
    model.step([tokens[:3]], cache, [sequence])

    def fails(Q, K, V, layer, new):
        if layer:
            raise KeyboardInterrupt
        return gathered(Q, K, V, layer, new)

    with contextlib.suppress(KeyboardInterrupt):
        model.step([tokens[3:]], cache, [sequence], fails)
    assert cache.lengths([sequence]).tolist() == [3] and cache.start(tokens)[1] == 0
    given = model.step([tokens[3:]], cache, [sequence])[0]
    torch.testing.assert_close(given, logits_of(model, tokens)[3:], atol=1e-4, rtol=0)
    cache.check()


@pytest.mark.parametrize(
    "given, error, message",
    [
        ({"prompt": "a"}, TypeError, r"the prompt is a str; pass its tokens: tokenizer.encode\(prompt\)"),
        ({"prompt": []}, ValueError, "the prompt is empty"),
        ({"prompt": [61]}, ValueError, "tokens go from 61"),
        ({"n": 46}, ValueError, "the prompt has 3 tokens and 46 are to follow; together they are at most 48"),
        ({"n": 0}, ValueError, "n is 0"),
        ({"temperature": -1}, ValueError, "temperature is -1; pass at least 0"),
        ({"temperature": math.nan}, ValueError, "temperature is nan"),
        ({"temperature": math.inf}, ValueError, "temperature is inf"),
        ({"temperature": "hot"}, TypeError, "temperature is 'hot'"),
        ({"seed": -1}, ValueError, "seed is -1"),
    ],
)
def test_impossible_requests_are_refused_at_the_call(given, error, message):
    with pytest.raises(error, match=message):
        small().generate(**{"prompt": [1, 2, 3], "n": 4} | given)


def test_the_whole_context_can_be_written():
    model = small()
    assert len(list(model.generate(some(3), 45))) == 45
    with pytest.raises(ValueError, match="N = 49; this model's context is 48"):
        logits_of(model, some(49))
    cache = model.cache(4)
    sequence, _ = cache.start()
    model.step([some(47)], cache, [sequence])
    model.step([[60]], cache, [sequence])  # the last place, and the last token
    with pytest.raises(ValueError, match="would have 49 tokens; this model's context is 48"):
        model.step([[60]], cache, [sequence])


@pytest.mark.parametrize("kind", [tuple, np.array, torch.tensor])
def test_a_prompt_is_any_list_of_numbers(kind):
    model = small()
    assert list(model.generate(kind(some(5)), 4)) == list(model.generate(some(5), 4))
