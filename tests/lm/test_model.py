"""The language model: a text through a cache is the text without one, however it is cut and batched."""

import contextlib
import math
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from flashlib import lm
from flashlib.cache import OutOfPages
from flashlib.lm import gpt
from tests import oracle

CONFIG = gpt.Config(vocab=61, layers=2, width=64, heads=4, kv_heads=2, context=48)
OVER = ["gathered", "kernels"]
ON_GPU = [pytest.param(over, "cuda", marks=pytest.mark.gpu) for over in OVER]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The products are tiny: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def small(seed=0, device="cpu", dtype=torch.float32, **sizes):
    """Return a model of random weights, so large that each token depends on all before it."""
    model = lm.LM(gpt.Config(**vars(CONFIG) | sizes), seed=seed)
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
    return getattr(lm, name)


def some(n, seed=0):
    return np.random.default_rng(seed).integers(CONFIG.vocab, size=n).tolist()


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
    """Hold logits to those in fp64: at most four times the error of the model without a cache, and a rounding."""
    exact = logits_of(small().double(), tokens).numpy()
    plain = logits_of(model, tokens).double().cpu().numpy()
    rounding = 2 * oracle.worst(plain, exact) + 4 * eps * np.abs(exact).max()
    oracle.assert_close(given.double().cpu().numpy(), exact, plain=plain, rounding=rounding)


@pytest.mark.parametrize("over, temperature", [*(("gathered", n) for n in (0, 1.0, 0.3)), ("kernels", 0.7)])
def test_text_written_with_a_cache_is_that_without_one(over, temperature):
    model, given, ways = small(), some(7), (way(over), None)
    n = 23 if over == "gathered" else 4
    with_cache, without = (list(model.generate(given, n, seed=5, temperature=temperature, over=o)) for o in ways)
    assert with_cache == without and len(set(with_cache)) > n // 3, "the same, and no token again and again"


CHUNKS = [[13], [5, 1, 7], [4, 4, 5], [12, 1], [1] * 13]


@pytest.mark.parametrize("over, sizes", [("gathered", sizes) for sizes in CHUNKS] + [("kernels", CHUNKS[1])])
def test_logits_are_those_without_a_cache_whatever_the_chunks(over, sizes):
    model, tokens = small(), some(13)
    close(cut(model, tokens, sizes, way(over)), model, tokens)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("over, device", [("gathered", "cpu"), *ON_GPU])
def test_logits_are_within_the_tolerance_of_the_dtype(dtype, over, device):
    check_dtype(getattr(torch, dtype), over, device)


def test_interpreted_kernels_are_within_the_tolerance_of_bf16():
    check_dtype(torch.bfloat16, "kernels", "cpu")


def check_dtype(dtype, over, device):
    model, tokens = small(device=device, dtype=dtype), some(23)
    logits = cut(model, tokens, [17, 1, 5], way(over, device))
    assert logits.dtype == dtype and logits.device.type == device
    close(logits, model, tokens, eps=torch.finfo(dtype).eps / 2)


@pytest.mark.parametrize("over", OVER)
def test_a_ragged_batch_is_each_alone(over):
    model, texts, over = small(), [some(n, seed=n) for n in (3, 16, 9)], way(over)
    cache = model.cache(11, page=4)
    sequences = [cache.start()[0] for _ in texts]
    for sequence, tokens in zip(sequences, texts, strict=True):
        model.step([tokens[:-2]], cache, [sequence], over)
    for last in (-2, -1):
        found = model.step([[tokens[last]] for tokens in texts], cache, sequences, over)
        for row, tokens in zip(found[:, 0], texts, strict=True):
            torch.testing.assert_close(row, logits_of(model, tokens)[last], atol=1e-4, rtol=0)
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


def test_a_text_that_is_cut_anywhere_goes_on_as_it_would_have():
    model, prompt = small(), some(5)
    whole = list(model.generate(prompt, 20, seed=3))
    for at in (1, 8, 19):
        assert list(model.generate(prompt + whole[:at], 20 - at, seed=3)) == whole[at:]
    assert list(model.generate(prompt, 20, seed=4)) != whole
    iterated = model.generate(prompt, 20, seed=3)
    assert [next(iterated) for _ in range(3)] == whole[:3], "one at a time"


