"""Time each way to distribute attention over the GPUs of one host, torch's context_parallel, and one GPU.

    python -m flashlib.bench.ring --out notebooks/data/h200_ring.json
    python -m flashlib.bench.ring --ranks 4 --out notebooks/data/h200_ring_4.json

A row is a number of `ranks`, a size and a pass, "forward" or "both"; everything in it was timed in turn in one
run: `ms` is, for each way, the median of the slowest rank's times; a peer that does not run, or is wrong, is not
timed, and `left_out` says why. `efficiency` is the time that one GPU takes for the whole sequence, with the same
kernels, divided by `ranks` times `ms`. `error` is the largest error of a few rows and keys of each rank against
fp64; `bytes` is what a rank sends in a hop of the ring, `mb` the peak memory of a rank beyond its inputs.
`predicted` is the efficiency expected with more ranks, from the time that a hop of the ring adds to attention
here. `kernels`: see `common.records`; `sources`: hashes of the modules that cut, move and add up.

ring          K and V by NCCL's send and receive, as in two_d; ring_copy_engines: by what is the default here
ring_in_turn  each copy is waited for before the products begin; ring_contiguous: without zigzag; both by NCCL
*_graph       replays of a call that a CUDA graph captured, of up to 8192 tokens a rank: the CPU then does nothing
cp_*          torch's context_parallel, with its backend and the way in which it moves K and V
one_gpu       the whole sequence on each GPU

By default ours use Hopper's kernels in both passes on Hopper GPUs, if these support the case.
"""

import argparse
import ast
import contextlib
import functools
import hashlib
import importlib
import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from flashlib import masks
from flashlib.bench.common import harness, records, sampled
from flashlib.masks.runs import count
from flashlib.ring import head_groups, layouts
from flashlib.ring.distributed import all_gather, choices, copy_engines, link, ring, two_d, ulysses
from flashlib.types import Record

NAMES = sampled.Sampled._fields
SAMPLE = 8  # verified rows and keys of each rank
TURNS = 5
PREDICTED = 4, 8  # ranks
SHORTEST = 4096  # tokens of a rank
GRAPHED = {"ring_graph": "ring_copy_engines", "all_gather_graph": "all_gather"}
GRAPHED_UP_TO = 8192  # tokens of a rank; with more the CPU is ahead of the GPU
DISTRIBUTED = (
    "agreements", "all_gather", "axes", "call", "copy_engines", "gradients", "keys", "link", "local", "on_gpu",
    "on_hopper", "ring", "signals", "two_d", "ulysses",
)  # fmt: skip
SOURCES = "head_groups", "hops", "layouts", *(f"distributed.{name}" for name in DISTRIBUTED)


