"""Our kernels in Gluon on a CPU, for tests: through their public functions, with any tiles, spoilt or intact."""

import contextlib
import copy
import functools
import importlib
from typing import NamedTuple

import pytest
import torch

from flashlib import gluon, torch_ref
from flashlib.kernels import autograd
from flashlib.kernels.hopper import (
    backward,
    backward_ladder,
    forward,
    fp8,
    ladder,
    launch,
    launch_256,
    launch_backward,
    launch_fp8,
)
from flashlib.kernels.launch import planning
from flashlib.pipeline import Compute, Product

ORDERS = ({"order": "first"}, {"order": "last"}, {"seed": 3})
MANY = 1000  # multiprocessors: a program for each row block
FORWARD_RUNGS = [
    "r1_alike", "r2_producer", "r3_consumers", "r3_turns", "r4_overlap", "r5_registers", "r6_persistent",
]  # fmt: skip
BACKWARD_RUNGS = [
    "r1_alike", "r2_producer", "r3_two_consumers", "r4_half_columns", "r5_in_order", "r6_reducer",
]  # fmt: skip
MODULES = {
    "forward": forward,
    "fp8": fp8,
    "backward": backward,
    **{name: importlib.import_module(f".{name}", ladder.__name__) for name in FORWARD_RUNGS},
    **{
        f"backward_{name}": importlib.import_module(f".{name}", backward_ladder.__name__)
        for name in BACKWARD_RUNGS
    },
}


class Sizes(NamedTuple):
    """Sizes of a problem. heads: B, H, H_k."""

    heads: tuple
    N_q: int
    N_k: int
    d: int
    causal: bool


class Tiles(NamedTuple):
    """Tiles that replace those that the launchers would choose.

    multiprocessors: how many programs a persistent kernel has. section: heads that they work on at a time. lag,
    ring: of the sums of dQ, as `launch_backward.turns` returns them. two_level, turns: of the kernel in eight
    bits.
    """

    consumers: int = 2
    stages: int = 2
    B_c: int = 64
    multiprocessors: int = MANY
    section: int = 1
    lag: int = 1
    ring: int = 2
    two_level: bool = True
    turns: bool = True


@contextlib.contextmanager
def tiled(tiles):
    """Make the launchers choose these tiles, for calls that were not planned yet."""
    own = launch.HopperTileSizes(tiles.B_c, tiles.stages, tiles.consumers)
    eight_bits = launch_fp8.Fp8TileSizes(*own, tiles.two_level, tiles.turns)
    with pytest.MonkeyPatch.context() as patch:
        for module in (launch, launch_backward, launch_256, launch_fp8):
            patch.setattr(module, "PLANS", planning.Plans())
        for plans in ("CALLS", "GRADIENTS"):
            patch.setattr(autograd, plans, planning.Plans())
        patch.setattr(launch, "TILES", dict.fromkeys(launch.TILES, own))
        patch.setattr(launch, "SHORT", 0)  # as many consumers as requested, however few rows there are
        patch.setattr(launch, "section", lambda heads, size: tiles.section)
        patch.setattr(ladder, "EQUAL", dict.fromkeys(ladder.EQUAL, own[:2]))
        patch.setattr(ladder, "MOVED", dict.fromkeys(ladder.MOVED, own[:2]))
        patch.setattr(launch_fp8, "TILES", dict.fromkeys(launch_fp8.TILES, eight_bits))
        patch.setattr(launch_fp8, "SHORT", torch.inf)  # persistent, causal or not
        patch.setattr(launch_backward, "turns", lambda T_c, multiprocessors: (tiles.lag, tiles.ring))
        yield


@functools.cache
def inputs(sizes, dtype=torch.bfloat16):
    """Return Q, K, V, O, lse, dO and dlse; O and lse are exact."""
    (B, H, H_k), N_q, N_k, d, causal = sizes
    generator = torch.Generator().manual_seed(N_q * N_k)
    shapes = (B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d), (B, H, N_q, d)
    Q, K, V, dO = (torch.randn(shape, generator=generator).to(dtype) for shape in shapes)
    O, lse = exact(Q, K, V, causal=causal)
    return Q, K, V, O.to(dtype), lse.float(), dO, torch.randn(lse.shape, generator=generator)


def exact(Q, K, V, **problem):
    """Return attention in fp64; query heads of a group share a head of K and V."""
    group = Q.shape[1] // K.shape[1]
    return torch_ref.attention(Q.double(), *(X.double().repeat_interleave(group, 1) for X in (K, V)), **problem)


def attended(name, Q, K, V, tiles, order, **options):
    """Return O and lse of a forward kernel, and the runs of its programs."""
    with tiled(tiles), gluon.on_cpu(**order, multiprocessors=tiles.multiprocessors) as ran:
        return MODULES[name].attention(Q, K, V, **options), ran


def differentiated(name, *tensors, tiles, order, **options):
    """Return the gradients of a backward kernel, and the runs of its programs."""
    with tiled(tiles), gluon.on_cpu(**order, multiprocessors=tiles.multiprocessors) as ran:
        return MODULES[name].backward(*tensors, **options), ran


def spoken(commands, names=lambda name: name):
    """Return commands without tiles and arithmetic, whose names or amounts differ in the model.

    names: translates the name of a slot or a barrier into that of the model.
    """
    found = []
    for command in commands:
        parts = [getattr(command, of, "") for of in ("barrier", "slot")]
        numbers = [getattr(command, of, "") for of in ("phase", "pending", "n_bytes")]
        read = [names(str(slot)) for slot, _ in command.reads] if isinstance(command, Product) else []
        if not isinstance(command, Compute):
            place = [names(str(part)) if part else "" for part in parts]
            found.append((type(command).__name__, *place, *map(str, numbers), *read))
    return found


def spoil(monkeypatch, module, function, old, new):
    """Replace a piece of the source of a kernel's function, in its module."""
    whole = vars(module)[function]
    assert whole.src.count(old) >= 1, f"{function} of {module.__name__} has no {old}"
    made = {}
    exec(compile(whole.src.replace(old, new), f"<{function} spoilt>", "exec"), vars(module), made)  # noqa: S102
    spoilt = copy.copy(whole)
    spoilt.fn = made[function]
    monkeypatch.setattr(module, function, spoilt)
