"""Time the small language model's writing: with a cache and without, as one CUDA graph, and as a server.

    python -m flashlib.bench.serve --out notebooks/data/h200_serve.json

One CUDA device, bf16, greedy. B prompts of PROMPT tokens from the held-out text, each followed by NEW tokens;
times are wall-clock times, the median of several turns.

    rows      tokens_s: tokens written in a second, including the pass over the prompts; prompt_ms: that pass,
              which writes the first token of each; step_us: a step, which writes one more. By name:
              no_cache    the whole text goes through the model for each token, with SDPA
              contiguous  our kernels over a cache with room for the whole text
              pages       in pages of PAGE tokens, anywhere
              fp8         pages in float8_e4m3fn
              graph       pages, and a step is one CUDA graph: captured once, replayed for all lengths
              error: the largest in the logits, see `compared`; other_tokens: how many of the B * NEW likeliest
              tokens differ from those without a cache after the same text; same_texts: how many of B whole
              texts are the same
    batching  one trace of requests through `flashlib.lm.server`, all there at the start: a request is admitted
              when another ends, or when all have ended. same_texts: how many requests wrote the same both times

With a cache, a prompt attends to itself with SDPA, before its K and V are rounded to fp8. Only the server chooses
tokens on the CPU.
"""

import argparse
import copy
import functools
import operator
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from flashlib.bench import decode
from flashlib.bench.common import harness
from flashlib.bench.common.peers import kernels
from flashlib.bench.gpt import TEXT
from flashlib.bench.lm import split
from flashlib.cache.storage import quantised
from flashlib.lm import cached_attention, checkpoint, rotary
from flashlib.lm.model import LM, sdpa
from flashlib.lm.server import Request, Server, play

WEIGHTS = TEXT.with_name("lm.safetensors")
BATCHES = (1, 4, 16, 64, 256)
PROMPT, NEW, PAGE, TURNS = 64, 64, 16, 5
REQUESTS, MEAN, LONGEST = 256, 64, 400  # tokens in an answer; a prompt has at most PROMPT
RUNNING, CHUNK = 32, 256  # requests at a time, and prompt tokens in a step
COMPARED = (
    "logits of each next token of the text without a cache, against those of the same weights in fp64: accepted "
    "is twice the error of the whole text in bf16 with SDPA, for fp8 with K and V rounded as in the cache"
)


class WithoutCache:
    """B prompts (B, N), each followed by `new` tokens, for each of which the whole text goes through the model.

    text: (B, N + new); logits: (B, vocab), from which the last token was chosen.
    """

    def __init__(self, model: LM, prompts: torch.Tensor, new: int) -> None:
        self.model, self.first = model, prompts.shape[1]
        self.text = pad(prompts, (0, new))

    def start(self) -> None:
        """Write the first token after the prompts."""
        self.at = self.first
        self.step()

    def step(self) -> None:
        """Write the next token of each text."""
        self.logits = self.model(self.text[:, : self.at])[:, -1]
        self.text[:, self.at] = self.logits.argmax(-1)
        self.at += 1


