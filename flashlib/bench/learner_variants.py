"""A learner's `my_variant` next to ours and FlexAttention, for `bench.mine`: compiled, or timed on a GPU.

It times cases of `bench.variants`. Each has two functions here, in the form in which the exercise
`variant` passes them.
"""

from collections.abc import Callable

import numpy as np
import torch

from flashlib import masks
from flashlib.bench import cases
from flashlib.kernels import triton
from flashlib.tiled import blocks

tl = triton.language

N, D = 16384, 128
TILE = 128, 64  # B_R, B_C
PEERS = "yours", "ours", "flex"
COMPILED = "window 1024", "causal ALiBi", "causal soft cap"
PREFIX = tl.constexpr(N // 4)


@triton.jit
def in_window(b, h, r, c):
    return (c <= r) & (c > r - 1024)


@triton.jit
def in_prefix(b, h, r, c):
    return (c <= r) | (c < PREFIX)


@triton.jit
def is_causal(b, h, r, c):
    return c <= r


@triton.jit
def every_fourth(b, h, r, c):
    return (c <= r) & ((r - c) % 4 == 0)


@triton.jit
def unchanged(S, b, h, r, c):
    return S


@triton.jit
def alibi(S, b, h, r, c):
    return S - tl.exp2(-0.5 * (h + 1).to(tl.float32)) * tl.abs(r - c)  # the slopes of 16 heads


@triton.jit
def softcap(S, b, h, r, c):
    return 50.0 - 100.0 / (tl.exp(S / 25.0) + 1.0)  # 50 tanh(S / 50)


FUNCTIONS = {
    "window 1024": (in_window, unchanged),
    "prefix": (in_prefix, unchanged),
    "causal ALiBi": (is_causal, alibi),
    "causal soft cap": (is_causal, softcap),
    "50% of blocks": (is_causal, unchanged),  # whole tiles, so that no mask is needed
    "every 4th key": (every_fourth, unchanged),
}
"""{name of a case: its SEEN and SCORE}."""


def table_of(mask: masks.Mask, N: int, B_r: int, B_c: int, device: str = "cuda") -> list[torch.Tensor]:
    """Return the table of tiles of a mask, as int32 tensors: n_whole, whole, n_cut, cut."""
    tiles, cols = mask.on(N, N), list(blocks(N, B_c))
    kinds = np.array([
        [0 if tiles.hidden(rows, c) else 1 if tiles.cut(rows, c) else 2 for c in cols] for rows in blocks(N, B_r)
    ])  # fmt: skip
    found = []
    for kind in (2, 1):
        here = kinds == kind
        order = np.argsort(~here, axis=1, kind="stable")
        counts = here.sum(axis=1)
        found += [counts, np.where(np.arange(len(cols)) < counts[:, None], order, -1)]
    return [torch.from_numpy(X).to(device, torch.int32) for X in found]


def reports(answer: Callable, capability: int) -> list[tuple]:
    """Return for some cases what yours and ours become: a description, a list of Compiled, and a Compiled."""
    from flashlib.kernels.compiler import learner_kernels

    def compiled(call):
        return learner_kernels.reports(call, "attention", d=D, capability=capability)

    return [(name, compiled(_yours(answer, name)), compiled(_ours(name))[-1]) for name in COMPILED]


def _yours(answer, name):
    functions = FUNCTIONS[name]

    def yours(Q, K, V, causal):
        T_r, T_c = (-(-n // B) for n, B in zip((Q.shape[2], K.shape[2]), TILE, strict=True))
        table = [
            torch.zeros(shape, dtype=torch.int32) for shape in ((T_r,), (T_r, T_c)) * 2
        ]  # launches are left out
        return answer(Q, K, V, table, *functions, *TILE)

    return yours


def _ours(name):
    def ours(Q, K, V, causal):
        from flashlib.kernels import forward

        return forward.attention(Q, K, V, mask=cases.named(name).mask(Q.shape[2], Q.shape[1]))

    return ours


def times(answer: Callable, N: int = N, device: str = "cuda") -> list[tuple[str, dict[str, float]]]:
    """Return for each case its name and the milliseconds of each peer that is correct."""
    from flashlib.bench.common.sizes import usual_size

    return [(name, _times(answer, name, usual_size(D, False, N), device)) for name in FUNCTIONS]


def _times(answer, name, size, device):
    from flashlib.bench import variants
    from flashlib.bench.common import harness

    problem = variants.VariantProblem(cases.named(name), size, False, device)
    table = table_of(variants.of_one_head(problem.mask), size.N, *TILE, device)

    def yours(Q, K, V):
        result = answer(Q, K, V, table, *FUNCTIONS[name], *TILE)
        return result[0] if isinstance(result, tuple | list) else result

    runs = {}
    for peer, attention in (("yours", yours), ("ours", problem.ours), ("flex", problem.flex)):

        def check(peer=peer, attention=attention):
            run = problem.run(attention)
            problem.verify(peer, run())
            runs[peer] = run

        harness.works(peer, check, needed=peer == "ours")
    return harness.side_by_side(runs)
