"""Whose GPU there is, and of which generation: the one place that asks, for what needs one of NVIDIA's.

PyTorch for AMD's GPUs (ROCm) calls them "cuda" too, and gives the version of their architecture for a compute
capability: (9, 4) for an MI300X, which is more than Hopper's (9, 0).
"""

import torch


def capability(device: torch.device) -> tuple[int, int]:
    """Return the compute capability of a GPU of NVIDIA's, (0, 0) for one of AMD's."""
    return (0, 0) if torch.version.hip else torch.cuda.get_device_capability(device)


def known_as(index: int = 0) -> int | str:
    """Return what the compiler knows a GPU by: 90 for a compute capability of 9.0, "gfx942" for an MI300X."""
    if torch.version.hip:
        return torch.cuda.get_device_properties(index).gcnArchName.partition(":")[0]
    major, minor = torch.cuda.get_device_capability(index)
    return 10 * major + minor
