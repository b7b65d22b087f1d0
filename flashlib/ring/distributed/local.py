"""Computes a hop on a rank: with which module, and for which heads of K and V in one call."""

from collections.abc import Sequence
from types import ModuleType

import torch

from flashlib.masks import Mask
from flashlib.ring.distributed import of_heads
from flashlib.types import Attention, Grads


def module_for(device: torch.device) -> ModuleType:
    """Return the module that computes hops on a device: it has check, attention, backward, merge and delta_of."""
    if device.type == "cpu":
        from flashlib.ring.distributed import on_cpu

        return on_cpu
    from flashlib.kernels.launch import which_gpu  # only here: with it comes Triton

    if which_gpu.runs_gluon() and which_gpu.capability(device) == (9, 0):
        from flashlib.ring.distributed import on_hopper  # only here: it imports all of Gluon

        return on_hopper
    from flashlib.ring.distributed import on_gpu

    return on_gpu


class HopComputer:
    """A module that computes hops. taken: the head of K and V that each head of Q reads, in rising order.

    If a rank has only some heads, its heads of Q may read those of K and V unevenly. Then it makes a separate call
    for each head of K and V.
    """

    def __init__(self, module: ModuleType, taken: Sequence[int]) -> None:
        self.module, self.taken = module, taken
        self.merge, self.delta_of = module.merge, module.delta_of
        self._attention, self._backward = module.attention, module.backward
        counts = [list(taken).count(k) for k in sorted({*taken})]
        self.calls: list[tuple[slice, slice]] = []
        at = 0
        for k, n in enumerate(counts if len({*counts}) > 1 else ()):
            self.calls.append((slice(at, at + n), slice(k, k + 1)))
            at += n

    def of_heads(self, q: slice) -> "HopComputer":
        """Return the HopComputer of some heads of Q and all heads of K and V that they read."""
        own = self.taken[q]
        if len(own) == len(self.taken):
            return self
        return HopComputer(self.module, [k - own[0] for k in own])

    def attention(
        self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask, scale: float,
        dtype: torch.dtype | None = None,
    ) -> Attention:  # fmt: skip
        """Return O and lse of these rows over these keys. dtype: of O, that of Q; None for fp32 or fp64."""
        if not self.calls:
            return self._attention(Q, K, V, mask, scale, dtype)
        found = [
            self._attention(Q[:, q], K[:, k], V[:, k], of_heads.part(mask, q.start, q.stop), scale, dtype)
            for q, k in self.calls
        ]
        return Attention(*(torch.cat(X, dim=1) for X in zip(*found, strict=True)))

    def backward(
        self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
        delta: torch.Tensor, mask: Mask, scale: float,
    ) -> Grads:  # fmt: skip
        """Return what these keys and rows add to dQ, dK and dV, in fp32 or fp64; lse, delta: of whole rows."""
        if not self.calls:
            return self._backward(Q, K, V, lse, dO, delta, mask, scale)
        found = []
        for q, k in self.calls:
            own = lse[:, q], dO[:, q], delta[:, q]
            mask_of = of_heads.part(mask, q.start, q.stop)
            found.append(self._backward(Q[:, q], K[:, k], V[:, k], *own, mask_of, scale))
        return Grads(*(torch.cat(X, dim=1) for X in zip(*found, strict=True)))
