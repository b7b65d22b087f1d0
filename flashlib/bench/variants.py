"""Time attention with masks and changed scores on one GPU: ours, FlexAttention, and SDPA with an additive mask.

    python -m flashlib.bench.variants --out notebooks/data/h200_variants.json

The sizes keep B * N = 16384 tokens and H * d = 2048, in bf16. Each result is verified on one head, then timed.

    ms        milliseconds; SDPA takes a mask as a tensor of N x N numbers, but no soft cap and no sink
    plain_ms  our kernel without a mask at this size
    tiles     the share of all tiles that our kernel computes
    per_tile  speed for each computed tile, relative to the kernel without a mask
    kernels   what was compiled: its Config, and the hash of its TTGIR
    prepare   milliseconds that a new mask takes once, with ours and FlexAttention; bytes that ours keeps

`packed` has sequences of the documents' lengths, one after another: `kernels.varlen`, FlexAttention with the
mask of documents, and padded_ms: our kernel on sequences padded to the longest, without a mask.
"""

import argparse
import copy
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.attention.flex_attention import create_block_mask
from torch.nn.functional import scaled_dot_product_attention

from flashlib import cost, masks, sink, torch_ref
from flashlib.bench import cases
from flashlib.bench.common import harness, peers
from flashlib.bench.common.problem import Size, results, tensors
from flashlib.bench.common.sizes import usual_size

if TYPE_CHECKING:
    from flashlib.kernels.launch.planning import Launch

LENGTHS = (4096, 16384)
MOST = 2**19  # tokens of padded sequences
NAMES = ("ours", "flex", "sdpa_mask")


