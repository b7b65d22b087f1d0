"""What the ranks of a test do: random cases, the same on every rank, compared with one process in fp64."""

import importlib

import numpy as np
import torch
import torch.distributed as dist

from flashlib import masks, torch_ref
from flashlib.masks.runs import count
from flashlib.ring import head_groups, layouts
from flashlib.ring.distributed import all_gather, gradients, ring, two_d, ulysses
from tests import masked, oracle

WAYS = {"ring": ring, "all_gather": all_gather, "ulysses": ulysses, "two_d": two_d}
NAMES = "O", "lse", "dQ", "dK", "dV"
ROUNDING = {torch.float64: 1e-11, torch.float32: 2e-5, torch.bfloat16: 0.04, torch.float16: 0.005}


def run(function, *arguments, importing=()):
    """Run a function on four ranks, after importing what would take each of them half a second."""
    from flashlib.ring import processes  # here: ranks that are threads do not need cloudpickle

    names = "torch.fx.experimental.symbolic_shapes", "torch._dynamo", *importing
    processes.run(imports, *names, ranks=1, seconds=100)
    return processes.run(function, *arguments, ranks=4, seconds=300)


def imports(*names):
    for name in names:
        importlib.import_module(name)


def groups():
    """Return this rank's groups, of 4, 3 and 2 ranks, and the axes of 2 x 2, by name; None if it is not in one."""
    P, rank = dist.get_world_size(), dist.get_rank()
    found = {P: dist.group.WORLD}
    made = {ranks: dist.new_group(list(ranks)) for ranks in ((0, 1, 2), (0, 1), (2, 3), (0, 2), (1, 3))}
    found[3] = made[0, 1, 2] if rank < 3 else None
    found[2] = made[0, 1] if rank < 2 else made[2, 3]
    found["2d"] = made[(0, 2) if rank % 2 == 0 else (1, 3)], found[2]
    return found


def drawn(rng, way, kind):
    """Return a random case: sizes, a mask, a layout, a dtype."""
    N_q, N_k = (int(n) for n in rng.integers(0, 60, 2)) if rng.random() < 0.5 else (int(rng.integers(1, 70)),) * 2
    H_k, group = (int(n) for n in rng.integers(1, 4, 2))
    case = {"B": int(rng.integers(1, 3)), "N_q": N_q, "N_k": N_k, "H_k": H_k, "H": H_k * group, "d": 3, "d_v": 5}
    case |= {"layout": str(rng.choice(list(layouts.LAYOUTS))), "causal": bool(rng.random() < 0.4)}
    case["dtype"] = [torch.float64, torch.float32, torch.bfloat16][rng.choice(3, p=[0.6, 0.2, 0.2])]
    case["mask"] = per_head(rng, kind, case) or masked.draw(kind, rng, N_q, N_k).mask
    return case


def per_head(rng, kind, case):
    """Return a mask that differs between heads or sequences; None for another kind."""
    if kind == "slopes":
        return masks.alibi(rng.uniform(0.1, 1, case["H"])) & masks.window(9, 4)
    if kind == "of heads":
        return masks.from_function(lambda b, h, r, c: (r + h * 3 + b) % 7 >= c % 5)
    if kind == "score of heads":
        return masks.score(lambda S, h, r, c: S * (1 + h * 0.1), lambda S, h, r, c: 1 + h * 0.1)
    if kind == "new kind of heads":
        return masked.OfHeads()
    if kind == "documents of each":
        return masks.documents(np.stack([masked.packed(rng, case["N_k"]) for _ in range(case["B"])]))
    return None


KINDS = [*masked.KINDS, "slopes", "of heads", "score of heads", "new kind of heads", "documents of each"]


