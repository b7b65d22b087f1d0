"""Memory for more numbers than an offset in 32 bits reaches: of its GiB the system provides what is touched."""

from collections.abc import Callable

import torch

from flashlib.checks.engine import Known, Verdict
from flashlib.kernels import DEVICE

REACH = 2**31  # numbers that an offset in 32 bits reaches
NOT_CHECKED = "not checked", "tensors with more than 2^31 numbers, which need GiB of memory"


def requested(n: int, dtype: torch.dtype = torch.float16) -> torch.Tensor | None:
    """Return memory for n numbers, or None if the system refuses it, as in a page."""
    try:
        return torch.empty(n, dtype=dtype, device=DEVICE)
    except RuntimeError:
        return None


def noted(verdict: Verdict, reached: bool | None) -> Verdict:
    """Return a verdict that says so if memory was refused, for which reached is None, and this was not checked."""
    return verdict.with_details(NOT_CHECKED) if verdict.right and reached is None else verdict


def extended(verdict: Verdict, known: Known, reached: Callable[[], bool | None]) -> Verdict:
    """Return the verdict on an answer; one that is right near by is wrong if it does not reach what is far out."""
    if not verdict.right:
        return verdict
    found = reached()
    return known.wrong("offsets_32") if found is False else noted(verdict, found)
