"""Runs a rung of the Hopper backward on a CPU, as `run_backward` does the finished kernel."""

import random
from collections.abc import Sequence
from types import ModuleType

import torch

from flashlib.kernels.hopper.interpreter import gluon
from flashlib.kernels.hopper.interpreter.run import functions, play
from flashlib.kernels.hopper.interpreter.run_backward import shared
from flashlib.types import Grads


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, scale: float, seed: int, module: ModuleType, launched: str, keys: int,
    names: Sequence, ordered: bool,
) -> tuple[Grads, list[dict[str, list]]]:  # fmt: skip
    """Return what `backward` of a rung returns, and the commands that each role of each program gave.

    module, launched: where the kernel is, and its name; keys: of one consumer; names: for what it allocates, in
    order; ordered: whether its sums of dQ lie as threads hold them, and not row by row.
    """
    B, H, N_q, d = Q.shape
    given = shared(Q, K, V, O, lse, dO, dlse, causal, scale, keys)
    sums = torch.zeros(B * H * given["T_r"] * given["B_R"] * d)
    given["dq_ptr"] = gluon.Pointer(sums)
    arguments = {name: given[name] for name in vars(module)[launched].arg_names}
    numbers, said = random.Random(seed), []
    programs = B * given["H_k"] * given["T_c"]
    for number in range(programs):
        gl = gluon.Gluon(number, programs, numbers, names)
        play(gl, functions(gl, module)[launched], arguments)
        said.append(gl.said)
    rows = (in_order(sums) if ordered else sums).reshape(B, H, given["T_r"] * given["B_R"], d) * scale
    return Grads(rows[:, :, :N_q].to(Q.dtype), given["dk_desc"].X, given["dv_desc"].X), said


def in_order(sums: torch.Tensor) -> torch.Tensor:
    """Return sums of dQ, d = 128, row by row: what `backward_ladder.finish` does."""
    halves = sums.view(-1, 2, 8, 4, 8, 4, 2, 2)
    return halves.permute(0, 1, 3, 6, 4, 2, 5, 7).reshape(-1, 2, 64, 64).transpose(1, 2)
