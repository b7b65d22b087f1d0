"""Tiles, warps and pipeline stages of the attention kernels, by GPU generation and head size.

`python -m flashlib.bench.tune` times the candidates on your GPU. Only Hopper's rows were chosen by timing, on an
H200; the rows of other generations are choices that compile, the forward ones without spilled registers if there
is no mask. AMD's GPUs use Ampere's rows, and no tile was ever timed there.
"""

import math
from collections.abc import Callable, Collection
from functools import cache, partial
from typing import NamedTuple

import torch

from flashlib.kernels.launch import which_gpu
from flashlib.private_apis import gpu_stand_in, of_driver


class Config(NamedTuple):
    """Rows of Q and of K/V in a tile, warps of a program, and how many streamed tiles are in flight."""

    B_R: int
    B_C: int
    num_warps: int
    num_stages: int


# {D: (as a rule, for short sequences)}, D being d rounded up to a power of two; 16-bit inputs.
HOPPER = {  # tensor descriptors
    32: (Config(64, 64, 4, 3), Config(64, 64, 4, 3)),
    64: (Config(64, 128, 4, 2), Config(64, 64, 4, 3)),
    128: (Config(128, 128, 8, 3), Config(64, 64, 4, 3)),
    256: (Config(128, 64, 8, 2), Config(64, 32, 4, 2)),
}
AMPERE = {  # and every kernel that loads through pointers
    32: (Config(128, 64, 4, 3), Config(64, 64, 4, 3)),
    64: (Config(128, 64, 4, 3), Config(64, 64, 4, 3)),
    128: (Config(128, 64, 8, 3), Config(64, 64, 4, 3)),
    256: (Config(64, 32, 8, 2), Config(64, 32, 8, 2)),
}
NO_TENSOR_CORES = {  # IEEE products of fp32, and Triton before Ampere: small tiles, or registers spill
    32: (Config(32, 32, 4, 2), Config(32, 32, 4, 2)),
    64: (Config(32, 32, 4, 2), Config(32, 32, 4, 2)),
    128: (Config(32, 16, 4, 2), Config(32, 16, 4, 2)),
    256: (Config(16, 16, 4, 2), Config(16, 16, 4, 2)),
}


SHORT = 8  # the most tiles of a short row
SMALL = 2**31  # multiplications of Q K^T; with fewer, a pass ends before the CPU has made its descriptors


