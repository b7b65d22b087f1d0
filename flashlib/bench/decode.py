"""Time decoding on one GPU: ours over contiguous caches, pages and fp8, and SDPA; for comparison a copy in DRAM.

    python -m flashlib.bench.decode --out notebooks/data/h200_decode.json

One new query a sequence, d = 128, bf16. Each result is verified on the last head of the last sequence, then timed
in a CUDA graph that goes through several caches, so that none of them is in the L2 cache.

    rows     us: microseconds of a call; "ours", "ours_last" (one kernel, the last program merges), "ours_full"
             (told no lengths: all are full), and "sdpa", which takes none, by the backend that torch chooses;
             bytes: of K and V, and scales, that a call reads; share: bytes a second relative to the copy, which
             reads and writes
    parts    ours at one size, by the number of parts
    sweep    ours at each size of `rows` by n, the parts of a sequence; `chosen` is the n of the default
    shared   many sequences with one prompt: read once; in the same pages, but read by each; in separate pages
    cpu      microseconds of the CPU for a step (append, rotate, attend) as calls, and as one CUDA graph
    memory   bytes per token and layer; the share of empty rows in a cache, for lengths as in `ragged`
"""

import argparse
import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from flashlib import splits, torch_ref
from flashlib.bench import bandwidth, short_sequences, variants
from flashlib.bench.common import harness
from flashlib.bench.common.peers import kernels
from flashlib.cache import Pages, storage
from flashlib.lm import rotary

D = 128
COLD = 4 * 10**8  # bytes of caches to cycle through: many times the size of an L2 cache
REPLAYS = 20  # of a graph, at least: a call takes a few microseconds, less than its overhead
LONG = 32768
FILLED = (0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24)  # programs on each multiprocessor, in a sweep


class DecodeSize(NamedTuple):
    """page: tokens in a page, 0 for a contiguous cache. lengths: of each sequence, None if all have N tokens."""

    B: int
    H_q: int
    H_k: int
    N: int
    page: int = 0
    fp8: bool = False
    lengths: tuple | None = None

    @property
    def tokens(self) -> int:
        return sum(self.lengths) if self.lengths else self.B * self.N

    @property
    def bytes(self) -> int:
        """The bytes of K and V, and of their scales, that a call reads."""
        return self.tokens * storage.bytes_per_token(self.H_k, D, itemsize=1 if self.fp8 else 2, scales=self.fp8)


GQA, MHA = (32, 8), (32, 32)
BATCHES = (1, 2, 4, 8, 16)
SHORT = (64, 1024), (32, 2048), (256, 512), (16, 4096)  # B and N: many short caches, as in serving


def lengths(B: int, N: int, seed: int = 0) -> tuple[int, ...]:
    """Return log-normal lengths of B sequences, N on average, B * N in total."""
    drawn = np.random.default_rng(seed).lognormal(0, 1, B)
    each = np.maximum(1, drawn / drawn.sum() * B * N).astype(int)
    each[-1] += B * N - each.sum()
    return tuple(each.tolist())


SIZES = [
    *(("batch", DecodeSize(B, *GQA, LONG)) for B in BATCHES),
    *(("length", DecodeSize(1, *GQA, N)) for N in (1024, 4096, 16384, 65536, 131072)),
    *(("heads", DecodeSize(B, 32, H_k, LONG)) for H_k in (32, 1) for B in (1, 8)),
    *(("pages", DecodeSize(B, *GQA, LONG, page)) for page in (16, 64, 256) for B in (1, 8)),
    *(("fp8", DecodeSize(B, *GQA, LONG, page, True)) for page in (0, 64) for B in BATCHES),
    *(("short", DecodeSize(B, *heads, N)) for heads in (GQA, MHA) for B, N in SHORT),
    *(("short", DecodeSize(B, *GQA, N, page, fp8)) for page, fp8 in ((16, False), (0, True)) for B, N in SHORT),
    *(("ragged", DecodeSize(B, *GQA, 8192, page)) for page in (0, 64) for B in (16, 64)),
    *(("ragged", DecodeSize(B, *GQA, 8192, 64, False, lengths(B, 8192))) for B in (16, 64)),
]