class VariantProblem:
    """One case at one size: the functions to time, and the results to verify them."""

    def __init__(self, case: cases.VariantCase, size: Size, gradients: bool, device: str = "cuda") -> None:
        self.case, self.size, self.gradients, self.device = case, size, gradients, device
        given = tensors(size, 4 if gradients else 3, device=device)
        self.tensors, self.dO = given[:3], given[3] if gradients else None
        self.sinks = torch.full((size.H_q,), cases.SINK, device=device) if case.with_sink else None
        self.mask = case.mask(size.N, size.H_q)

    @functools.cached_property
    def expected(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """{name: (exact, plain)} for the last head."""
        mask = self.case.mask(self.size.N, self.size.H_q)
        if mask.heads:
            mask = masks.causal() & masks.alibi(masks.alibi_slopes(self.size.H_q)[-1])

        def reference(Q, K, V):
            found = torch_ref.attention(Q, K, V, mask=mask)
            return (sink.add(found, cases.SINK) if self.case.with_sink else found).O

        part = [X[-1:, -1:] for X in (*self.tensors, self.dO) if X is not None]
        names = ("dQ", "dK", "dV") if self.gradients else ("O",)
        exact, plain = results(reference, *(X.double() for X in part)), results(reference, *part)
        return dict(zip(names, zip(exact, plain, strict=True), strict=True))

    def verify(self, name: str, given: torch.Tensor | tuple[torch.Tensor, ...]) -> None:
        given = given if isinstance(given, tuple) else (given,)
        for X, (what, (exact, plain)) in zip(given, self.expected.items(), strict=True):
            harness.verify(f"{what} of {name}, {self.case.name}", X[-1:, -1:], exact, plain)

    def run(self, attention: Callable) -> Callable:
        """Return what is timed: attention(Q, K, V), or only its backward pass."""
        if not self.gradients:
            return functools.partial(attention, *self.tensors)
        leaves = [X.detach().requires_grad_() for X in self.tensors]
        O = attention(*leaves)
        return lambda: torch.autograd.grad(O, leaves, self.dO, retain_graph=True)

    def ours(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        if self.case.with_sink and self.gradients:
            return peers.kernels("autograd").attention(Q, K, V, sink=self.sinks, mask=self.mask).O
        found = peers.kernels("autograd").attention(Q, K, V, mask=self.mask)
        return (found if self.sinks is None else sink.add(found, self.sinks)).O

    def plain(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return peers.kernels("autograd").attention(Q, K, V).O

    @functools.cached_property
    def for_flex(self) -> dict:
        return self.prepared_for_flex()

    def prepared_for_flex(self) -> dict:
        N, H = self.size.N, self.size.H_q
        make = self.case.flex_mask
        mask = create_block_mask(make(N, H, self.device), None, None, N, N, device=self.device)
        score = self.case.flex_score and self.case.flex_score(N, H, self.device)
        return {"block_mask": mask, "score_mod": score}

    def flex(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        flex = peers.compiled_flex()
        if not self.case.with_sink:
            return flex(Q, K, V, **self.for_flex)
        O, lse = flex(Q, K, V, **self.for_flex, return_lse=True)
        return O * torch.sigmoid(lse - cases.SINK)[..., None].to(O.dtype)

    @functools.cached_property
    def numbers(self) -> torch.Tensor | None:
        return self.case.numbers and self.case.numbers(self.size.N, self.size.H_q, self.device)

    def sdpa_mask(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(Q, K, V, attn_mask=self.numbers)

    def passes(self) -> "list[Launch]":
        """Return our launches under the mask: of the forward pass or, for gradients, of both backward passes."""
        if not self.gradients:
            return [peers.kernels("forward").plan_of(*self.tensors, False, self.mask).launch]
        O, lse = self.tensors[0], self.tensors[0].new_empty(self.tensors[0].shape[:3], dtype=torch.float32)
        plan = peers.kernels("backward").plan_of(*self.tensors, O, lse, self.dO, None, False, self.mask, True)
        return [plan.dkv, plan.dq]


def tiles(launch: "Launch", mask: masks.Mask, size: Size) -> float:
    """Return the share of tiles that a pass computes; for intervals see `device_side.span_of`."""
    mask, B_r, B_c, N = of_one_head(mask), launch.config["B_R"], launch.config["B_C"], size.N
    keys = mask.keys(masks.Place(N, N))
    if keys is None or launch.kernel.__name__ == "_dkv":
        return float(cost.computed_tiles(N, N, mask=mask, B_r=B_r, B_c=B_c).mean())
    first, end = keys
    starts = np.arange(0, N, B_r)
    last = np.minimum(starts + B_r, N) - 1
    return float(np.mean(-(-(end[last] - first[starts]) // B_c)) / -(-N // B_c))


def of_one_head(mask: masks.Mask) -> masks.Mask:
    """Return a mask for which all heads see the same scores; scores may be left unchanged."""
    return masks.causal() if mask.heads else mask


def prepare(problem: VariantProblem) -> dict:
    """Return the cost of a mask at its first use, at a size whose kernels are already compiled."""
    module, mask = peers.kernels("forward"), problem.case.mask(problem.size.N, problem.size.H_q)
    torch.cuda.synchronize()
    before, start = torch.cuda.memory_allocated(), time.perf_counter()
    plan = module.plan_of(*problem.tensors, False, mask)
    torch.cuda.synchronize()
    ours, held = time.perf_counter() - start, torch.cuda.memory_allocated() - before
    del plan
    start = time.perf_counter()
    problem.prepared_for_flex()
    torch.cuda.synchronize()
    return {
        "ours_ms": round(ours * 1e3, 2),
        "flex_ms": round((time.perf_counter() - start) * 1e3, 2),
        "bytes": held,
    }


def noted(launch: "Launch") -> dict:
    """Return what a launch was compiled to."""
    listing = launch.compiled and launch.compiled.asm.get("ttgir")
    name = launch.kernel.__name__
    return {"kernel": name, "config": list(launch.config.values()), "ttgir": listing and _hash(launch, listing)}


def _hash(launch, listing):
    options = {name: value for name, value in launch.config.items() if name not in launch.kernel.arg_names}
    return peers.kernels("compiler.compiled").hash_of(
        peers.kernels("compiler.listings").readable("ttgir", listing), sorted(options.items())
    )


WEIGHTS = {1: (1,), 2: (4 / 7, 3 / 7)}  # by matrix products: four for dK and dV, three for dQ


def measure(case: cases.VariantCase, size: Size, gradients: bool, device: str = "cuda") -> dict:
    """Return the row of one case at one size, each verified before it is timed."""
    problem, runs = VariantProblem(case, size, gradients, device), {}
    for name in NAMES:
        if name == "sdpa_mask" and not case.numbers:
            continue

        def check(name=name):
            run = problem.run(getattr(problem, name))
            problem.verify(name, run())
            runs[name] = run

        harness.works(name, check, needed=name == "ours")
    ms = harness.side_by_side(runs | {"plain": problem.run(problem.plain)})
    launches = problem.passes()
    share = sum(
        w * tiles(launch, problem.mask, size) for w, launch in zip(WEIGHTS[len(launches)], launches, strict=True)
    )
    row: dict = {
        "case": case.name,
        "pass": "backward" if gradients else "forward",
        "d": size.d,
        "N": size.N,
        "B": size.B,
    }
    row |= {"H": size.H_q, "ms": {name: round(ms[name], 4) if name in ms else None for name in NAMES}}
    row |= {"plain_ms": round(ms["plain"], 4), "tiles": round(share, 4)}
    row["per_tile"] = round(share * ms["plain"] / ms["ours"], 3)
    row["kernels"] = [noted(launch) for launch in launches]
    if not gradients:
        row["prepare"] = prepare(problem)
    return row


def packed(size: Size, gradients: bool, device: str = "cuda") -> dict:
    """Return the row of sequences packed one after another, in B packs of N tokens."""
    case = cases.named("documents")
    each = np.tile(cases.lengths(size.N), size.B)
    problem = VariantProblem(case, size, gradients, device)
    cu = torch.nn.functional.pad(torch.from_numpy(np.cumsum(each, dtype=np.int32)).to(device), (1, 0))
    pack = copy.copy(problem)
    pack.tensors = [_tokens_first(X) for X in problem.tensors]
    pack.dO = problem.dO if problem.dO is None else _tokens_first(problem.dO)

    def varlen(Q, K, V):
        return peers.kernels("varlen").attention(Q, K, V, cu, cu).O

    def batches_first(X):
        return X.unflatten(0, (size.B, size.N)).transpose(1, 2)

    longest = size._replace(B=len(each), N=int(each.max()))
    padded = VariantProblem(case, longest, gradients, device) if longest.B * longest.N < MOST else None
    runs = {"ours": pack.run(varlen), "flex": problem.run(problem.flex)}
    given = runs["ours"]()
    problem.verify("ours", tuple(map(batches_first, given if gradients else (given,))))
    problem.verify("flex", runs["flex"]())
    if padded:
        runs["padded"] = padded.run(padded.plain)
    ms = harness.side_by_side(runs)
    row = {"pass": "backward" if gradients else "forward", "d": size.d, "N": size.N, "B": size.B, "H": size.H_q}
    row |= {"sequences": len(each), "longest": int(each.max()), "tokens": int(each.sum())}
    return row | {
        "ms": {name: round(ms[name], 4) for name in ("ours", "flex")},
        "padded_ms": round(ms["padded"], 4),
    }


def _tokens_first(X):
    """Return X, (B, H, N, d), in the layout of packed sequences, (B N, H, d)."""
    return X.transpose(1, 2).flatten(0, 1).contiguous()


def sizes(quick: bool) -> Iterator[Size]:
    for d, N in itertools.product((64, 128), LENGTHS[:1] if quick else LENGTHS):
        yield usual_size(d, False, N)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.variants", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--quick", action="store_true", help="N = 4096 only")
    args = parser.parse_args()
    torch.manual_seed(0)
    record = {**harness.environment(), "dtype": "bfloat16", "rows": [], "packed": []}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items() if not isinstance(value, list)))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    for gradients, size in itertools.product((False, True), sizes(args.quick)):
        for case in cases.CASES:
            row = measure(case, size, gradients)
            record["rows"].append(row)
            say(row, row["case"], f"{row['per_tile']:.2f} of the plain kernel's speed for a tile")
        row = packed(size, gradients)
        record["packed"].append(row)
        say(row, "packed", f"padded {row['padded_ms']:.3f} ms")
        save()
    harness.say(summary(record))


def say(row: dict, name: str, more: str) -> None:
    ms = row["ms"]
    ratios = [f"{ms[peer] / ms['ours']:7.2f}" if ms.get(peer) else "      -" for peer in NAMES[1:]]
    place = f"{row['pass']:8} d {row['d']:3} N {row['N']:5} {name:16}"
    harness.say(f"{place}{ms['ours']:8.3f} ms", *ratios, f"  {more}")


def summary(record: dict) -> str:
    """Return the geometric mean of FlexAttention's time relative to ours, and the smallest ratio."""
    ratios = [
        row["ms"]["flex"] / row["ms"]["ours"] for row in record["rows"] + record["packed"] if row["ms"]["flex"]
    ]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"FlexAttention's time over ours: geometric mean {mean:.3f}, least {min(ratios):.3f}"


if __name__ == "__main__":
    main()
