"""The gradient of tensors that changes of scores read, from the data of the backward pass.

By default it has the same bits every time, whatever the order of programs: one launch measures how much there is
to add, and a second adds whole multiples of a unit, in 64 bits. The unit is 2^-61 of the whole sum, so rounding to
it loses less than fp32 does. Otherwise a single launch adds in fp32, in any order.

Source: Demmel and Nguyen, Parallel Reproducible Summation (2015), for sums that no order changes.
"""

from typing import NamedTuple

import torch
import triton

from flashlib.kernels.bias_passes import _dbias
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.load_store import HeadDims
from flashlib.kernels.launch.planning import Launch
from flashlib.kernels.masking import biases
from flashlib.kernels.masking.device_side import Masking

BITS = 61  # of a sum in units; two more allow for different rounding in the second launch


class BiasGradientPlan(NamedTuple):
    """The launches. measure: None if sums may be in any order. add: None if there are no scores."""

    measure: Launch | None
    add: Launch | None


def plan(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor, sizes: tuple, dims: HeadDims,
    code: Masking, config: tile_sizes.Config, descriptors: bool, deterministic: bool,
) -> BiasGradientPlan:  # fmt: skip
    """Return the plan for tensors as kernels take them. sizes: of `backward.BackwardInputs`, then the MaskArgs."""
    if not q.numel() or not k.numel():
        return BiasGradientPlan(None, None)
    unit, strides = planning.in_units(q, k, v, do)
    grid = triton.cdiv(q.shape[2], config.B_R) * q.shape[0] * q.shape[1]
    constants = {"DIMS": dims, "MASK": code, "DESCRIPTORS": descriptors, "UNIT": unit}
    measure, add = (Launch(_dbias, grid, (*strides, *sizes), constants, config._asdict()) for _ in range(2))
    return BiasGradientPlan(measure if deterministic else None, add)


def run(
    plan: BiasGradientPlan, given: tuple, scale: float, tensors: tuple[torch.Tensor, ...]
) -> list[torch.Tensor]:
    """Return the gradient of each of a mask's biases, fp32, of its shape.

    given: Q, K, V and dO as kernels take them, lse2 and delta.
    """
    entries = [biases.read(T) for T in tensors]
    if not plan.add:
        return [torch.zeros_like(T, dtype=torch.float32) for T in entries]
    args = plan.add.sizes[-1]
    if not plan.measure:
        sums = [torch.zeros_like(T, dtype=torch.float32) for T in entries]
        plan.add(*given, scale, mask_args=biases.filled(args, entries, sums=sums))
        return sums
    totals = torch.zeros(len(entries), *plan.measure.grid[:1], dtype=torch.float32, device=entries[0].device)
    plan.measure(*given, scale, mask_args=biases.filled(args, entries, totals=list(totals)))
    in_all = totals.sum(1, dtype=torch.float64)
    exponents = (BITS - torch.frexp(in_all).exponent).clamp(-126, 126)
    units = torch.ldexp(torch.ones_like(in_all), exponents)
    sums = [torch.zeros_like(T, dtype=torch.int64) for T in entries]
    asked = {"sums": sums, "unit": list(units.float()[:, None].expand(-1, 4).contiguous())}  # aligned to 16 bytes
    plan.add(*given, scale, mask_args=biases.filled(args, entries, **asked))
    found = zip(sums, units, in_all, strict=True)
    return [torch.where(n.isfinite(), X / unit, torch.nan).float() for X, unit, n in found]
