"""How the Hopper kernel in eight bits is launched: what it takes, its tiles, grid and descriptors."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from triton import JITFunction
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.inputs import resolve_scale
from flashlib.kernels import quantise
from flashlib.kernels.hopper import launch
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import as_autocast, check_no_gradient, on_device_of
from flashlib.kernels.quantise import FORMATS
from flashlib.types import Attention

PORTABLE = "flashlib.kernels.eight_bits.attention"
ELEMENTS = {torch.float8_e4m3fn: gl.float8e4nv, torch.int8: gl.int8, torch.bfloat16: gl.bfloat16}
ROWS, LOG2_E = launch.ROWS, launch.LOG2_E
SHORT = 2 * launch.SHORT  # numbers in a head of K: blocks take half of the time


class Fp8TileSizes(NamedTuple):
    """Keys of a tile, slots of each ring, consumers of 64 rows.

    TWO_LEVEL: whether each tile's P V is summed separately. TURNS: whether consumers take turns to multiply.
    """

    B_C: int
    STAGES: int
    CONSUMERS: int
    TWO_LEVEL: bool
    TURNS: bool


# By d and causal, chosen by timing. Products take half the time that they take in 16 bits, and consumers compete
# for exponentials: turns gain only if a tile's products take as long as these, and then not always.
TILES = {
    (64, False): Fp8TileSizes(128, 4, 3, TWO_LEVEL=True, TURNS=False),
    (64, True): Fp8TileSizes(128, 4, 2, TWO_LEVEL=True, TURNS=False),
    (128, False): Fp8TileSizes(128, 3, 2, TWO_LEVEL=True, TURNS=True),
    (128, True): Fp8TileSizes(128, 2, 2, TWO_LEVEL=True, TURNS=False),
    (256, False): Fp8TileSizes(128, 2, 2, TWO_LEVEL=False, TURNS=False),
    (256, True): Fp8TileSizes(128, 2, 2, TWO_LEVEL=False, TURNS=False),
}
PLANS = planning.Plans()


class HopperFp8Plan(NamedTuple):
    """A call, except its tensors and its scale; None if O has no elements, or there are no keys."""

    quantise: quantise.QuantisePlan
    launch: planning.Launch


def attention(
    kernel: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: object,
    scale: float | None, qk: str, rotated: bool, centred: bool,
) -> Attention:  # fmt: skip
    """Do the same as `fp8.attention`, with this kernel."""
    Q, K, V = as_autocast(Q, K, V)
    key = PLANS.key((Q, K, V), kernel.__name__, causal, qk, rotated, centred) if mask is None else None
    plan = PLANS.get(key) or PLANS.keep(key, _plan(kernel, Q, K, V, causal, mask, qk, rotated, centred))
    check_no_gradient(Q=Q, K=K, V=V)
    scale = resolve_scale(scale, Q.shape[-1])
    if not Q.numel() or not K.shape[2]:  # no rows, or no keys that they could see
        O = torch.zeros(Q.shape, dtype=torch.bfloat16, device=Q.device)
        return Attention(O, Q.new_full(Q.shape[:3], -math.inf, dtype=torch.float32))
    return run(quantise.run(Q, K, V, plan.quantise), plan.launch, scale)


def of_quantised(
    kernel: JITFunction, small: quantise.QuantisedQKV, causal: bool, scale: float,
    tiles: Fp8TileSizes | None = None,
) -> Attention:  # fmt: skip
    """Return O, in bfloat16, and lse for the permuted result of `quantised`; nothing is checked.

    tiles: other tiles than TILES has, to measure them; their plan is made in each call.
    """
    Q, K = small[:2]
    key = PLANS.key((Q, K), kernel.__name__, causal) if tiles is None else None
    found = PLANS.get(key) if key else None
    return run(small, found or PLANS.keep(key, _launch(kernel, Q, K.shape, Q.dtype, causal, tiles)), scale)


def run(small: quantise.QuantisedQKV, launch: planning.Launch, scale: float) -> Attention:
    """Do what `of_quantised` does, by its launch."""
    Q = small.Q
    O, lse = Q.new_empty(Q.shape, dtype=torch.bfloat16), Q.new_empty(Q.shape[:3], dtype=torch.float32)
    with on_device_of(Q):
        launch(*small[:3], O, lse, scale * LOG2_E, *small[3:], stream=planning.stream_of(Q))
    return Attention(O, lse)


def _plan(kernel, Q, K, V, causal, mask, qk, rotated, centred):
    launch.check(Q, K, V, causal, mask, portable=PORTABLE)
    if qk not in FORMATS:
        raise ValueError(f"qk is {qk!r}; pass one of {', '.join(FORMATS)}, the format of Q and K")
    if not Q.numel() or not K.shape[2]:
        return None
    return HopperFp8Plan(
        quantise.plan_of(Q, K, V, qk, True, rotated, centred), _launch(kernel, Q, K.shape, FORMATS[qk], causal)
    )


def _launch(kernel, Q, shape_of_K, dtype, causal, tiles=None):
    (B, H, N_q, d), (_, H_k, N_k, _), causal = Q.shape, shape_of_K, bool(causal)
    tiles = tiles or TILES[d, causal]
    B_R, B_C = ROWS * tiles.CONSUMERS, tiles.B_C
    T_r = -(-N_q // B_R)
    n_tiles = T_r * B * H
    section = launch.section(B * H, max(1, N_k * d * 2 // (H // H_k)))
    sizes = H, H // H_k, N_q, N_k, T_r, section, n_tiles
    constants = {"B_R": B_R, "CONSUMERS": tiles.CONSUMERS, "STAGES": tiles.STAGES, "CAUSAL": causal}
    constants |= {"TWO_LEVEL": tiles.TWO_LEVEL, "TURNS": tiles.TURNS}
    grid = n_tiles
    if not causal or N_k * d <= SHORT:  # else one by one, the longest first
        grid = min(grid, tile_sizes.room(Q.device).multiprocessors or grid)
    describe = (
        describer(Q.shape, dtype, ROWS, d),
        describer(shape_of_K, dtype, B_C, d),
        describer((B, H_k, d, -(-N_k // quantise.TILE) * quantise.TILE), torch.float8_e4m3fn, d, B_C),
        describer(Q.shape, torch.bfloat16, ROWS, d),
    )
    return planning.Launch(kernel, grid, sizes, constants, {"num_warps": 4}, describe)


def describer(
    shape: Sequence[int], dtype: torch.dtype, rows: int, columns: int
) -> Callable[[torch.Tensor], TensorDescriptor]:
    """Return a function that returns the descriptor of a contiguous tensor, for tiles of rows and columns."""
    tile = [1, 1, rows, columns]
    strides = [math.prod(shape[axis + 1 :]) for axis in range(4)]
    layout = gl.NVMMASharedLayout.get_default_for(tile, ELEMENTS[dtype])
    return launch.described_as(shape, strides, tile, layout)
