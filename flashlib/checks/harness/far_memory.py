"""Memory for more numbers than an offset in 32 bits reaches: of its 4 GiB the system provides what is touched."""

import torch

from flashlib.checks.engine import Verdict
from flashlib.kernels import DEVICE

REACH = 2**31  # numbers that an offset in 32 bits reaches
NOT_CHECKED = "not checked", "K and V with more than 2^31 numbers, which need 4 GiB of memory"


def requested(n: int) -> torch.Tensor | None:
    """Return memory for n numbers in fp16, or None if the system refuses it, as in a page."""
    try:
        return torch.empty(n, dtype=torch.float16, device=DEVICE)
    except RuntimeError:
        return None


def noted(verdict: Verdict, reached: bool | None) -> Verdict:
    """Return a verdict that says so if memory was refused, for which reached is None, and this was not checked."""
    return verdict.with_details(NOT_CHECKED) if verdict.right and reached is None else verdict