class Cached:
    """Do the same as `WithoutCache` with a cache: contiguous, in pages, or in pages of fp8.

    The launches of a step do not depend on the length, which is stored on the GPU.
    """

    def __init__(self, model: LM, prompts: torch.Tensor, new: int, page: int = 0, fp8: bool = False) -> None:
        (B, self.first), device = prompts.shape, prompts.device
        self.model, self.text = model, pad(prompts, (0, new))
        N = self.first + new
        table: Any = None
        unused: Any = None  # by our kernels
        each, room = (-(-N // page), page) if page else (1, 1 << (N - 1).bit_length())  # pages are powers of two
        if page:
            table = torch.randperm(B * each, device=device).to(torch.int32).view(B, each)
        cache = model.cache(B * each, room, torch.float8_e4m3fn if fp8 else None)
        self.lengths = torch.zeros(B, dtype=torch.int32, device=device)
        self.logits = torch.zeros(B, model.config.vocab, dtype=model.embedding.weight.dtype, device=device)
        angles = rotary.angles(N, cache.K.shape[-1], device=device)
        self.tokens = cached_attention.NewTokens(cache, unused, unused, self.lengths, unused, table, angles)

    def start(self) -> None:
        self.lengths.fill_(self.first)
        self._write(self.text[:, : self.first], prompt)

    def step(self) -> None:
        last = self.text.gather(1, self.lengths.long()[:, None])
        self.lengths += 1
        self._write(last, cached_attention.kernels)

    def _write(self, given, over):
        logits = self.model.logits(given, lambda layer, *QKV: over(*QKV, layer, self.tokens))
        self.logits.copy_(logits[:, -1])  # a graph writes to the same place each time
        self.text.scatter_(1, self.lengths.long()[:, None], self.logits.argmax(-1, keepdim=True))


class Graph(Cached):
    """Do the same as `Cached`, with one CUDA graph for a step."""

    def __init__(self, model: LM, prompts: torch.Tensor, new: int, page: int) -> None:
        super().__init__(model, prompts, new, page)
        self.start()
        self.step = harness.captured(self.step, 1).replay  # type: ignore[method-assign]


def prompt(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, layer: int, new: cached_attention.NewTokens
) -> torch.Tensor:
    """Write K and V of whole prompts into a cache with our kernels; return O from SDPA of the same numbers."""
    append = kernels("append")
    Q, K = (append.rotate(X, new.lengths, new.rotary) for X in (Q, K))
    stored, scales = new.stored(layer)
    append.append(K, V, *stored, **scales)
    return sdpa(Q, K, V, True)


WAYS: dict[str, Callable] = {
    "no_cache": WithoutCache,
    "contiguous": Cached,
    "pages": functools.partial(Cached, page=PAGE),
    "fp8": functools.partial(Cached, page=PAGE, fp8=True),
    "graph": functools.partial(Graph, page=PAGE),
}


def written(way: WithoutCache | Cached) -> torch.Tensor:
    """Return the text that a way writes."""
    way.start()
    for _ in range(way.text.shape[1] - way.first - 1):
        way.step()
    return way.text.clone()


def logits_of(way: WithoutCache | Cached, text: torch.Tensor) -> torch.Tensor:
    """Return a way's logits for all tokens of a given text after the prompts, (B, new, vocab)."""
    found = []
    for at in range(text.shape[1] - way.first):
        way.text.copy_(text)
        way.step() if at else way.start()
        found.append(way.logits.clone())
    return torch.stack(found, dim=1)


def rounded(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return O from SDPA with K and V rounded to fp8, each row with its own scale."""
    pairs = (quantised(X, torch.float8_e4m3fn) for X in (K, V))
    K, V = ((X.float() * scale[..., None]).to(Q.dtype) for X, scale in pairs)
    return sdpa(Q, K, V, causal)


def compare(model: LM, ways: dict[str, WithoutCache | Cached]) -> dict:
    """Return how the ways differ, by name; raise AssertionError if one is wrong."""
    text, first = written(ways["no_cache"]), ways["no_cache"].first

    def whole(model):
        return model(text[:, :-1])[:, first - 1 :]

    in_fp8 = copy.copy(model)
    in_fp8.attention = rounded
    exact, plain = whole(copy.deepcopy(model).double()), {False: whole(model), True: whole(in_fp8)}
    found = {"error": {}, "other_tokens": {}, "same_texts": {}}
    for name, way in ways.items():
        given = logits_of(way, text)
        harness.verify(f"{name} at B = {len(text)}", given, exact, plain[name == "fp8"])
        found["error"][name] = float(f"{(given.double() - exact).abs().max().item():.3g}")
        found["other_tokens"][name] = int((given.argmax(-1) != text[:, first:]).sum())
        found["same_texts"][name] = int((written(way) == text).all(-1).sum())
    return found


def seconds(way: WithoutCache | Cached) -> tuple[float, float]:
    """Return the seconds that the prompts take, and the seconds of all steps that follow."""
    marks = [_now()]
    way.start()
    marks.append(_now())
    for _ in range(way.text.shape[1] - way.first - 1):
        way.step()
    marks.append(_now())
    return marks[1] - marks[0], marks[2] - marks[1]


def _now():
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.no_grad()
def measure(model: LM, prompts: torch.Tensor, new: int = NEW, turns: int = TURNS) -> dict:
    """Return the row of B prompts, (B, N): all ways are compared, then timed in turn."""
    ways = {name: way(model, prompts, new) for name, way in WAYS.items()}
    compared = compare(model, ways)
    taken = {name: [] for name in ways}
    for _ in range(turns):
        for name, way in ways.items():
            taken[name].append(seconds(way))
    whole, first, rest = (
        {name: statistics.median(map(part, found)) for name, found in taken.items()}
        for part in (sum, operator.itemgetter(0), operator.itemgetter(1))
    )
    return {
        "B": len(prompts),
        "tokens_s": {name: round(len(prompts) * new / each) for name, each in whole.items()},
        "prompt_ms": {name: round(each * 1e3, 3) for name, each in first.items()},
        "step_us": {name: round(each / (new - 1) * 1e6, 1) for name, each in rest.items()},
    } | compared


def pieces(tokens: torch.Tensor, n: int, N: int) -> torch.Tensor:
    """Return n pieces of N tokens, (n, N), evenly spaced in a text."""
    starts = torch.linspace(0, len(tokens) - N, n, dtype=torch.float64).long()
    return torch.stack([tokens[at : at + N] for at in starts.tolist()])


def trace(tokens: torch.Tensor, n: int = REQUESTS, seed: int = 0) -> list[Request]:
    """Return n requests: prompts of PROMPT / 4 to PROMPT tokens from a text, and log-normal answer lengths."""
    sizes = np.random.default_rng(seed).integers(PROMPT // 4, PROMPT, size=n, endpoint=True).tolist()
    answers = (min(length, LONGEST) for length in decode.lengths(n, MEAN, seed))
    texts = pieces(tokens, n, PROMPT).tolist()
    return [
        Request(text[:size], answer, temperature=0)
        for text, size, answer in zip(texts, sizes, answers, strict=True)
    ]


def batching(model: LM, requests: Sequence[Request], running: int = RUNNING) -> list[dict]:
    """Return the rows of continuous and of static batching, each timed after all of its sizes have run once."""
    rows, texts = [], []
    for continuous in (True, False):
        for _ in range(2):
            row, text = served(model, requests, running, continuous)
        rows.append(row)
        texts.append(text)
    same = sum(texts[0][number] == texts[1][number] for number in texts[0])
    return [row | {"same_texts": same} for row in rows]


def served(
    model: LM, requests: Sequence[Request], running: int, continuous: bool
) -> tuple[dict, dict[int, list[int]]]:
    """Return the row of one run of the server, and what it wrote; it has enough pages for all running requests."""
    pages = running * -(-model.config.context // PAGE)
    sizes = {"chunk": CHUNK, "batch": running, "queue": len(requests)}
    server = Server(model, pages, PAGE, over=cached_attention.kernels, continuous=continuous, **sizes)
    start = _now()
    records = list(play(server, requests))
    taken = _now() - start
    if [len(server.written[number]) for number in range(len(requests))] != [each.most_new for each in requests]:
        raise AssertionError(f"the server did not write what was asked for; continuous = {continuous}")
    tokens = sum(each.most_new for each in requests)
    row: dict = {"batching": "continuous" if continuous else "static", "requests": len(requests), "tokens": tokens}
    row |= {"longest": max(each.most_new for each in requests), "running": running, "steps": len(records)}
    row |= {"at_once": round(sum(len(record.wrote) for record in records) / len(records), 2)}
    return row | {"seconds": round(taken, 3), "tokens_s": round(tokens / taken)}, server.written


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.serve", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("Writing is timed on a CUDA device; torch finds none. Recorded runs are in notebooks/data.")
    torch.manual_seed(0)
    model = checkpoint.load(WEIGHTS, device="cuda")[0].bfloat16()
    _, held_out = split(TEXT.read_text(encoding="utf-8"), "cuda")
    record = {**harness.environment(), "dtype": "bfloat16", "prompt": PROMPT, "new": NEW, "page": PAGE}
    record |= {"compared": COMPARED, "rows": [], "batching": []}
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    harness.say(", ".join(f"{key} {value}" for key, value in record.items() if not isinstance(value, list)))
    with harness.stopwatch("all"):
        for B in BATCHES:
            record["rows"].append(measure(model, pieces(held_out, B, PROMPT)))
            say(record["rows"][-1])
            save()
        record["batching"] = batching(model, trace(held_out))
        harness.say(*record["batching"], sep="\n")
        save()


def say(row: dict) -> None:
    harness.say(f"B = {row['B']}: tokens a second; prompts in ms, a step in us; error, other tokens, same texts")
    for name in row["tokens_s"]:
        cells = (f"{row[key][name]:>10}" for key in row if key != "B")
        harness.say(f"  {name:10}", *cells)


if __name__ == "__main__":
    main()
