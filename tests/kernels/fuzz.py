"""Random problems for the kernels, for as long as you like: python -m tests.kernels.fuzz --seconds 60

With --backward they test the gradients, with --hopper the Hopper kernel; without a GPU that runs under
`flashlib.gluon.on_cpu`, each problem in a different order of events.

Each is verified as the tests do: error at most twice that of plain attention in the same dtype, both against fp64,
outputs poisoned, inputs inside borders of NaN. A failure prints its seed; `--seed N --seconds 0` runs it again.
"""

import argparse
import contextlib
import time

import numpy as np
import pytest
import torch

from flashlib import gluon, kernels
from flashlib.kernels import forward
from flashlib.kernels.hopper import forward as hopper_forward
from tests.kernels import drawn
from tests.kernels.gradients import check as check_gradients
from tests.kernels.poison import poison
from tests.kernels.test_forward import check

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def draw(seed, device, *, hopper=False):
    """Return Q, K, V and the options of one random problem. hopper: one that the Hopper kernel takes."""
    torch.manual_seed(seed)

    def one_of(*choices):
        return choices[torch.randint(len(choices), ()).item()]

    def up_to(n):
        return torch.randint(1, n + 1, ()).item()

    longest = 130 if device == "cpu" else 2100
    N_q, N_k = one_of(1, up_to(longest), up_to(64)), one_of(0, 1, up_to(longest), up_to(64), up_to(longest))
    d = one_of(16, 32, 64, 128, 256, 15 + up_to(241), 8 * (1 + up_to(31)))
    if device == "cpu":
        d = min(d, 80)
    B, H_k, group = up_to(2), up_to(3), one_of(1, 1, 2, 4)
    dtype = one_of(*DTYPES)
    if hopper:
        d, dtype = one_of(64, 128, 256), one_of(*DTYPES[:2])
        if device == "cpu":
            B, H_k, group, N_k = 1, 1, one_of(1, 2), max(N_k, 1)
    layout = one_of("BHNd", "BNHd", "bordered")
    Q, K, V = (inside(B, H, N, d, dtype, layout, device) for H, N in ((H_k * group, N_q), (H_k, N_k), (H_k, N_k)))
    Q *= one_of(1, 1, 8, 0.1)  # large scores, and weights that are nearly equal
    V += one_of(0, 0, 20)
    options = {"causal": one_of(False, True)}
    if one_of(False, True):
        options["scale"] = 0.05 * up_to(20)
    if hopper:
        return Q, K, V, options
    if one_of(False, True) and d <= 128 and dtype != torch.float32:  # otherwise the table's tiles
        options |= {"B_r": one_of(16, 32, 64, 128), "B_c": one_of(16, 32, 64), "num_warps": 4, "num_stages": 2}
    if B * H_k * group <= 4 and one_of(False, True):
        options["mask"] = drawn.draw(np.random.default_rng(seed), B, H_k * group, N_q, N_k)
    return Q, K, V, options


def inside(B, H, N, d, dtype, layout, device):
    """Return a random (B, H, N, d) tensor of this layout, and NaN wherever a kernel must not read."""
    if layout == "BNHd":
        X = torch.full((B, N + 2, H, d), torch.nan, device=device, dtype=dtype)[:, 1:-1].transpose(1, 2)
    elif layout == "bordered":
        X = torch.full((B, H, N + 4, d + 16), torch.nan, device=device, dtype=dtype)[:, :, 2:-2, 8:-8]
    else:
        X = torch.full((B, H, N, d), torch.nan, device=device, dtype=dtype)
    return X.copy_(torch.randn(B, H, N, d))


def run(seed, device, *, backward=False, hopper=False):
    """Verify one problem, or its gradients; raise AssertionError with its seed and sizes if a kernel is wrong."""
    Q, K, V, options = draw(seed, device, hopper=hopper)
    group = Q.shape[1] // K.shape[1]
    repeated = [X.repeat_interleave(group, dim=1) for X in (K, V)]

    def kernel(Q, K_repeated, V_repeated, **options):
        if not hopper:
            return forward.attention(Q, K, V, **options)
        with gluon.on_cpu(seed=seed) if device == "cpu" else contextlib.nullcontext():
            return hopper_forward.attention(Q, K, V, **options)

    try:
        if backward:
            deterministic = seed % 3 > 0
            if not deterministic and "B_r" in options:
                options["B_r"] = min(options["B_r"], 64)  # 128 rows of dQ, in fp32, do not fit with the rest
            check_gradients(Q, K, V, *gradients_of(Q), deterministic=deterministic, **options)
        else:
            check(kernel, Q, *repeated, **options)
    except Exception as error:
        shapes = [tuple(X.shape) for X in (Q, K, V)]
        raise AssertionError(f"seed {seed}: {shapes}, {Q.dtype}, strides {Q.stride()}, {options}") from error


def gradients_of(Q):
    """Return a random dO, in one of its layouts, and dlse or None."""
    dO = torch.randn(Q.shape).to(Q)
    if torch.rand(()) < 0.3:
        dO = dO[..., :1].expand_as(dO)  # as the gradient of a sum
    return dO, torch.randn(Q.shape[:-1]).to(Q.device) if torch.rand(()) < 0.3 else None


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--backward", action="store_true", help="the gradients")
    of.add_argument("--hopper", action="store_true", help="the Hopper kernel")
    args = parser.parse_args()
    end, seed = time.monotonic() + args.seconds, args.seed
    with pytest.MonkeyPatch.context() as patch:
        poison(patch)
        while True:
            run(seed, kernels.DEVICE, backward=args.backward, hopper=args.hopper)
            seed += 1
            if time.monotonic() >= end:
                break
    print(f"seeds {args.seed} to {seed - 1}: {seed - args.seed} random problems on {kernels.DEVICE}, all right")


if __name__ == "__main__":
    main()
