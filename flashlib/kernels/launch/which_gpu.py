"""Whose GPU there is, and of which generation: the one place that asks, for what needs one of NVIDIA's.

PyTorch for AMD's GPUs (ROCm) calls them "cuda" too, and gives the version of their architecture for a compute
capability: (9, 4) for an MI300X, which is more than Hopper's (9, 0).
"""

import torch


def capability(device: torch.device) -> tuple[int, int]:
    """Return the compute capability of a GPU of NVIDIA's, (0, 0) for one of AMD's."""
    return (0, 0) if torch.version.hip else torch.cuda.get_device_capability(device)
