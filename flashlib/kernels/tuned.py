"""Tiles, warps and pipeline stages of the forward kernel, by GPU generation and head size.

`python -m flashlib.bench.tune` times the candidates on your GPU. Only Hopper's rows were chosen by timing, on an
H200; those of the other generations are choices that compile without spilled registers.
"""

from functools import cache
from typing import NamedTuple

import torch
import triton


class Config(NamedTuple):
    """Rows of Q and of K/V in a tile, warps of a program, and how many tiles of K and V are in flight."""

    B_R: int
    B_C: int
    num_warps: int
    num_stages: int


# {D: (as a rule, for short sequences)}, D being d rounded up to a power of two; 16-bit inputs.
HOPPER = {  # tensor descriptors
    32: (Config(128, 64, 4, 3), Config(64, 64, 4, 3)),
    64: (Config(64, 128, 4, 2), Config(64, 64, 4, 3)),
    128: (Config(128, 128, 8, 3), Config(64, 64, 4, 3)),
    256: (Config(128, 64, 8, 2), Config(64, 32, 4, 2)),
}
AMPERE = {  # and whatever loads through pointers
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


SHORT = 8  # tiles of a row, at most


class Room(NamedTuple):
    """What a GPU has: bytes of shared memory for one program, multiprocessors, tensor cores that Triton uses."""

    shared: float
    multiprocessors: int
    tensor_cores: bool = True


def default(D, dtype, descriptors, device, *, causal, N_q, N_k, heads, **given) -> Config:
    """Return the tuned Config, made smaller until it fits the shared memory that a program has on this device.

    given: numbers of the Config that are asked for; only the others are made smaller.

    heads: B * H_q. A sequence is short if its row blocks would be fewer than the multiprocessors, or if it is
    causal and has few tiles, since those that the mask cuts, half of them in vain, are then many.
    """
    room = _room(device)
    with_tensor_cores = HOPPER if descriptors else AMPERE
    table = with_tensor_cores if room.tensor_cores and dtype != torch.float32 else NO_TENSOR_CORES
    config, for_short = table[max(D, 32)]
    too_few = triton.cdiv(N_q, config.B_R) * heads < room.multiprocessors
    if too_few or (causal and N_k <= SHORT * config.B_C):
        config = for_short
    return fitted(config._replace(**given), D, dtype.itemsize, room.shared, keep=given)


def fitted(config, D, itemsize, room, *, keep=()) -> Config:
    """Return config with fewer stages, then keys, then rows, so that it takes at most `room` bytes if it can.

    keep: the names of what stays as it is.
    """
    while shared_bytes(config, D, itemsize) > room:
        if config.num_stages > 1 and "num_stages" not in keep:
            config = config._replace(num_stages=config.num_stages - 1)
        elif config.B_C > 16 and "B_C" not in keep:
            config = config._replace(B_C=config.B_C // 2)
        elif config.B_R > 16 and "B_R" not in keep:
            config = config._replace(B_R=config.B_R // 2)
        else:
            break
    return config


def shared_bytes(config, D, itemsize) -> int:
    """Return the bytes of shared memory a program takes at most: Q_i, and each stage's K_j and V_j."""
    return (config.B_R + 2 * config.num_stages * config.B_C) * D * itemsize + 1024  # barriers and the like


@cache  # the driver takes a millisecond to answer
def _room(device) -> Room:
    if device.type != "cuda":
        return Room(float("inf"), 0)  # the interpreter takes what the computer has, and runs one program at a time
    index = torch.cuda.current_device() if device.index is None else device.index
    properties = triton.runtime.driver.active.utils.get_device_properties(index)
    tensor_cores = torch.cuda.get_device_capability(index) >= (8, 0)
    return Room(properties["max_shared_mem"], properties["multiprocessor_count"], tensor_cores)
