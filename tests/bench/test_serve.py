"""How writing and serving are timed: a row says what was compared, and a wrong cache or server is not timed."""

from types import SimpleNamespace

import pytest
import torch

from flashlib import cache, kernels
from flashlib.bench import serve as bench
from flashlib.bench.common import harness
from flashlib.bench.lm import CONFIG
from flashlib.lm import cached_attention
from flashlib.lm.server import Request, Server
from tests.lm.small import one_thread, small, some  # noqa: F401, a fixture for all tests here

DEVICE = kernels.DEVICE
SIZES = {"vocab": 256, "layers": 2}


@pytest.fixture
def on_a_cpu(monkeypatch):
    """Without a GPU nothing is captured: a graph repeats the calls from which it was made."""
    if DEVICE == "cpu":
        monkeypatch.setattr(harness, "captured", lambda run, times: run() or SimpleNamespace(replay=run))
    monkeypatch.setattr(bench, "PAGE", 4)


def model(dtype=torch.float32, **sizes):
    return small(device=DEVICE, dtype=dtype, **SIZES | sizes)


def prompts(B=2, N=6):
    return torch.tensor([some(N, seed=b) for b in range(B)], device=DEVICE)


@pytest.mark.parametrize("amount", ["few", "all"])
def test_a_row_says_what_was_timed_and_how_far_it_is_from_fp64(amount, on_a_cpu, monkeypatch):
    if amount == "few":
        monkeypatch.delitem(bench.WAYS, "contiguous")
    row = bench.measure(model(torch.bfloat16, layers=1), prompts(), new=3, turns=1)
    assert row["B"] == 2 and list(row)[1:4] == ["tokens_s", "prompt_ms", "step_us"]
    for name in ("tokens_s", "prompt_ms", "step_us", "error"):
        assert list(row[name]) == list(bench.WAYS) and min(row[name].values()) > 0
    for name in bench.WAYS:
        us = row["prompt_ms"][name] * 1e3 + 2 * row["step_us"][name]  # one turn is its own median
        assert row["tokens_s"][name] == pytest.approx(2 * 3 / us * 1e6, rel=0.01, abs=0.6)
        assert 0 <= row["other_tokens"][name] <= 6 and 0 <= row["same_texts"][name] <= 2
    assert row["same_texts"]["no_cache"] == 2
    assert row["error"]["fp8"] > row["error"]["pages"] == row["error"]["graph"]


@pytest.mark.parametrize("name, amount", [("contiguous", "few"), ("pages", "all"), ("graph", "few")])
@torch.no_grad()
def test_a_way_writes_what_generate_writes(name, amount, on_a_cpu):
    of, given = model(layers=1), prompts(B=3, N=5)
    options = {} if name == "contiguous" else {"page": 4}
    way = bench.WAYS[name].func if options else bench.WAYS[name]
    texts = bench.written(way(of, given, 6, **options))
    for row, text in zip(given.tolist(), texts.tolist(), strict=True):
        assert text == row + list(of.generate(row, 6, temperature=0, over=None))


@torch.no_grad()
def test_logits_are_those_of_the_given_text():
    of, text = model(layers=1), prompts(B=2, N=9)
    exact = of.double()(text[:, :-1])[:, 4:]
    of.float()
    for way in (bench.WithoutCache(of, text[:, :5], 4), bench.Cached(of, text[:, :5], 4, page=4)):
        given = bench.logits_of(way, text)
        assert (given - exact).abs().max() < 1e-4 * exact.abs().max()


@pytest.mark.parametrize("names, amount", [(("pages", "graph"), "all"), (("fp8",), "few")])
def test_a_wrong_cache_is_not_timed(names, amount, on_a_cpu, monkeypatch):
    monkeypatch.setattr(bench, "WAYS", {name: bench.WAYS[name] for name in ("no_cache", *names)})
    monkeypatch.setattr(bench, "seconds", lambda way: pytest.fail("it was timed"))
    append = bench.kernels("append")
    rotate = append.rotate
    monkeypatch.setattr(append, "rotate", lambda Q, lengths, angles: rotate(Q, lengths - 1, angles))
    with pytest.raises(AssertionError, match=f"{names[0]} at B = 2 is wrong: error"):
        bench.measure(model(torch.bfloat16), prompts(), new=3, turns=1)


@pytest.mark.parametrize("over", ["gathered", "kernels"])
def test_a_model_steps_over_a_cache_in_fp8(over):
    of, tokens = model(layers=2), some(11)
    pages = of.cache(3, 4, torch.float8_e4m3fn)
    sequence, _ = pages.start()
    cut, way = (tokens[:7], tokens[7:8], tokens[8:]), getattr(cached_attention, over)
    found = [of.step([part], pages, [sequence], way) for part in cut]
    with torch.no_grad():
        exact, of.attention = of(torch.tensor([tokens], device=DEVICE)), bench.rounded
        plain = of(torch.tensor([tokens], device=DEVICE))
    assert pages.K.dtype == torch.float8_e4m3fn
    harness.verify(over, torch.cat(found, 1), exact, plain)


def test_rounded_keys_and_values_are_those_of_the_cache():
    K, V = torch.randn(2, 3, 2, 5, 16)
    seen = bench.rounded(torch.randn(3, 2, 5, 16), K, V, True)
    pages = cache.Cache(1, 8, 2, 16, dtype=torch.float8_e4m3fn)
    sequence, _ = pages.start()
    pages.write(pages.append(sequence, 5), K[1], V[1])
    torch.testing.assert_close(seen[1, :, 0], pages.gather(sequence)[1][:, 0])


def test_a_trace_is_served_in_both_ways(on_a_cpu):
    of = model(layers=1)
    requests = [Request(some(2, seed=i), n, temperature=0) for i, n in enumerate((3, 1, 3, 1))]
    rows = bench.batching(of, requests, running=2)
    assert [row["batching"] for row in rows] == ["continuous", "static"]
    assert rows[0]["steps"] < rows[1]["steps"] == 3 + 3 and rows[0]["at_once"] > rows[1]["at_once"]
    for row in rows:
        assert row["at_once"] == round(8 / row["steps"], 2)
        assert (row["requests"], row["tokens"], row["longest"], row["running"]) == (4, 8, 3, 2)
        assert row["tokens_s"] == pytest.approx(8 / row["seconds"], rel=0.01, abs=0.6) and row["same_texts"] == 4


def test_a_server_that_forgets_a_token_is_refused(on_a_cpu, monkeypatch):
    _write = Server._write

    def forgets(server, job, token):
        _write(server, job, token)
        if job.number == 1 and 1 in server.written:
            server.written[1].pop()

    monkeypatch.setattr(Server, "_write", forgets)
    requests = [Request(some(3, seed=i), 2, temperature=0) for i in range(2)]
    with pytest.raises(AssertionError, match="did not write what was asked for; continuous = True"):
        bench.batching(model(layers=1), requests, running=2)


def test_the_trace_fits_the_model_and_is_uneven():
    requests = bench.trace(torch.arange(20000) % 251)
    assert len(requests) == bench.REQUESTS and requests == bench.trace(torch.arange(20000) % 251)
    lengths = sorted(request.most_new for request in requests)
    assert lengths[0] >= 1 and 4 * lengths[128] < lengths[-1] <= bench.LONGEST
    assert all(16 <= len(request.prompt) <= 64 for request in requests)
    assert bench.PROMPT + max(bench.LONGEST, bench.NEW) <= CONFIG.context
    assert len({tuple(request.prompt) for request in requests}) > 200, "no prompt for two"
