"""Few new tokens over a cache, which see what `call_mask.New` describes; nothing waits for the GPU.

When torch.compile traces the model, attention is an operator that is not traced into, so that a step of `generate`
with a static cache is one graph, and one CUDA graph on a GPU.
"""

import torch

from flashlib import masks

SMALLEST = 16  # d that kernels support


def takes_new(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> bool:
    """Return whether `of_new` supports these tensors: it has no gradients, and does not copy a cache."""
    watched = torch.is_grad_enabled() and (Q.requires_grad or K.requires_grad or V.requires_grad)
    wide = min(Q.shape[-1], V.shape[-1]) >= SMALLEST and K.stride(3) == V.stride(3) == 1
    return wide and not watched and Q.dtype == K.dtype == V.dtype and not torch.is_autocast_enabled(Q.device.type)


def of_new(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor, padding: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    """Return O of new tokens, each of which sees all keys up to its own, except padding; see `call_mask.New`."""
    run = _traced if torch.compiler.is_compiling() else _run
    return run(Q, K, V, lengths, padding, scale)


def _run(Q, K, V, lengths, padding, scale):
    from flashlib import kernels  # imported late: other engines do not need Triton

    mask = None if padding is None else masks.bias(padding)
    return kernels.decode.attention(Q, K, V, lengths, causal=True, mask=mask, scale=scale).O


@torch.library.custom_op("flashlib::new_tokens", mutates_args=())
def _traced(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor, padding: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    return _run(Q, K, V, lengths, padding, scale).contiguous()


@_traced.register_fake
def _(Q, K, V, lengths, padding, scale):
    return Q.new_empty((*Q.shape[:-1], V.shape[-1]))
