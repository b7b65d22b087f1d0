"""Time the ladder of the backward pass on one GPU in one run: from autograd to the tuned passes.

    python -m flashlib.bench.backward_ladder --out notebooks/data/h200_backward_ladder.json

dQ, dK and dV in bf16, N = 4096, B * N = 16384 tokens, H * d = 2048. The forward pass runs once and is not timed.
Gradients of one head are verified before each timing. Rungs b4 to b6 try several launch options; b5 and b6 start
from the fastest options of the previous rung. The fastest is marked. TFLOP/s count five matrix products, however
many are computed.

After the ladder and the peers, each pass is timed alone, as it is and without one of its ideas. What both passes
need for each row is computed once and not timed. Here TFLOP/s count the products of that pass: four for dK and dV,
and three for dQ. Both compute S and dP, so together they have seven products and not five.
"""

import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from flashlib import cost
from flashlib.bench import ladder
from flashlib.bench.common import harness, records
from flashlib.bench.common.peers import BACKWARD_PEERS, kernels
from flashlib.bench.ladder import SMALL, TOKENS, WIDTH, N, Rung, small
from flashlib.types import Traffic

PRODUCTS = 5  # that `cost.backward_flops` counts
TILES = [
    {"B_r": r, "B_c": c, "num_warps": w} for r, c, w in ((64, 64, 4), (32, 64, 4), (64, 128, 8), (128, 64, 8))
]
STAGES = (2, 3)


class BackwardLadderProblem(ladder.LadderProblem):
    """One size, its gradients, and what the forward pass saved.

    A rung's run(problem, **options) returns the function that is timed; what it does before that is not timed.
    """

    def __init__(self, B: int, H: int, N: int, d: int, causal: bool, **options: Any) -> None:
        super().__init__(B, H, N, d, causal, gradients=True, **options)
        self.O, self.lse = kernels("forward").attention(*self.tensors, causal=causal)

    def only(self, name: str, gradients: Iterable[str], products: int) -> "BackwardLadderProblem":
        """Return the problem for a pass that makes only these gradients, with this many products a tile."""
        one = copy.copy(self)
        one.row = self.row | {"pass": name}
        one.expected = {gradient: self.expected[gradient] for gradient in gradients}
        one.head_flops = self.head_flops * products // PRODUCTS
        return one

    def ready(self, rung: Rung, options: dict) -> Callable:
        return rung.run(self, **options)

    def launches(self, rung: str, options: dict) -> dict:
        options = {} if rung == "ours" else options | {"descriptors": rung == "b6_descriptors"}
        passes = ("fused",) if rung == "b2_adds" else ("dkv", "dq")
        return {f"backward_{which}": options for which in passes}


def peer(name: str) -> Callable:
    """Return the run of a peer through autograd. It chooses its own tiles; the options only record them."""

    return lambda problem, **_: problem.run(BACKWARD_PEERS[name])


def kernel(**fixed: object) -> Callable:
    """Return the run of `backward.backward` with these options."""

    def run(problem, **options):
        given = *problem.tensors, problem.O, problem.lse, problem.dO
        options = {"causal": problem.causal} | fixed | options
        return lambda: kernels("backward").backward(*given, **options)

    return run


def one_pass(name: str, **switches: bool) -> Callable:
    """Return the run of one pass of `kernels.ablations.backward` with these switches."""

    def run(problem, **options):
        ideas = kernels("ablations.backward")
        rows = ideas.prepare(problem.tensors[0], problem.O, problem.lse, problem.dO)
        given = *problem.tensors, problem.dO, rows
        return lambda: getattr(ideas, name)(*given, causal=problem.causal, **switches, **options)

    return run


def tiles(problem: BackwardLadderProblem, tried: list[dict]) -> list[dict]:
    return [tile | {"num_stages": 1} for tile in TILES]


def stages(problem: BackwardLadderProblem, tried: list[dict]) -> list[dict]:
    return [row["options"] | {"num_stages": n} for row in tried[:2] for n in STAGES]


def again(problem: BackwardLadderProblem, tried: list[dict]) -> list[dict]:
    return [row["options"] for row in tried[:2]]


def chosen(problem: BackwardLadderProblem, tried: list[dict]) -> list[dict]:
    return [{name: list(getattr(_tuned(problem), name)) for name in ("dkv", "dq")}]


