"""The maker and generation of the GPU: the only test of the kernels that need one of NVIDIA's.

PyTorch for AMD's GPUs (ROCm) calls them "cuda" too, and returns the version of their architecture as the compute
capability: (9, 4) for an MI300X, which is more than Hopper's (9, 0).
"""

import functools

import torch

from flashlib.kernels import INTERPRETED
from flashlib.private_apis import gpu_stand_in


def runs_gluon() -> bool:
    """Return whether kernels in Gluon run: they are compiled here, or something replaces the GPU."""
    return not INTERPRETED or gpu_stand_in.stand_in() is not None


def capability(device: torch.device) -> tuple[int, int]:
    """Return the compute capability of an NVIDIA GPU, (0, 0) for one of AMD's."""
    if INTERPRETED and (gpu := gpu_stand_in.stand_in()):
        return gpu.capability
    if torch.version.hip:
        return (0, 0)
    return torch.cuda.get_device_capability(device) if device.index is None else _capability(device.index)


@functools.cache  # torch takes tens of us to answer
def _capability(index):
    return torch.cuda.get_device_capability(index)
