"""Attention with a sink, differentiable: no kernel knows of it.

The forward kernel's O and lse get the sink, see `flashlib.sink`; told of these, the backward kernels give the
gradients with it, since P = exp(S - lse) and delta = rowsum(dO * O) are then those of the softmax with its sink.
"""

import math
from numbers import Real

import torch

from flashlib import sink as sinks
from flashlib.inputs import resolve_scale
from flashlib.kernels import backward, forward
from flashlib.kernels.launch.inputs import as_autocast, check_deterministic, check_readable, uncompiled
from flashlib.types import Attention


@uncompiled
def attention(Q, K, V, sink, *, causal=False, mask=None, scale=None, deterministic=True) -> Attention:
    """Return attention with a sink, O and lse of which can be differentiated: by Q, K, V and the sink.

    sink: a number, or a tensor (H_q,), a score for each query head, see `sink.add`. Q, K, V, causal, mask, scale,
    errors, CUDA graphs: as in `forward.attention`; deterministic: as in `autograd.attention`.
    Raises ValueError for a sink of another shape, TypeError for one that is no number and no floating tensor, and
    RuntimeError under torch.func and in forward mode.
    """
    if not isinstance(deterministic, bool):
        raise TypeError(f"deterministic is {deterministic!r}; pass True or False")
    Q, K, V = as_autocast(Q, K, V)
    plan = forward.plan_of(Q, K, V, causal, mask)
    sink = checked(sink, Q)
    check_readable(Q=Q, K=K, V=V, sink=sink)
    scale = resolve_scale(scale, Q.shape[-1])
    return Attention(*_WithSink.apply(plan, Q, K, V, sink, causal, mask, scale, deterministic))


def checked(sink, Q):
    """Return a sink as a tensor on the device of Q, () or (H_q,); raise what `attention` raises about it."""
    if not isinstance(sink, torch.Tensor):
        if isinstance(sink, bool) or not isinstance(sink, Real):
            raise TypeError(f"sink is {sink!r}; pass a number, or a tensor of one for each head, (H_q,)")
        if not -math.inf <= sink < 1e38:  # false for nan too
            raise ValueError(f"sink is {sink!r:.40}; pass a number below 1e38")
        return torch.full((), float(sink), device=Q.device)
    if not sink.is_floating_point():
        raise TypeError(f"sink has dtype {sink.dtype}; pass floating-point numbers, e.g. sink.float()")
    if sink.shape not in ((), (Q.shape[1],)):
        raise ValueError(
            f"sink has shape {tuple(sink.shape)}; pass a number, or one for each of {Q.shape[1]} heads"
        )
    return sink.to(Q.device)


class _WithSink(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan, Q, K, V, sink, causal, mask, scale, deterministic):
        found = sinks.add(forward.run(Q, K, V, scale, plan), sink)
        ctx.save_for_backward(Q, K, V, sink, *found)
        ctx.options = causal, mask, scale, deterministic
        ctx.set_materialize_grads(False)
        return tuple(found)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dO, dlse):
        Q, K, V, sink, O, lse = ctx.saved_tensors
        causal, mask, scale, deterministic = ctx.options
        if dO is None and dlse is None:
            return (None,) * 9
        dO = torch.zeros_like(O) if dO is None else dO
        check_readable(dO=dO, dlse=dlse)
        check_deterministic(deterministic)
        plan = backward.plan_of(Q, K, V, O, lse, dO, dlse, causal, mask, deterministic)
        grads = backward.run(Q, K, V, O, lse, dO, dlse, scale, plan)
        dsink = None
        if ctx.needs_input_grad[4]:
            dsink = sinks.gradient(Attention(O, lse), sink, dO, dlse).to(sink.dtype)
        return None, *grads, dsink, None, None, None, None
