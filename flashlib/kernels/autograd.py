"""FlashAttention as an operation of PyTorch that can be differentiated: `forward` with `backward` behind it.

Both are custom operators of torch: `torch.compile` leaves their insides alone, and activation checkpointing takes
them as any other operation.
"""

import torch

from flashlib.kernels import backward, check_attention, forward
from flashlib.state import Attention, resolve_scale


def attention(Q, K, V, *, causal=False, scale=None, deterministic=True) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, both of which can be differentiated.

    Q, K, V, causal, scale, O, lse, errors: as in `forward.attention`. Under torch.autocast Q, K and V are
    cast to its dtype. Q, K, V, O and lse are kept for the backward pass, and nothing else. It computes all three
    gradients, whichever are asked for.
    deterministic: as in `backward.backward`.
    The gradients themselves cannot be differentiated: RuntimeError says so.
    """
    if not isinstance(deterministic, bool):
        raise TypeError(f"deterministic is {deterministic!r}; pass True or False")
    Q, K, V = map(_as_autocast_has_it, (Q, K, V))
    with torch.no_grad():  # gradients are taken care of
        check_attention(Q, K, V, causal, head_dims=forward.HEAD_DIMS, grouped=True)
    scale = resolve_scale(scale, Q.shape[-1])
    return Attention(*_attention(Q, K, V, bool(causal), scale, deterministic))


def _as_autocast_has_it(X):
    """Return X as torch.autocast casts what other operations take: floating tensors, but for fp64."""
    if not isinstance(X, torch.Tensor) or not X.is_floating_point() or X.dtype == torch.float64:
        return X
    kind = X.device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return X
    return X.to(torch.get_autocast_dtype(kind))


@torch.library.custom_op("flashlib::attention", mutates_args=())
def _attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, scale: float, deterministic: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(forward.attention(Q.detach(), K.detach(), V.detach(), causal=causal, scale=scale))


@_attention.register_fake
def _(Q, K, V, causal, scale, deterministic):
    O = torch.empty_like(Q, memory_format=torch.contiguous_format)
    return O, Q.new_empty(Q.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("flashlib::attention_backward", mutates_args=())
def _attention_backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, scale: float, deterministic: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    return _launch_backward(*(X.detach() for X in (Q, K, V, O, lse, dO)), dlse, causal, scale, deterministic)


def _launch_backward(Q, K, V, O, lse, dO, dlse, causal, scale, deterministic):
    options = {"causal": causal, "scale": scale, "deterministic": deterministic}
    return tuple(backward.backward(Q, K, V, O, lse, dO, dlse=dlse, **options))


@_attention_backward.register_fake
def _(Q, K, V, O, lse, dO, dlse, causal, scale, deterministic):
    return tuple(torch.empty_like(X, memory_format=torch.contiguous_format) for X in (Q, K, V))


def _keep(ctx, inputs, output):
    Q, K, V, *ctx.options = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(Q, K, V, *output)


def _gradients(ctx, dO, dlse):
    Q, K, V, O, lse = ctx.saved_tensors
    if dO is None and dlse is None:
        return (None,) * 6
    # The operator, which costs time, is for what traces, for batches, and for a second derivative.
    direct = not torch.is_grad_enabled() and all(_has_numbers(X) for X in (dO, dlse) if X is not None)
    run = _launch_backward if direct else _attention_backward
    dO = torch.zeros_like(O) if dO is None else dO
    return *run(Q, K, V, O, lse, dO, dlse, *ctx.options), None, None, None


def _has_numbers(X) -> bool:
    """Return whether X is neither one of the tensors that stand in while torch traces, nor a batch of tensors."""
    try:
        return type(X) is torch.Tensor and X.untyped_storage() is not None
    except NotImplementedError:
        return False


def _refuse(ctx, *grads):
    raise RuntimeError(
        "the gradients of flashlib's attention cannot be differentiated again: there is no kernel for it; "
        "for second derivatives use flashlib.torch_ref.attention or SDPA's math backend"
    )


torch.library.register_autograd(_attention, _gradients, setup_context=_keep)
torch.library.register_autograd(_attention_backward, _refuse)