def test_the_attention_of_training_is_given_rotated_heads():
    seen = []

    def attention(Q, K, V, causal):
        seen.append((tuple(Q.shape), tuple(K.shape), tuple(V.shape), causal))
        return scaled_dot_product_attention(Q, K, V, is_causal=causal, enable_gqa=True)

    model = small()
    expected = model(torch.tensor([some(9), some(9, seed=1)]))
    model.attention = attention
    torch.testing.assert_close(model(torch.tensor([some(9), some(9, seed=1)])), expected)
    assert seen == [((2, 4, 9, 16), (2, 2, 9, 16), (2, 2, 9, 16), True)] * 2


def test_places_count_and_no_later_token_changes_an_earlier_logit():
    model, tokens = small(), some(9)
    swapped, other = [tokens[1], tokens[0], *tokens[2:]], [*tokens[:5], (tokens[5] + 1) % 61, *tokens[6:]]
    plain, swapped, other = (logits_of(model, given) for given in (tokens, swapped, other))
    assert (plain[-1] - swapped[-1]).abs().max() > 1e-3
    assert (plain != other).any(-1).tolist() == [False] * 5 + [True] * 4


def test_it_learns():
    text = torch.tensor(lm.encode("to be or not to be, " * 20))
    model = lm.LM(gpt.Config(vocab=256, layers=1, width=32, heads=2, kv_heads=1, context=16))
    losses = [loss.item() for loss in gpt.train(model, text, 60, batch=4, lr=1e-2)]
    assert abs(losses[0] - math.log(256)) < 0.3 and losses[-1] < losses[0] / 3


# choose


