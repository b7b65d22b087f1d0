"""Kernels that call the answers of Scores: a change of scores, and dropout on a tile."""

# ruff: noqa: I001  flashlib.kernels before triton
from collections.abc import Callable

import numpy as np
import torch

from flashlib.checks.harness.parts import called, tensor
from flashlib.kernels import DEVICE
import triton
import triton.language as tl


def on_tile(answer: Callable) -> Callable:
    """Return a function of the scores of a tile, `visible` and a cap, that calls `answer` once."""

    def run(S, visible, cap):
        changed = torch.full(S.shape, torch.nan, device=DEVICE)
        arguments = tensor(S), tensor(visible.astype(np.int8)), changed, cap, answer
        called(lambda: _scores_kernel[(1,)](*arguments, *S.shape), ("the changed scores",))
        return changed.cpu().numpy()

    return run


def tile_by_tile(answer: Callable) -> Callable:
    """Return a function of P, dP and delta of all heads that calls `answer` for each tile, in one program each.

    answer: takes tiles of P and dP, the delta of its rows, seed, head, offs_m, offs_n, N_q, N_k and p, and returns
    two tiles; the function returns two whole arrays. first: the number of the first of these heads.
    """

    def run(P, dP, delta, seed, p, B_R, B_C, first):
        H, N_q, N_k = P.shape
        kept, dS = torch.full((2, H, N_q, N_k), torch.nan, device=DEVICE)
        grid = triton.cdiv(N_q, B_R), triton.cdiv(N_k, B_C), H
        arguments = *map(tensor, (P, dP, delta)), kept, dS, seed, first, N_q, N_k, p, answer, B_R, B_C
        called(lambda: _dropout_kernel[grid](*arguments), ("Z * P", "dS"))
        return kept.cpu().numpy(), dS.cpu().numpy()

    return run


@triton.jit
def _scores_kernel(S_ptr, visible_ptr, out_ptr, cap, f: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    at = tl.arange(0, B_R)[:, None] * B_C + tl.arange(0, B_C)[None, :]
    changed = f(tl.load(S_ptr + at), tl.load(visible_ptr + at) != 0, cap)
    tl.store(out_ptr + at, changed)


@triton.jit
def _dropout_kernel(
    P_ptr, dP_ptr, delta_ptr, kept_ptr, dS_ptr, seed, first, N_q, N_k, p, f: tl.constexpr,
    B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(2)
    offs_m = tl.program_id(0) * B_R + tl.arange(0, B_R)
    offs_n = tl.program_id(1) * B_C + tl.arange(0, B_C)
    inside = (offs_m[:, None] < N_q) & (offs_n[None, :] < N_k)
    at = head * N_q * N_k + offs_m[:, None] * N_k + offs_n[None, :]
    P = tl.load(P_ptr + at, mask=inside, other=0.0)
    dP = tl.load(dP_ptr + at, mask=inside, other=0.0)
    delta = tl.load(delta_ptr + head * N_q + offs_m, mask=offs_m < N_q, other=0.0)
    kept, dS = f(P, dP, delta, seed, first + head, offs_m, offs_n, N_q, N_k, p)
    tl.store(kept_ptr + at, kept, mask=inside)
    tl.store(dS_ptr + at, dS, mask=inside)