class Room(NamedTuple):
    """A GPU: bytes of shared memory for one program, multiprocessors, tensor cores, TMA, lanes of a warp.

    tensor_cores: whether Triton uses them; AMD calls them matrix cores.
    """

    shared: float
    multiprocessors: int
    tensor_cores: bool = True
    tma: bool = False
    lanes: int = 32

    @classmethod
    def of(cls, shared: int, multiprocessors: int, lanes: int, capability: tuple[int, int]) -> "Room":
        """Return the Room of a GPU. capability: NVIDIA's; (0, 0) for others, whose GPUs have matrix cores."""
        of_nvidia = capability > (0, 0)
        return cls(shared, multiprocessors, not of_nvidia or capability >= (8, 0), capability >= (9, 0), lanes)

    def warps(self, n: int) -> int:
        """Return how many warps have as many threads as n warps of 32, but not below 4 if n is not."""
        return max(min(n, 4), n * 32 // self.lanes)


class Sparsity(NamedTuple):
    """The properties of a mask that tiles depend on.

    keys: how many a row sees, on average. sides: (rows, keys) of a block, for each table of blocks that are seen
    or hidden. bits: whether a kernel loads a bit for each score. biased: whether scores read a tensor.
    """

    keys: float = math.inf
    sides: tuple = ()
    bits: bool = False
    biased: bool = False

    def has_bits(self, config: Config) -> bool:
        """Return whether tiles of this Config load bits: for a mask of bits, or if they cut blocks."""
        return self.bits or any(B_r % config.B_R or B_c % config.B_C for B_r, B_c in self.sides)

    def fitting(self, config: Config) -> Config:
        """Return a Config whose number of keys in a tile fits these blocks, with two stages if there are bits.

        With one more stage, the shared memory for bits would cost a multiprocessor one of its programs.
        """
        while config.B_C > 32 and any(B_c < config.B_C for _, B_c in self.sides):
            config = config._replace(B_C=config.B_C // 2)
        return config._replace(num_stages=min(2, config.num_stages)) if self.has_bits(config) else config


DENSE = Sparsity()


class Backward(NamedTuple):
    """The Configs of the pass for dK and dV, of the pass for dQ, and of one pass for all three."""

    dkv: Config
    dq: Config
    fused: Config


# {D: Backward}
HOPPER_BACKWARD = {
    32: Backward(Config(128, 64, 4, 3), Config(64, 64, 4, 3), Config(64, 64, 4, 3)),
    64: Backward(Config(64, 64, 4, 3), Config(64, 64, 4, 3), Config(64, 64, 4, 3)),
    128: Backward(Config(64, 64, 4, 2), Config(64, 64, 4, 3), Config(64, 128, 8, 2)),
    256: Backward(Config(64, 64, 8, 2), Config(64, 64, 4, 2), Config(32, 64, 8, 2)),
}
AMPERE_BACKWARD = {
    32: Backward(Config(64, 64, 4, 2), Config(64, 64, 4, 2), Config(64, 64, 4, 2)),
    64: Backward(Config(64, 64, 4, 2), Config(64, 64, 4, 2), Config(64, 64, 4, 2)),
    128: Backward(Config(32, 64, 8, 2), Config(64, 32, 8, 2), Config(32, 64, 8, 2)),
    256: Backward(Config(32, 32, 8, 1), Config(32, 32, 8, 1), Config(32, 32, 8, 1)),
}
NO_TENSOR_CORES_BACKWARD = {
    32: Backward(Config(16, 32, 4, 1), Config(32, 16, 4, 1), Config(16, 32, 4, 1)),
    64: Backward(Config(16, 32, 4, 1), Config(32, 16, 4, 1), Config(16, 32, 4, 1)),
    128: Backward(Config(16, 16, 8, 1), Config(16, 16, 8, 1), Config(16, 16, 8, 1)),
    256: Backward(Config(16, 16, 8, 1), Config(16, 16, 8, 1), Config(16, 16, 8, 1)),
}


def default(
    D: int, dtype: torch.dtype, descriptors: bool, device: torch.device, *, causal: bool, N_q: int, N_k: int,
    heads: int, sparsity: Sparsity = DENSE, **asked: int,
) -> Config:  # fmt: skip
    """Return the Config of the forward pass, made smaller until a program fits this device.

    asked: numbers of the Config that the caller chose; only the others are made smaller.
    heads: B * H_q. A sequence counts as short if the problem is small; if it has fewer row blocks than the GPU has
    multiprocessors; if it is causal and has few tiles, since many of them are then cut by the mask, which wastes
    half of their work; or if a mask leaves few keys of many: several small programs share a multiprocessor, and
    one computes while another begins or ends. The tiles of short sequences are also used if those of long ones
    would load a mask's bits: smaller tiles have fewer scores that are computed but not seen.
    """
    gpu = room(device)
    table = _table(gpu, dtype, descriptors, HOPPER, AMPERE, NO_TENSOR_CORES)
    config, for_short = (_of_warps(gpu, config) for config in table[max(D, 32)])
    too_few = -(-N_q // config.B_R) * heads < gpu.multiprocessors
    few = sparsity.keys < N_k and sparsity.keys <= SHORT * config.B_C or sparsity.has_bits(config)
    few = few or sparsity.biased
    if too_few or heads * N_q * N_k * D < SMALL or (causal and N_k <= SHORT * config.B_C) or few:
        config = for_short
    config = sparsity.fitting(config)
    if sparsity.biased and D > 64:
        config = _half(config, "B_C")
    config = config._replace(**asked)
    shared = partial(shared_bytes, D=D, itemsize=dtype.itemsize, bits=sparsity.has_bits(config))
    return fitted(config, shared, gpu.shared, keep=asked)


def backward(
    D: int, dtype: torch.dtype, descriptors: bool, device: torch.device, biased: bool = False, drops: bool = False,
    **asked: int,
) -> Backward:  # fmt: skip
    """Return the Configs of the backward passes, made smaller until each fits, as `default` does.

    biased: whether scores read a tensor. drops: whether weights are dropped. Computing which ones takes registers,
    most of which dK and dV occupy: their pass gets half the rows at a time, and more warps.
    """
    gpu = room(device)
    passes = _table(gpu, dtype, descriptors, HOPPER_BACKWARD, AMPERE_BACKWARD, NO_TENSOR_CORES_BACKWARD)
    taken: tuple[Callable[..., int], ...] = (
        shared_bytes_dkv,
        shared_bytes_dq,
        partial(shared_bytes_dkv, with_dq=True),
    )
    configs = passes[max(D, 32)]
    if drops:
        configs = configs._replace(dkv=_half(configs.dkv, "B_R")._replace(num_warps=8))
    if biased and D >= 64:
        configs = [_half(config, side) for config, side in zip(configs, ("B_R", "B_C", "B_R"), strict=True)]
    return Backward(
        *(
            fitted(
                _of_warps(gpu, config)._replace(**asked),
                partial(shared, D=D, itemsize=dtype.itemsize),
                gpu.shared,
                keep=asked,
            )
            for config, shared in zip(configs, taken, strict=True)
        )
    )


def _half(config, side):
    """Return a Config whose tiles stream half as much: registers must also hold the entries that scores read."""
    return config._replace(**{side: max(16, getattr(config, side) // 2)})


def _table(gpu, dtype, descriptors, hopper, ampere, no_tensor_cores):
    if not gpu.tensor_cores or dtype == torch.float32:
        return no_tensor_cores
    return hopper if descriptors else ampere


def _of_warps(gpu, config):
    """Return a Config of these tables, which are for warps of 32, with the warps of this GPU.

    With more wavefronts on AMD's GPUs each would get fewer registers, and they would spill.
    """
    return config._replace(num_warps=gpu.warps(config.num_warps))


def fitted(config: Config, shared: Callable[[Config], int], room: float, *, keep: Collection[str] = ()) -> Config:
    """Return config with fewer stages, then keys, then rows, so that it takes at most `room` bytes if it can.

    shared(config): the bytes of shared memory that it takes. keep: the names of the numbers that stay as they are.
    """
    while shared(config) > room:
        if config.num_stages > 1 and "num_stages" not in keep:
            config = config._replace(num_stages=config.num_stages - 1)
        elif config.B_C > 16 and "B_C" not in keep:
            config = config._replace(B_C=config.B_C // 2)
        elif config.B_R > 16 and "B_R" not in keep:
            config = config._replace(B_R=config.B_R // 2)
        else:
            break
    return config


BARRIERS = 1024  # bytes, for barriers and the like


def shared_bytes(config: Config, D: int, itemsize: int, *, bits: bool = False) -> int:
    """Return the most bytes of shared memory a program takes: Q_i, each stage's K_j and V_j, a mask's bits."""
    for_bits = 2 * config.B_R * config.B_C // 8 if bits else 0
    return (config.B_R + 2 * config.num_stages * config.B_C) * D * itemsize + BARRIERS + for_bits


def shared_bytes_dkv(config: Config, D: int, itemsize: int, *, with_dq: bool = False) -> int:
    """Return the same for the pass of dK and dV: K_j and V_j, each stage's Q_i and dO_i; with dQ, dS and dQ_i."""
    streamed = 2 * config.num_stages * config.B_R * (D * itemsize + 4)  # lse and delta too, in fp32
    for_dq = (config.B_C * itemsize + D * 4) * config.B_R if with_dq else 0
    return 2 * config.B_C * D * itemsize + streamed + for_dq + BARRIERS


def shared_bytes_dq(config: Config, D: int, itemsize: int) -> int:
    """Return the same for the pass of dQ: Q_i and dO_i, and each stage's K_j and V_j."""
    return 2 * (config.B_R + config.num_stages * config.B_C) * D * itemsize + BARRIERS


def room(device: torch.device) -> Room:
    """Return the Room of the GPU of a torch.device."""
    if device.type != "cuda":  # the interpreter has the computer's memory, and runs one program at a time
        gpu = gpu_stand_in.stand_in()
        return Room(float("inf"), gpu.multiprocessors if gpu else 0)
    return _room(device)


@cache  # the driver takes a millisecond to answer
def _room(device):
    index = torch.cuda.current_device() if device.index is None else device.index
    properties = of_driver.device_properties(index)
    shared, multiprocessors = properties["max_shared_mem"], properties["multiprocessor_count"]
    return Room.of(shared, multiprocessors, properties["warpSize"], which_gpu.capability(device))