class DecodeProblem:
    """Queries and caches of one size: so many caches that none of them is still in the L2 cache."""

    def __init__(self, size: DecodeSize, device: str = "cuda", cold: int = COLD) -> None:
        self.size, self.device = size, device
        self.Q = torch.randn(size.B, size.H_q, 1, D, device=device, dtype=torch.bfloat16)
        self.lengths = torch.tensor(size.lengths or [size.N] * size.B, dtype=torch.int32, device=device)
        self.caches = [self._cache() for _ in range(max(1, math.ceil(cold / size.bytes)))]

    def _cache(self) -> dict:
        size = self.size
        most, device = max(size.lengths or [size.N]), self.device
        if not size.page:
            return self._numbers(size.B, most) | {"lengths": self.lengths}
        pages = -(-self.lengths // size.page)
        n = int(pages.sum())
        table = torch.zeros(size.B, -(-most // size.page), dtype=torch.int32, device=device)
        order = torch.randperm(n, device=device).to(torch.int32)
        table[torch.arange(table.shape[1], device=device) < pages[:, None]] = order
        return self._numbers(n, size.page) | {"lengths": self.lengths, "table": table}

    def _numbers(self, first, N) -> dict:
        shape = first, self.size.H_k, N, D
        K, V = (torch.randn(shape, device=self.device, dtype=torch.bfloat16) for _ in range(2))
        if not self.size.fp8:
            return {"K": K, "V": V}
        (K, k_scale), (V, v_scale) = (storage.quantised(X, torch.float8_e4m3fn) for X in (K, V))
        return {"K": K, "V": V, "k_scale": k_scale, "v_scale": v_scale}

    def run(self, attention: Callable) -> Callable:
        """Return the function that is timed: attention(Q, **cache) over one cache after another."""
        turns = itertools.cycle(self.caches)
        return lambda: attention(self.Q, **next(turns))

    def verify(self, name: str, attention: Callable, which: int = 0) -> None:
        """Raise AssertionError unless attention over one of the caches is correct for the last head."""
        cache, size = self.caches[which], self.size
        group, n = size.H_q // size.H_k, int(self.lengths[-1])
        K, V = (self._of_last(cache, X, n) for X in "KV")
        Q = self.Q[-1:, -group:]
        exact, plain = (
            torch_ref.attention(Q.to(t), K.expand(1, group, -1, -1).to(t), V.expand(1, group, -1, -1).to(t))
            for t in (torch.float64, torch.bfloat16)
        )
        harness.verify(f"O of {name} at {size}", attention(self.Q, **cache)[-1:, -group:], exact.O, plain.O)

    def _of_last(self, cache, name, n):
        """Return K or V for the last head and sequence, (1, 1, n, d), in fp64."""
        X, scale = cache[name][:, -1].double(), cache.get(f"{name.lower()}_scale")
        X = X if scale is None else X * scale[:, -1, :, None]
        if "table" in cache:
            X = X[cache["table"][-1, : -(-n // self.size.page)].long()].flatten(0, 1)
        else:
            X = X[-1]
        return X[None, None, :n]


def ours(Q: torch.Tensor, **cache: torch.Tensor | int) -> torch.Tensor:
    return kernels("decode").attention(Q, **cache).O


def ours_last(Q: torch.Tensor, **cache: torch.Tensor | int) -> torch.Tensor:
    return kernels("ablations.decode").attention(Q, **cache).O


def ours_full(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return ours(Q, K=K, V=V)


def sdpa(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return scaled_dot_product_attention(Q, K, V, enable_gqa=Q.shape[1] != K.shape[1])


def peers(size: DecodeSize) -> dict[str, Callable]:
    """Return the attentions that support a size: SDPA supports neither pages nor fp8 nor lengths."""
    attentions: dict[str, Callable] = {"ours": ours}
    if not size.fp8:
        attentions["ours_last"] = ours_last
    if not (size.page or size.fp8 or size.lengths):
        attentions |= {"ours_full": ours_full, "sdpa": sdpa}
    return attentions


def graph_us(problem: DecodeProblem, attentions: dict[str, Callable]) -> dict[str, float]:
    """Return the microseconds of a call of each attention, in CUDA graphs replayed side by side."""
    times = max(REPLAYS // len(problem.caches), 1) * len(problem.caches)
    graphs = {name: harness.captured(problem.run(f), times) for name, f in attentions.items()}
    ms = harness.side_by_side({name: graph.replay for name, graph in graphs.items()})
    return {name: round(value * 1e3 / times, 2) for name, value in ms.items()}


def measure(case: str, size: DecodeSize, copy_gbs: float, device: str = "cuda", cold: int = COLD) -> dict:
    """Return the row of one size, each attention verified before it is timed."""
    problem, attentions = DecodeProblem(size, device, cold), {}
    for name, attention in peers(size).items():
        check = functools.partial(problem.verify, name, attention)
        if harness.works(name, check, needed=name == "ours"):
            attentions[name] = attention
    us = graph_us(problem, attentions)
    row = {"case": case, "B": size.B, "H": size.H_q, "H_k": size.H_k, "d": D, "N": size.N, "page": size.page}
    row |= {"fp8": size.fp8, "longest": max(size.lengths or [size.N]), "tokens": size.tokens, "us": us}
    row |= {"bytes": size.bytes, "share": share(size.bytes, us, copy_gbs)}
    plan = _plan(problem)
    return row | {"kernels": [variants.noted(launch) for launch in (plan.partial, plan.merge)]}


def _plan(problem):
    decode = kernels("decode")
    cache = decode.CacheTensors(*(problem.caches[0].get(name) for name in decode.CacheTensors._fields))
    return decode.plan_of(problem.Q, cache, False, None, None, 0, None)


def parts_of(problem: DecodeProblem) -> int:
    """Return the number of parts into which ours splits each sequence by default."""
    return _plan(problem).partial.sizes[-2] // problem.size.B


def share(n: int, us: dict[str, float], copy_gbs: float) -> dict[str, float]:
    return {name: round(n / value / 1e3 / copy_gbs, 3) for name, value in us.items()}


def by_parts(size: DecodeSize, device: str = "cuda", cold: int = COLD) -> list[dict]:
    """Return rows for ours, one for each number of parts."""
    problem, rows = DecodeProblem(size, device, cold), []
    for parts in (1, 2, 4, 8, 16, 24, 33, 40, 48, 64, 96, 128):
        attention = functools.partial(ours, parts=parts)
        problem.verify(f"{parts} parts", attention)
        us = graph_us(problem, {"ours": attention})["ours"]
        rows.append({"B": size.B, "H": size.H_q, "H_k": size.H_k, "N": size.N, "parts": parts, "us": us})
        harness.say(f"{parts:4} parts {us:9.1f} us")
    return rows


def sweep(case: str, size: DecodeSize, multiprocessors: int, device: str = "cuda", cold: int = COLD) -> dict:
    """Return the row of one size: times by n, the parts of a sequence, each verified first.

    tiles, heads, places, ragged, looks_up: the arguments passed to `splits.chosen`.
    """
    problem = DecodeProblem(size, device, cold)
    plan = _plan(problem)
    chosen, longest = parts_of(problem), max(size.lengths or [size.N])
    tiles, B_R = plan.tiles, plan.partial.constants["B_R"]
    heads = size.B * size.H_k * -(-size.H_q // size.H_k // B_R)
    filled = [int(x * multiprocessors / heads) for x in FILLED]
    numbers = sorted({chosen, *(splits.actual_parts(tiles, n) for n in filled if 1 <= n <= tiles)})
    times, graphs = max(1, REPLAYS // len(problem.caches)) * len(problem.caches), {}
    for n in numbers:
        attention = functools.partial(ours, parts=n * size.B)
        problem.verify(f"{n} parts", attention)
        graphs[str(n)] = harness.captured(problem.run(attention), times)
    us = {n: round(value / times, 2) for n, value in harness.replayed_us(graphs).items()}
    row = {"case": case, "B": size.B, "H": size.H_q, "H_k": size.H_k, "N": size.N, "page": size.page}
    row |= {"fp8": size.fp8, "longest": longest, "tiles": tiles, "heads": heads}
    row |= {"places": splits.places(B_R), "ragged": size.B > 1}
    row |= {"looks_up": bool(size.page or size.fp8), "chosen": chosen, "us": us}
    (n, best), own = min(us.items(), key=lambda pair: pair[1]), us[str(chosen)]
    harness.say(f"{case:8} {size[:6]!s:40} {chosen:4} parts {own:8.1f} us, the best {n:>4} {best:8.1f} us")
    return row


def with_a_prompt(
    B: int = 64, prompt: int = 8192, own: int = 512, page: int = 64, device: str = "cuda", cold: int = COLD
) -> dict:
    """Return the row of B sequences that share a prompt."""
    size = DecodeSize(B, *GQA, prompt + own, page)
    problem = DecodeProblem(size, device, cold)
    apart = problem.caches
    together = [{**cache, "table": _shared(cache["table"], prompt // page)} for cache in apart]
    us = graph_us(problem, {"pages of their own": ours})
    problem.caches = together
    once = functools.partial(ours, shared=prompt)
    for name, attention in (("read by each", ours), ("read once", once)):
        problem.verify(name, attention)
    us |= graph_us(problem, {"read by each": ours, "read once": once})
    return {"B": B, "prompt": prompt, "own": own, "page": page, "H": GQA[0], "H_k": GQA[1], "us": us}


def _shared(table, n):
    """Return the table in which all sequences begin with the first n pages of the first sequence."""
    return torch.cat([table[:1, :n].expand(len(table), -1), table[:, n:]], dim=1).contiguous()


def steps(B: int = 8, N: int = 4096, page: int = 16, device: str = "cuda") -> dict:
    """Return the CPU time of a step: append the new token, rotate its query, attend.

    contiguous, sdpa: the same for attention over a contiguous cache, by ours and by SDPA.
    """
    problem = DecodeProblem(DecodeSize(B, *GQA, N, page), device, cold=0)
    cache, turned = problem.caches[0], rotary.angles(N, D, device=device)
    K_new, V_new = (torch.randn(B, GQA[1], 1, D, device=device, dtype=torch.bfloat16) for _ in range(2))
    append = kernels("append")

    def step():
        at = cache["lengths"], cache["table"]
        append.append(K_new, V_new, cache["K"], cache["V"], *at, rotary=turned)
        return ours(append.rotate(problem.Q, at[0], turned), **cache)

    def attend():
        return ours(problem.Q, **cache)

    graph, alone = harness.captured(step, 1), DecodeProblem(DecodeSize(B, *GQA, N), device, cold=0)
    runs = {"step": step, "attention": attend, "graph": graph.replay}
    us = short_sequences.host_us(runs | {"contiguous": alone.run(ours), "sdpa": alone.run(sdpa)})
    return {"B": B, "N": N, "page": page, "us": us, "graph_us": round(harness.median_ms(graph.replay) * 1e3, 2)}


def memory(B: int = 256, N: int = 1000) -> list[dict]:
    """Return a token's bytes in a layer for several heads and dtypes, and the share of empty rows in a cache."""
    kinds = {"MHA": (32, 2), "GQA": (8, 2), "MQA": (1, 2), "GQA in fp8": (8, 1)}
    rows = [
        {"case": name, "bytes_per_token": storage.bytes_per_token(H_k, D, itemsize=n, scales=n == 1)}
        for name, (H_k, n) in kinds.items()
    ]
    each = np.array(lengths(B, N))
    rows.append({"case": "longest reserved", "empty": round(1 - each.sum() / (each.max() * B), 4)})
    for page in (16, 64, 256):
        pages = Pages(int((-(-each // page)).sum()), page)
        for n in each:
            pages.append(pages.start()[0], int(n))
        rows.append({"case": f"pages of {page}", "empty": round(pages.waste / (pages.used * page), 4)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.decode", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    args = parser.parse_args()
    torch.manual_seed(0)
    n, ms = bandwidth.dram_copy()
    record = {**harness.environment(), "dtype": "bfloat16", "copy_gbs": round(n / ms / 1e6), "memory": memory()}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items() if not isinstance(value, list)))
    record["multiprocessors"] = torch.cuda.get_device_properties().multi_processor_count
    record |= {"rows": [], "parts": [], "sweep": [], "shared": [], "cpu": []}
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    for case, size in SIZES:
        record["rows"].append(measure(case, size, record["copy_gbs"]))
        say(record["rows"][-1])
        save()
    record["parts"] = by_parts(DecodeSize(1, *GQA, LONG))
    for case, size in SIZES:
        record["sweep"].append(sweep(case, size, record["multiprocessors"]))
        save()
    record["shared"].append(with_a_prompt())
    record["cpu"].append(steps())
    harness.say(record["shared"], record["cpu"])
    save()


def say(row: dict) -> None:
    cells = (f"{name} {us:8.1f} us {row['share'][name]:5.2f}" for name, us in row["us"].items())
    place = f"{row['case']:8} B {row['B']:3} {row['H']}/{row['H_k']:<3} N {row['N']:6} page {row['page']:3}"
    harness.say(f"{place} {'fp8' if row['fp8'] else '   '} longest {row['longest']:6}", *cells, sep="  ")


if __name__ == "__main__":
    main()