def tensors(case, seed):
    """Return Q, K, V, dO and dlse of the whole sequence, in the dtype of a case."""
    g = torch.Generator().manual_seed(seed)
    B, H, H_k, N_q, N_k = (case[name] for name in ("B", "H", "H_k", "N_q", "N_k"))
    shapes = (B, H, N_q, case["d"]), (B, H_k, N_k, case["d"]), (B, H_k, N_k, case["d_v"]), (B, H, N_q, case["d_v"])
    found = [torch.randn(shape, generator=g, dtype=torch.float64).to(case["dtype"]) for shape in shapes]
    return *found, torch.randn(shapes[0][:3], generator=g, dtype=torch.float64)


def one_process(case, Q, K, V, dO, dlse):
    """Return O, lse, dQ, dK and dV of standard attention in the dtype of its tensors."""
    Q, K, V = (X.detach().clone().requires_grad_() for X in (Q, K, V))
    O, lse = torch_ref.attention(Q, K, V, causal=case["causal"], mask=case["mask"])
    seen = lse > -torch.inf
    grads = torch.autograd.grad([O, lse[seen]], [Q, K, V], [dO, dlse[seen].to(lse.dtype)], allow_unused=True)
    return (
        O.detach(),
        lse.detach(),
        *(torch.zeros_like(X) if g is None else g for X, g in zip((Q, K, V), grads, strict=True)),
    )


def on_this_rank(way, group, case, Q, K, V, dO, dlse, **options):
    """Return the same for this rank's rows and keys, computed by a way, and the positions of each."""
    P, me, size = place(way, group)
    at = [torch.tensor(own(N, P, me, case["layout"], size), dtype=torch.long) for N in (case["N_q"], case["N_k"])]
    Q, K, V = (X[:, :, i].requires_grad_() for X, i in ((Q, at[0]), (K, at[1]), (V, at[1])))
    given = {"group": group, "layout": case["layout"], "causal": case["causal"], "mask": case["mask"]}
    O, lse = WAYS[way].attention(Q, K, V, **given, **options)
    grads = torch.autograd.grad([O, lse], [Q, K, V], [dO[:, :, at[0]], dlse[:, :, at[0]].to(lse.dtype)])
    return (O.detach(), lse.detach(), *grads), (at[0], at[0], at[0], at[1], at[1])


def place(way, group):
    """Return how many ranks there are, this one's number, and how many ranks share heads."""
    if way != "two_d":
        return dist.get_world_size(group), dist.get_rank(group), 1
    outer, inner = group
    size = dist.get_world_size(inner)
    return dist.get_world_size(outer) * size, dist.get_rank(outer) * size + dist.get_rank(inner), size


def own(N, P, me, layout, size):
    """Return the positions of a rank's tokens."""
    runs = head_groups.runs(N, P, me, layout, size)
    found = [i for run in runs for i in run]
    assert len(found) == count(runs)
    return found


def random_cases(amount, seed):
    """Compare this many cases of each way."""
    rng, of = np.random.default_rng(seed), groups()
    large = gradients.TURN
    for n in range(amount):
        gradients.TURN = large if n % 2 else 0  # from 0 bytes on, heads take turns
        for way in WAYS:
            case = drawn(rng, way, KINDS[(n * len(WAYS) + list(WAYS).index(way)) % len(KINDS)])
            group = of["2d"] if way == "two_d" else of[int(rng.choice([2, 3, 4]))]
            whole = tensors(case, int(rng.integers(2**31)))
            if group is not None:
                compare(way, group, case, whole)
    return "equal"


def compare(way, group, case, whole):
    """Fail unless this rank's error against one process in fp64 is at most twice that of plain attention."""
    exact = one_process(case, *(X.double() for X in whole))
    plain = one_process(case, *whole)
    given, at = on_this_rank(way, group, case, *whole)
    for name, X, right, rough, i in zip(NAMES, given, exact, plain, at, strict=True):
        assert X.dtype == rough.dtype, name
        pair = (Y[:, :, i].double().numpy() for Y in (right, rough))
        right_, rough_ = pair
        what = f"{name} of {way}, {case}"
        oracle.assert_close(X.double().numpy(), right_, plain=rough_, rounding=ROUNDING[case["dtype"]], what=what)