def chosen_fused(problem: BackwardLadderProblem, tried: list[dict]) -> list[dict]:
    return [{"fused": list(_tuned(problem).fused)}]


def of_its_own(problem: BackwardLadderProblem, tried: list[dict]) -> list[dict]:
    """The tuned tile of the pass that this problem times."""
    return [dict(zip(SMALL, getattr(_tuned(problem), problem.row["pass"]), strict=True))]


def _tuned(problem):
    Q = problem.tensors[0]
    descriptors = kernels("launch.tile_sizes").room(Q.device).tma
    return kernels("launch.tile_sizes").backward(problem.d, Q.dtype, descriptors, Q.device)


def stored(problem: BackwardLadderProblem) -> Traffic:
    return cost.standard_backward_traffic(problem.N, problem.N, problem.d, dtype="bfloat16")


def tiled(problem: BackwardLadderProblem, B_r: int, B_c: int, **_: object) -> Traffic:
    N, d, causal = problem.N, problem.d, problem.causal
    return cost.fa2_backward_traffic(N, N, d, B_r=B_r, B_c=B_c, causal=causal, dtype="bfloat16")


def tiled_alike(problem: BackwardLadderProblem, dkv: list[int], dq: list[int]) -> Traffic | None:
    """The closed form assumes the same tile in both passes."""
    return tiled(problem, *dkv[:2]) if dkv[:2] == dq[:2] else None


ADDS = kernel(deterministic=False, descriptors=False)
POINTERS = kernel(descriptors=False)
DESCRIPTORS = kernel(descriptors=True)
RUNGS = [
    Rung("b1_eager", "autograd of standard attention, S and P in HBM", peer("eager"), traffic=stored),
    Rung("b2_adds", "one pass, P from lse, dQ added to in HBM", ADDS, small),
    Rung("b3_two_passes", "a pass for dQ, nothing is added in HBM", POINTERS, small, tiled),
    Rung("b4_tiles", "other tiles and warps", POINTERS, tiles, tiled),
    Rung("b5_stages", "tiles loaded ahead", POINTERS, stages, tiled),
    Rung("b6_descriptors", "tensor descriptors in place of pointers", DESCRIPTORS, again, tiled),
    Rung("ours", "a tile for each pass, kernels.backward", peer("ours"), chosen, tiled_alike),
]
FUSED = Rung("ours_fused", "one pass, tuned, dQ added to in HBM", peer("ours_fused"), chosen_fused)
OTHERS = [name for name in BACKWARD_PEERS if name not in ("ours", "ours_fused", "eager")]
PEERS = [FUSED, *(Rung(name, "a peer", peer(name)) for name in OTHERS)]


def idea(name: str, taken_back: str, run: Callable) -> Rung:
    return Rung(name, taken_back, run, of_its_own)


DKV = [
    idea("dkv", "as it is", one_pass("dkv")),
    idea("dkv_not_prepared", "lse masked and brought to base 2 in every tile", one_pass("dkv", prepared=False)),
    idea("dkv_not_transposed", "P and dS transposed in shared memory", one_pass("dkv", transposed=False)),
    idea("dkv_late_dP", "dP made after the product for dV", one_pass("dkv", early_dP=False)),
]
DQ = [
    idea("dq", "as it is", one_pass("dq")),
    idea("dq_not_in_registers", "Q_i and dO_i read in shared memory", one_pass("dq", in_registers=False)),
]


def measure(ds: Iterable[int] = ladder.DS, notes: records.Notes | None = None) -> list:
    """Return all rows: for each size the ladder, the peers, and the ideas of each pass one by one."""
    rows = []
    harness.say("TFLOP/s with B_r B_c num_warps num_stages, ours for dK/dV, then for dQ; * the best of a rung")
    for d, causal in itertools.product(ds, (False, True)):
        with harness.stopwatch(f"d = {d}, causal = {causal}"):
            problem = BackwardLadderProblem(TOKENS // N, WIDTH // d, N, d, causal)
            rows += ladder.climb(problem, RUNGS, "ladder", notes)
            rows += ladder.climb(problem, PEERS, "peer")
            rows += ladder.climb(problem.only("dkv", ("dK", "dV"), 4), DKV, "ideas")
            rows += ladder.climb(problem.only("dq", ("dQ",), 3), DQ, "ideas")
            del problem  # frees its memory before the next one is made
    return rows


if __name__ == "__main__":
    ladder.main("backward_ladder", __doc__, measure)