class RingSize(NamedTuple):
    """One sequence of N tokens. left: of a window; documents: how many tokens each has; None for none."""

    N: int
    H: int = 16
    H_k: int = 16
    d: int = 128
    causal: bool = True
    left: int | None = None
    documents: int | None = None

    @property
    def compiled(self) -> dict:
        """The size as `kernels.compiler.compiled` takes it."""
        return {"d": self.d, "causal": self.causal, "shape": [1, self.H, self.H_k, self.N]}

    @property
    def calls(self) -> int:
        """How many calls in a row are timed."""
        return 1 + 131072 // self.N

    @property
    def mask(self) -> masks.Mask | None:
        """The mask, in addition to causal."""
        if self.left is not None:
            return masks.window(self.left, 0)
        return None if self.documents is None else masks.documents(np.arange(self.N) // self.documents)


SIZES = [
    *(RingSize(N, *of) for N in (65536, 131072, 8192, 16384, 32768) for of in ((16, 16), (32, 8))),
    RingSize(65536, left=8191),
    RingSize(65536, documents=8192),
]


class TimedWay(NamedTuple):
    """attention: from own Q, K and V to O. heads: how many ranks share pieces. whole: if it takes all the rows."""

    attention: Callable
    layout: str = "zigzag"
    heads: int = 1
    whole: bool = False


def ways(size: RingSize, device: str) -> dict[str, TimedWay]:
    """Return the ways to attend at a size, by name."""
    P = dist.get_world_size()
    given = {"causal": size.causal, "mask": size.mask}

    def by(module, **options):
        return lambda Q, K, V: module.attention(Q, K, V, **given, **options).O

    found = {"ring": TimedWay(by(ring, link=link.Link))}
    if choices.chosen(device).link is copy_engines.CopyEngines:
        found["ring_copy_engines"] = TimedWay(by(ring))
    found["ring_in_turn"] = TimedWay(by(ring, link=link.InTurn))
    found["ring_contiguous"] = TimedWay(by(ring, layout="contiguous", link=link.Link), "contiguous")
    found["all_gather"] = TimedWay(by(all_gather))
    found["ulysses"] = TimedWay(by(ulysses, layout="contiguous"), "contiguous")
    if P >= 4 and P % 2 == 0:
        mesh = dist.init_device_mesh(device, (2, P // 2))
        found["two_d"] = TimedWay(by(two_d, group=mesh, link=link.Link), heads=P // 2)
    return found | {"one_gpu": TimedWay(functools.partial(_one_gpu, **given), whole=True)}


def _one_gpu(Q, K, V, causal, mask):
    from flashlib.kernels import autograd  # only here: Triton may not be installed
    from flashlib.kernels.hopper import forward, launch

    hopper = mask is None and launch.suits(Q, K, V)
    options = {"deterministic": False, "forward": forward} if hopper else {}
    return autograd.attention(Q, K, V, causal=causal, mask=mask, **options).O


class RankProblem:
    """Random tensors of a size, the same on every rank, and the correct results for some of the rank's rows."""

    def __init__(self, size: RingSize, device: str, dtype: torch.dtype = torch.bfloat16) -> None:
        self.size, self.device = size, device
        g = torch.Generator(device).manual_seed(0)
        shapes = ((1, n, size.N, size.d) for n in (size.H, size.H_k, size.H_k, size.H))
        self.whole = tuple(torch.randn(shape, generator=g, device=device, dtype=dtype) for shape in shapes)
        self.known: dict = {}

    def own(self, way: TimedWay) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        """Return this rank's Q, K, V and dO in the form that a way takes, and the positions of their rows."""
        P, me = dist.get_world_size(), dist.get_rank()
        runs = (range(self.size.N),) if way.whole else head_groups.runs(self.size.N, P, me, way.layout, way.heads)
        at = torch.cat([torch.arange(run.start, run.stop, run.step) for run in runs]).to(self.device)
        return tuple(X if way.whole else X[:, :, at] for X in self.whole), at

    def verify(self, name: str, way: TimedWay, own: tuple[torch.Tensor, ...] | None = None) -> float:
        """Return the largest error of a way; raise AssertionError if it is wrong.

        own: Q, K, V and dO of this rank, if not those of `own`.
        """
        given, at = self.own(way)
        Q, K, V, dO = own or given
        mine = torch.linspace(0, len(at) - 1, SAMPLE, device=self.device).long().unique()
        leaves = [X.detach().requires_grad_() for X in (Q, K, V)]
        O = way.attention(*leaves)
        grads = torch.autograd.grad(O, leaves, dO)
        errors = []
        for what, X, right, rough in zip(NAMES, (O, *grads), *self.right(at[mine]), strict=True):
            found = X[0, 0, mine].double()
            harness.verify(f"{what} of {name} at {self.size}", found, right, rough, roundings=2)
            errors.append((found - right).abs().max().item())
        return max(errors)

    def right(self, at: torch.Tensor) -> list[sampled.Sampled]:
        """Return the results for rows and keys in fp64, and as rounded by standard attention; computed once."""
        key, mask = tuple(at.tolist()), masks.combined(self.size.mask, self.size.causal)
        if key not in self.known:
            Q, K, V, dO = self.whole
            self.known[key] = [sampled.results(Q, K, V, dO, mask, at, at, rounded=of) for of in (False, True)]
        return self.known[key]


def passes(way: TimedWay, problem: RankProblem) -> dict[str, Callable[[], object]]:
    """Return two functions: a way's forward pass, and both of its passes."""
    Q, K, V, dO = problem.own(way)[0]
    return of_tensors(way.attention, Q, K, V, dO)


def of_tensors(
    attention: Callable, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, dO: torch.Tensor
) -> dict[str, Callable[[], object]]:
    """Return two functions: an attention's forward pass, and both passes."""
    leaves = [X.detach().requires_grad_() for X in (Q, K, V)]

    def forward():
        with torch.no_grad():
            return attention(Q, K, V)

    return {"forward": forward, "both": lambda: torch.autograd.grad(attention(*leaves), leaves, dO)}


def graphed(run: Callable[[], Any]) -> Callable[[], None]:
    """Return a function that replays a call, captured in a CUDA graph and compared with the call."""
    with torch.cuda.stream(torch.cuda.Stream()):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = run()
    graph.replay()
    torch.testing.assert_close(found, run(), rtol=2e-2, atol=2e-2)  # sums of dQ come in any order
    return graph.replay


@contextlib.contextmanager
def context_parallel(problem: RankProblem) -> Any:
    """Yield torch's context_parallel, {name: TimedWay}, and own Q, K, V and dO; only if causal and H_k is H.

    It cuts the sequence like zigzag.
    """
    size = problem.size
    if problem.device != "cuda" or size.mask is not None or not size.causal or size.H != size.H_k:
        yield {}, None
        return
    from torch.distributed.tensor.experimental import context_parallel as parallel
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from flashlib.private_apis.of_torch import rotate_context_parallel

    mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
    buffers = [X.clone() for X in problem.whole]  # it cuts in place

    def attention(backend, rotation, Q, K, V):
        rotate_context_parallel(rotation)
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(Q, K, V, is_causal=True)  # this name is patched

    with parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * 4, no_restore_buffers={*buffers}):
        found = {}
        for kind, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
            for rotation in ("allgather", "alltoall"):
                found[f"cp_{kind}_{rotation}"] = TimedWay(functools.partial(attention, backend, rotation))
        yield found, tuple(buffers)


def timed(runs: dict[str, Callable[[], object]], clock: Callable, calls: int) -> dict[str, float]:
    """Return by name the median, over turns whose order alternates, of the slowest rank's milliseconds."""
    taken = []
    for turn in range(TURNS + 1):  # the first turn warms up
        order = list(reversed(runs)) if turn % 2 else list(runs)
        ms = {name: clock(runs[name], calls) for name in order}
        taken.append([ms[name] for name in runs])
    of_all = link.gather(dist.group.WORLD, torch.tensor(taken[1:], device=_device()).flatten(), _sizes(runs))
    slowest = torch.stack(of_all).amax(dim=0).view(TURNS, len(runs))
    return dict(zip(runs, slowest.median(dim=0).values.tolist(), strict=True))


def _sizes(runs):
    return [TURNS * len(runs)] * dist.get_world_size()


def _device():
    return "cuda" if "nccl" in dist.get_backend_config() else "cpu"


def cuda_clock(run: Callable[[], object], calls: int) -> float:
    """Return the milliseconds of a call, measured over several in a row, which all ranks begin together.

    As in a model, whose layers follow each other, the CPU is ahead of the GPU in all calls but the first.
    """
    dist.barrier()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / calls


def rows(size: RingSize, device: str, clock: Callable) -> list[Record]:
    """Return the rows of a size, one for each pass. All ranks call it. A wrong way raises and is not timed."""
    problem, P = RankProblem(size, device), dist.get_world_size()
    of, error, mb = {}, {}, {}
    for name, way in ways(size, device).items():
        error[name] = problem.verify(name, way)
        of[name] = passes(way, problem)
    found = []
    with context_parallel(problem) as (peers, own):
        left_out = {name: why for name, way in peers.items() if (why := _why_not(name, way, problem, own))}
        of |= {name: of_tensors(way.attention, *own) for name, way in peers.items() if name not in left_out}
        for which in ("forward", "both"):
            runs = {name: run[which] for name, run in of.items()}
            if device == "cuda":
                mb = {name: round(harness.cuda_peak_bytes(run) / 1e6, 1) for name, run in runs.items()}
                if size.N // P <= GRAPHED_UP_TO:
                    runs |= {name: graphed(runs[way]) for name, way in GRAPHED.items() if way in runs}
            ms = timed(runs, clock, size.calls)
            one = ms["one_gpu"]
            efficiency = {name: round(one / (P * t), 3) for name, t in ms.items() if name != "one_gpu"}
            row = {"ranks": P, **size._asdict(), "pass": which}
            row |= {"ms": {name: round(t, 3) for name, t in ms.items()}, "efficiency": efficiency}
            row |= {"error": error, "mb": mb, "bytes": hop_bytes(size, P, which)}
            found.append(row | {"left_out": left_out, "predicted": predicted(row, P)})
    return found


def _why_not(name, way, problem, own):
    """Return why a peer is not timed, or None: it must be correct on every rank."""
    reason = None
    try:
        problem.verify(name, way, own)
    except Exception as error:  # whatever a library raises
        reason = harness.reason(error)
        harness.say(f"{name:>18}: none, {reason}")
    right = torch.tensor([reason is None], device=_device())
    told = link.gather(dist.group.WORLD, right, [1] * dist.get_world_size())
    return reason or (None if all(map(bool, told)) else "it is wrong on another rank")


def hop_bytes(size: RingSize, P: int, which: str) -> int:
    """Return the bytes that a rank sends in a hop: K and V in 16 bits; backward, dK and dV in fp32 too."""
    tokens = max(count(layouts.runs(size.N, P, r, "zigzag")) for r in range(P))
    numbers = 2 * size.H_k * tokens * size.d
    return numbers * (2 if which == "forward" else 2 + 2 + 4)


def predicted(row: Record, P: int) -> dict[str, float]:
    """Return the efficiency of a ring of more ranks than P: the cost of a hop is proportional to its bytes."""
    ms = {name: t for name, t in row["ms"].items() if name in ("ring", "ring_copy_engines")}
    best, one = min(ms.values()), row["ms"]["one_gpu"]
    of_a_hop = max(best - one / P, 0) / max(P - 1, 1) * P  # if all K and V were sent at once
    return {str(n): round(one / n / (one / n + (n - 1) * of_a_hop / n), 3) for n in PREDICTED if n > P}


def summary(record: Record) -> str:
    """Return the rows as lines."""
    lines = []
    for row in record["rows"]:
        heads_of = f"{row['H']}/{row['H_k']}"
        seen = f"window {row['left'] + 1}" if row["left"] is not None else "causal" if row["causal"] else "all"
        seen = f"documents of {row['documents']}" if row["documents"] else seen
        lines.append(f"N {row['N']}, heads {heads_of}, {seen}, {row['pass']}, {row['ranks']} ranks:")
        for name, ms in row["ms"].items():
            share = row["efficiency"].get(name)
            lines.append(f"  {name:>18} {ms:9.2f} ms" + ("" if share is None else f", efficiency {share:.3f}"))
    return "\n".join(lines)


def sources() -> dict[str, str]:
    """Return a hash of the syntax of each module that cuts a sequence, moves its parts or adds them up."""
    modules = {name: importlib.import_module(f"flashlib.ring.{name}") for name in SOURCES}
    return {name: _hash(inspect.getsource(module)) for name, module in modules.items()}


def _hash(source):
    return hashlib.sha256(repr(_syntax(ast.parse(source))).encode()).hexdigest()[:12]


def _syntax(node):
    """Return a syntax tree as tuples without docstrings; Python's own dump of a tree differs between versions."""
    if isinstance(node, list):
        return [_syntax(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
        fields["body"] = node.body[1:]
    return type(node).__name__, [(name, _syntax(value)) for name, value in fields.items() if value or value == 0]


def on_this_rank(sizes: list, out: str | None, device: str = "cuda") -> Record:
    """Return the record, on every rank; rank 0 writes it after each size."""
    if device == "cuda":
        torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    about = harness.environment() | {"sources": sources()} if device == "cuda" else {}
    record: Record = about | {"rows": []}
    with records.Notes(harness.capability()) if device == "cuda" else contextlib.nullcontext() as notes:
        for size in (RingSize(*one) for one in sizes):
            if size.N // dist.get_world_size() < SHORTEST:
                continue
            record["rows"] += rows(size, device, cuda_clock)
            if dist.get_rank() == 0:
                harness.say(summary(record | {"rows": record["rows"][-2:]}))
                if size.mask is None and notes:
                    notes.add(record["rows"][-1], size.compiled, {"hopper_forward": {}, "hopper_backward": {}})
                if out:
                    harness.write(out, record)
        if notes:
            notes.finish()
    if out and dist.get_rank() == 0:
        harness.write(out, record)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.ring", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--ranks", type=int, default=2, help="how many GPUs, without torchrun (%(default)s)")
    parser.add_argument("--N", type=int, help="only the sizes of this N")
    args = parser.parse_args()
    if torch.cuda.device_count() < 2:
        parser.exit(1, "Rings are timed on two or more GPUs of one host; torch finds fewer.\n")
    sizes = [tuple(size) for size in SIZES if args.N in (None, size.N)]
    if "TORCHELASTIC_RUN_ID" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
        on_this_rank(sizes, args.out)
        dist.destroy_process_group()
        return
    from flashlib.ring import processes

    processes.run(on_this_rank, sizes, args.out, ranks=args.ranks, seconds=1800, backend="nccl")


if __name__ == "__main__":
    main()
