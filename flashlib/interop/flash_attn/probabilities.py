"""The third result of flash_attn's functions, which its tests ask for: weights, and which of them were dropped.

The package's kernel writes them. Ours does not: torch recomputes them, storing every score, and the dropped ones
follow from the seed. This waits for the GPU, and is meant for tests only.
"""

import torch

from flashlib.interop.flash_attn.arguments import Options
from flashlib.kernels import varlen

MULTIPLE = 128  # of both axes
ALL = 2**31 - 1


def _get_block_size_n(device, head_dim, is_dropout, is_causal) -> int:
    """Return how many keys share one maximum in S_dmask: all. The package's tests call it by this name."""
    return ALL


def S_dmask(
    q: torch.Tensor, k: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, longest_q: int, longest_k: int,
    options: Options, seed: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    """Return exp(S - max S) of packed sequences, (B, H_q, N_q, N_k), in the dtype of q, negative where dropped.

    q: (T_q, H_q, d), k: (T_k, H_k, d). N_q and N_k are the longest lengths, rounded up to multiples of 128; zero
    where nothing is seen. Empty without dropout.
    """
    if seed is None:  # there is no dropout
        return q.new_empty(0)
    rounded = (-(-n // MULTIPLE) * MULTIPLE for n in (longest_q, longest_k))
    found = q.new_zeros(len(cu_q) - 1, q.shape[1], *rounded)
    for b, (rows, keys) in enumerate(zip(_slices(cu_q), _slices(cu_k), strict=True)):
        weights = _weights(q[rows].detach(), k[keys].detach(), options, _own(options.slopes, b))
        places = (torch.arange(x.start, x.stop, dtype=torch.int32, device=q.device) for x in (rows, keys))
        gone = varlen.dropped(options.p, seed, q.shape[1], len(q), len(k), *places)
        found[b, :, : gone.shape[1], : gone.shape[2]] = torch.where(gone, -weights, weights).to(q.dtype)
    return found


def _slices(cu):
    numbers = cu.tolist()
    return [slice(first, end) for first, end in zip(numbers, numbers[1:], strict=False)]


def _own(slopes, b):
    return slopes if slopes is None or slopes.ndim == 1 else slopes[b]


def _weights(q, k, options, slopes):
    """Return exp(S - max S) of a sequence, (H_q, n_q, n_k), in fp32; q: (n_q, H_q, d), k: (n_k, H_k, d)."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    S = torch.einsum("qhd,khd->hqk", q.float() * options.scale, k.float())
    if options.cap:
        S = options.cap * torch.tanh(S / options.cap)
    distance = torch.arange(len(k), device=q.device) - torch.arange(len(q), device=q.device)[:, None]
    distance -= len(k) - len(q)
    if slopes is not None:
        S -= slopes[:, None, None] * distance.abs()
    left, right = options.window
    if left is not None:
        S.masked_fill_(distance < -left, -torch.inf)
    if options.causal or right is not None:
        S.masked_fill_(distance > (0 if options.causal else right), -torch.inf)
    largest = S.amax(-1, keepdim=True) if len(k) else S[..., :0]
    return torch.exp(S - largest.masked_fill(largest == -torch.inf, 0))