def test_tokens_are_drawn_as_often_as_they_are_likely():
    logits = torch.tensor([0.0, -math.inf, 1.0, 2.0, -1.0]).clamp(min=-1e30)
    for temperature in (1.0, 0.5, 2.0):
        p = torch.softmax(logits.double() / temperature, 0).numpy()
        n = 4000
        counts = np.bincount([lm.choose(logits, temperature, 7, at) for at in range(n)], minlength=5)
        assert (np.abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all(), (counts, n * p)


def test_temperature_0_is_the_likeliest_and_a_small_one_nearly_so():
    logits = torch.tensor(some(61)).float() / 7
    logits[13] = 9
    for temperature in (0, 0.0, 1e-3, 1e-300, 5e-324):
        assert {lm.choose(logits, temperature, seed, 0) for seed in range(20)} == {13}


@pytest.mark.parametrize("drawn, token", [(0.0, 1), (1 - 2**-53, 3)])
def test_a_token_that_cannot_come_is_never_drawn(drawn, token, monkeypatch):
    monkeypatch.setattr(np.random, "default_rng", lambda seed: SimpleNamespace(random=lambda: drawn))
    assert lm.choose(torch.tensor([-1e30, 0.3, 0.1, 0.7, -1e30]), 1.0, 0, 0) == token


def test_seed_and_place_decide_what_is_drawn():
    flat = torch.zeros(1000)
    drawn = [[lm.choose(flat, 1.0, seed, place) for place in range(30)] for seed in (0, 1)]
    assert drawn[0] == [lm.choose(flat, 1.0, 0, place) for place in range(30)]
    assert sum(a == b for a, b in zip(*drawn, strict=True)) < 5 and len(set(drawn[0])) > 25


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_no_token_is_chosen_by_nan(bad, temperature):
    with pytest.raises(ValueError, match="logits hold NaN or infinity"):
        lm.choose(torch.tensor([0.0, bad, 1.0]), temperature, 0, 0)


# What is refused, and that nothing is lost


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
def test_a_step_that_is_refused_changes_nothing(tokens, sequences, error, message):
    model, cache = small(), small().cache(4, page=4)
    for n in (3, 2):
        model.step([some(n)], cache, [cache.start()[0]])
    used, lengths = cache.used, cache.lengths([0, 1]).tolist()
    with pytest.raises(error, match=message):
        model.step(tokens, cache, sequences)
    assert (cache.used, cache.lengths([0, 1]).tolist()) == (used, lengths)
    cache.check()


def test_a_step_that_fails_on_its_way_leaves_no_token_that_could_be_found():
    model, tokens = small(), some(13)
    cache = model.cache(5, page=4)
    sequence, _ = cache.start(tokens)
    model.step([tokens[:3]], cache, [sequence])

    def fails(Q, K, V, layer, new):
        if layer:
            raise KeyboardInterrupt
        return lm.gathered(Q, K, V, layer, new)

    with contextlib.suppress(KeyboardInterrupt):
        model.step([tokens[3:]], cache, [sequence], fails)
    assert cache.lengths([sequence]).tolist() == [3] and cache.start(tokens)[1] == 0
    given = model.step([tokens[3:]], cache, [sequence])[0]
    torch.testing.assert_close(given, logits_of(model, tokens)[3:], atol=1e-4, rtol=0)
    cache.check()


@pytest.mark.parametrize(
    "given, error, message",
    [
        ({"prompt": "a"}, TypeError, r"the prompt is a str; pass its tokens: lm.encode\(prompt\)"),
        ({"prompt": []}, ValueError, "the prompt is empty"),
        ({"prompt": [61]}, ValueError, "tokens go from 61"),
        ({"n": 46}, ValueError, "the prompt has 3 tokens and 46 are to follow; together they are at most 48"),
        ({"n": 0}, ValueError, "n is 0"),
        ({"temperature": -1}, ValueError, "temperature is -1; pass at least 0"),
        ({"temperature": math.nan}, ValueError, "temperature is nan"),
        ({"temperature": "hot"}, TypeError, "temperature is 'hot'"),
        ({"seed": -1}, ValueError, "seed is -1"),
    ],
)
def test_what_cannot_be_generated_is_refused_at_once(given, error, message):
    with pytest.raises(error, match=message):
        small().generate(**{"prompt": [1, 2, 3], "n": 4} | given)


def test_the_whole_context_can_be_written():
    model = small()
    assert len(list(model.generate(some(3), 45))) == 45
    with pytest.raises(ValueError, match="N = 49; this model's context is 48"):
        logits_of(model, some(49))


@pytest.mark.parametrize("kind", [tuple, np.array, torch.tensor])
def test_a_prompt_is_any_list_of_numbers(kind):
    model = small()
    assert list(model.generate(kind(some(5)), 4)) == list(model.generate(some(5), 4))


# Text and files


def test_text_is_bytes():
    assert lm.decode(lm.encode("ROMEO: où? 你")) == "ROMEO: où? 你"
    assert lm.decode(n for n in [104, 105, 200]) == "hi�"


def test_a_model_that_is_loaded_writes_what_the_saved_one_does(tmp_path):
    model, path = small(), tmp_path / "new" / "model.safetensors"
    with torch.no_grad():
        for W in model.parameters():
            W.copy_(W.half())
    lm.save(model, path, loss=1.25, gpu="none")
    for device in ("cpu", None):
        again, about = lm.load(path, device=device)
        assert about == {"loss": "1.25", "gpu": "none"} and again.config == CONFIG
        for name, W in model.state_dict().items():
            same = again.state_dict()[name]
            assert same.dtype == torch.float32 and torch.equal(W, same)
        assert list(again.generate(some(5), 9)) == list(model.generate(some(5), 9))


def test_the_models_weights_are_below_3_mb(tmp_path):
    path = tmp_path / "model.safetensors"
    lm.save(lm.LM(), path)
    assert sum(W.numel() for W in lm.LM().parameters()) == 754_816
    assert 2 * 754_816 < path.stat().st_size < 1.6e6


def test_a_file_that_is_no_model_is_refused(tmp_path):
    from safetensors.torch import save_file

    with pytest.raises(FileNotFoundError, match="python -m flashlib.bench.lm --out .*none trains a model"):
        lm.load(tmp_path / "none")
    garbage, other, partly = (tmp_path / name for name in ("garbage", "other", "partly"))
    garbage.write_bytes(b"\x00" * 100)
    save_file({"W": torch.zeros(2)}, other)
    model = small()
    model.norm = torch.nn.Identity()
    lm.save(model, partly)
    for path, reason in ((garbage, ""), (other, "its format is None"), (partly, 'Missing key.*"norm.weight"')):
        with pytest.raises(
            ValueError, match=f"(?s){path.name} has no model that flashlib.lm.save wrote: .*{reason}"
        ):
            lm.load(path)
