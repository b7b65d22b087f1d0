"""How the Hopper kernel in eight bits is launched: what it takes, its tiles, grid and descriptors."""

import math
from typing import NamedTuple

import torch
from triton import JITFunction
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.inputs import resolve_scale
from flashlib.kernels.hopper import launch
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import as_autocast, check_no_gradient, on_device_of
from flashlib.kernels.quantise import FORMATS, QuantisedQKV, quantised
from flashlib.private_apis import of_driver
from flashlib.types import Attention

PORTABLE = "flashlib.kernels.eight_bits.attention"
ELEMENTS = {torch.float8_e4m3fn: gl.float8e4nv, torch.int8: gl.int8, torch.bfloat16: gl.bfloat16}
ROWS = launch.ROWS
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
    launch: planning.Launch
    tiles: Fp8TileSizes


def attention(
    kernel: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: object,
    scale: float | None, qk: str, rotated: bool, centred: bool,
) -> Attention:  # fmt: skip
    """Do the same as `fp8.attention`, with this kernel."""
    Q, K, V = as_autocast(Q, K, V)
    launch.check(Q, K, V, causal, mask, portable=PORTABLE)
    check_no_gradient(Q=Q, K=K, V=V)
    if qk not in FORMATS:
        raise ValueError(f"qk is {qk!r}; pass one of {', '.join(FORMATS)}, the format of Q and K")
    scale = resolve_scale(scale, Q.shape[-1])
    if not Q.numel() or not K.shape[2]:  # no rows, or no keys that they could see
        O = torch.zeros(Q.shape, dtype=torch.bfloat16, device=Q.device)
        return Attention(O, Q.new_full(Q.shape[:3], -math.inf, dtype=torch.float32))
    small = quantised(Q, K, V, qk=qk, permuted=True, rotated=rotated, centred=centred)
    return of_quantised(kernel, small, causal, scale)


def of_quantised(
    kernel: JITFunction, small: QuantisedQKV, causal: bool, scale: float, tiles: Fp8TileSizes | None = None
) -> Attention:
    """Return O, in bfloat16, and lse for the permuted result of `quantised`; nothing is checked.

    tiles: other tiles than TILES has, to measure them; their plan is made in each call.
    """
    Q, K, V = small[:3]
    key = PLANS.key((Q, K, V), kernel.__name__, causal) if tiles is None else None
    plan = PLANS.get(key) if key else None
    plan = plan or PLANS.keep(key, _plan(kernel, Q, K, bool(causal), tiles or TILES[Q.shape[3], bool(causal)]))
    O = torch.empty(Q.shape, dtype=torch.bfloat16, device=Q.device)
    lse = torch.empty(Q.shape[:3], dtype=torch.float32, device=Q.device)
    B_C, d = plan.tiles.B_C, Q.shape[3]
    tiles = (Q, ROWS, d), (K, B_C, d), (V, d, B_C), (O, ROWS, d)
    with on_device_of(Q):
        plan.launch(*(describe(*tile) for tile in tiles), lse, scale * math.log2(math.e), *small[3:])
    return Attention(O, lse)


def _plan(kernel, Q, K, causal, tiles):
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    B_R = ROWS * tiles.CONSUMERS
    T_r = -(-N_q // B_R)
    n_tiles = T_r * B * H
    section = launch.section(B * H, max(1, N_k * d * 2 // (H // H_k)))
    sizes = H, H // H_k, N_q, N_k, T_r, section, n_tiles
    constants = {"B_R": B_R, "CONSUMERS": tiles.CONSUMERS, "STAGES": tiles.STAGES, "CAUSAL": causal}
    constants |= {"TWO_LEVEL": tiles.TWO_LEVEL, "TURNS": tiles.TURNS}
    grid = n_tiles
    if not causal or N_k * d <= SHORT:  # see `launch.persistent`
        grid = min(grid, tile_sizes.room(Q.device).multiprocessors or grid)
    return HopperFp8Plan(planning.Launch(kernel, grid, sizes, constants, {"num_warps": 4}), tiles)


_Descriptor = of_driver.unchecked(TensorDescriptor)  # all of these tensors were made here
LAYOUTS = {}


def describe(X: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """Return the descriptor of a contiguous X with four axes, for tiles of rows and columns of the last two."""
    tile = [1, 1, rows, columns]
    key = X.dtype, rows, columns
    if key not in LAYOUTS:
        LAYOUTS[key] = gl.NVMMASharedLayout.get_default_for(tile, ELEMENTS[X.dtype])
    return _Descriptor(X, X.shape, list(X.stride()), tile, LAYOUTS[key])
