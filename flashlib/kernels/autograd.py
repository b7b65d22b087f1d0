"""FlashAttention as an operation of PyTorch that can be differentiated: `forward` with `backward` behind it.

PyTorch calls it in three ways. Usually only autograd watches: `_Attention` launches the kernels. If torch.func
transforms the operation, `_Transformed` defines how. If it is traced, by torch.compile for example, it is an
operator whose insides are not traced. All three save and compute the same, by the kernels that `choice` says. With
a forward pass that the caller names, or a sink, only plain autograd is supported.
"""

import functools
from types import ModuleType

import torch

from flashlib import masks
from flashlib.inputs import resolve_scale
from flashlib.kernels import backward, choice, forward
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import (
    as_autocast,
    check_deterministic,
    check_readable,
    have_memory,
    refuse_tangents,
    sink_tensor,
    uncompiled,
)
from flashlib.kernels.masking import biases, prepare
from flashlib.masks import Mask
from flashlib.private_apis.of_torch import in_forward_mode, is_dispatched, is_transformed, untransformed
from flashlib.sink import add as add_sink
from flashlib.sink import gradient as sink_gradient
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: Mask | None = None,
    scale: float | None = None, sink: float | torch.Tensor | None = None, deterministic: bool = True,
    portable: bool = False, forward: ModuleType | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, both of which can be differentiated.

    Q, K, V, causal, mask, scale, O, lse, errors, CUDA graphs: as in `forward.attention`. Under torch.autocast Q, K
    and V are cast to its dtype. Only Q, K, V, O, lse and the mask are saved for the backward pass, which computes
    all three gradients, whichever are needed.
    sink: None, a number, or a tensor (H_q,), a score for each query head, see `flashlib.sink`; it gets a gradient.
    So do tensors that the mask's changes of scores read, see `flashlib.masks.bias`; they are saved, too.
    deterministic: whether the gradients have the same bits every time, as in `backward.backward`.
    portable: on a Hopper GPU its own kernels compute a pass that they take and are faster in, which
    `kernels.chosen` says; True: they are not used. forward: the module whose `attention` computes O and lse, and
    refuses what it does not take, such as `kernels.hopper.forward`; None: it is chosen.
    torch.func's grad, vjp, jacrev and vmap work; vmap launches once. Raises RuntimeError for derivatives in
    forward mode (jvp, jacfwd, hessian), second derivatives, torch.func inside torch.compile, a mask inside
    torch.compile, and a `forward` in either. torch.func takes no sink and no mask that reads tensors,
    and torch.compile does not trace a call with one: it runs between two graphs.
    Raises ValueError for a sink of another shape, TypeError for one that is not a number or a floating tensor.
    """
    for name, given in (("deterministic", deterministic), ("portable", portable)):
        if not isinstance(given, bool):
            raise TypeError(f"{name} is {given!r}; pass True or False")
    if forward is not None and not callable(getattr(forward, "attention", None)):
        raise TypeError(
            f"forward is {forward!r}; pass a module with attention, as flashlib.kernels.hopper.forward is"
        )
    Q, K, V = as_autocast(Q, K, V)
    options = causal, prepare.mask_of_call(mask), scale, deterministic, portable
    if sink is not None or getattr(mask, "biased", False):
        if forward is not None:
            given = "a bias" if sink is None else "sink"
            raise TypeError(
                f"{given} and forward are given; another forward pass takes no sink and no bias: leave one out"
            )
        return _with_more(Q, K, V, sink, *options)
    return _plain(Q, K, V, forward, *options)


def hopper_attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: None = None,
    scale: float | None = None, deterministic: bool = False,
) -> Attention:  # fmt: skip
    """Return what `attention` returns, by kernels for Hopper: `kernels.hopper.attention` is this function.

    Q, K, V, causal, mask, scale, O, lse, errors: as in `hopper.forward.attention`. deterministic: as in
    `attention`, but False by default. The portable kernels compute the gradients wherever they are faster.
    """
    from flashlib.kernels.hopper import forward  # only here, as it imports all of Gluon

    return attention(Q, K, V, causal=causal, mask=mask, scale=scale, deterministic=deterministic, forward=forward)


def _plain(Q, K, V, module, *options):
    """Return O and lse of a call without a sink and a bias."""
    if torch.compiler.is_compiling() or is_transformed() or is_dispatched() or in_forward_mode():
        return _traced(Q, K, V, module, *options)
    causal, mask, scale, deterministic, portable = options
    name = getattr(module, "__name__", module)  # without a name, a call is not kept
    key = CALLS.key((Q, K, V), causal, portable, name) if mask is None else None
    call = CALLS.get(key)
    if call is None:
        if not have_memory(Q, K, V):
            return _traced(Q, K, V, module, *options)
        call = CALLS.keep(key, _call_of(Q, K, V, module, causal, mask, portable))
    by, plan = call
    scale = resolve_scale(scale, Q.shape[-1])
    if torch.is_grad_enabled() and (Q.requires_grad or K.requires_grad or V.requires_grad):
        return Attention(*_watched(Q, K, V, (by, plan, bool(causal), scale, deterministic, portable, mask)))
    return by.run(Q, K, V, scale, plan)


CALLS = planning.Plans()  # the results of `_call_of` for calls without a mask


def _call_of(Q, K, V, module, causal, mask, portable):
    """Return a module and its plan: module.run(Q, K, V, scale, plan) is O and lse; raise for what is not taken."""
    if module is not None:
        if hasattr(module, "plan_of"):
            return module, module.plan_of(Q, K, V, causal, mask)
        choice.checked(Q, K, V, causal, mask)
        return _Another, (module, causal, mask)
    plan = forward.plan_of(Q, K, V, causal, mask)  # checks them, too
    if choice.against_forward(Q, K, V, mask, portable):
        return forward, plan
    hopper = _of_hopper()[0]
    return hopper, hopper.plan_of(Q, K, V, causal)


class _Another:
    """A module that has only `attention`."""

    @staticmethod
    def run(Q, K, V, scale, plan):
        module, causal, mask = plan
        return module.attention(Q, K, V, causal=causal, mask=mask, scale=scale)


def _traced(Q, K, V, module, causal, mask, scale, deterministic, portable):
    """Return O and lse of a call that torch transforms or traces."""
    mask, causal = choice.checked(Q, K, V, causal, mask)
    if module is not None:
        raise RuntimeError(
            "forward is given, and torch.func, torch.compile and forward mode know only kernels.attention's own "
            "choice: leave it out, or put torch.compiler.disable around flashlib's attention"
        )
    options = causal, resolve_scale(scale, Q.shape[-1]), deterministic, portable
    if not torch.compiler.is_compiling():
        return Attention(*_Transformed.apply(Q, K, V, *options, mask))
    if mask is not None:
        raise RuntimeError(
            "torch.compile cannot look into a mask: put torch.compiler.disable around flashlib's attention"
        )
    if is_transformed():
        raise RuntimeError("torch.compile takes no torch.func around flashlib's attention: leave one of them out")
    return Attention(*_attention(Q, K, V, *options))


@uncompiled
def _with_more(Q, K, V, sink, causal, mask, scale, deterministic, portable):
    """Return O and lse with a sink, or under a mask that reads tensors: these have gradients too.

    No kernel has a sink built in, see `flashlib.sink`.
    """
    call = _call_of(Q, K, V, None, causal, mask, portable)
    sink = None if sink is None else sink_tensor(sink, Q)
    check_readable(Q=Q, K=K, V=V, sink=sink, **biases.tensors_by_name(mask))
    scale = resolve_scale(scale, Q.shape[-1])
    options = *call, causal, mask, scale, deterministic, portable
    return Attention(*_WithMore.apply(options, Q, K, V, sink, *biases.tensors_read(mask)))


def _unwatched(*tensors) -> bool:
    """Return whether nothing traces or transforms the operation, so that kernels can be launched."""
    if torch.compiler.is_compiling() or is_transformed():
        return False
    return not is_dispatched() and have_memory(*tensors)


def _launch(Q, K, V, causal, scale, deterministic, portable, mask=None):
    key = CALLS.key((Q, K, V), causal, portable, None) if mask is None else None
    by, plan = CALLS.get(key) or CALLS.keep(key, _call_of(Q, K, V, None, causal, mask, portable))
    return by.run(Q, K, V, scale, plan)


def _launch_backward(Q, K, V, O, lse, dO, dlse, causal, scale, deterministic, portable, mask=None, d_bias=None):
    check_deterministic(deterministic)
    given = Q, K, V, O, lse, dO, dlse
    if mask is not None:
        plan = backward.plan_of(*given, causal, mask, deterministic, wanted=d_bias is not None)
        return backward.run(*given, scale, plan, mask=mask, d_bias=d_bias)
    key = GRADIENTS.key(given, causal, deterministic, portable)
    by, plan = GRADIENTS.get(key) or GRADIENTS.keep(key, _gradients_of(*given, causal, deterministic, portable))
    return by.run(*given, scale, plan)


GRADIENTS = planning.Plans()  # the results of `_gradients_of`


def _gradients_of(Q, K, V, O, lse, dO, dlse, causal, deterministic, portable):
    """Return a module and its plan for the gradients of a call without a mask, as `_call_of` does."""
    if choice.against_backward(Q, K, V, causal, None, deterministic, portable):
        return backward, backward.plan_of(Q, K, V, O, lse, dO, dlse, causal, None, deterministic)
    hopper = _of_hopper()[1]
    return hopper, hopper.plan_of(Q, K, V, O, lse, dO, dlse, causal)


@functools.cache
def _of_hopper():
    from flashlib.kernels.hopper import backward, forward  # only here, as they import all of Gluon

    return forward, backward


def _keep(ctx, inputs, output):
    Q, K, V, *ctx.options = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(Q, K, V, *output)


def _gradients(ctx, dO, dlse):
    Q, K, V, O, lse = ctx.saved_tensors
    if dO is None and dlse is None:
        return (None,) * (3 + len(ctx.options))
    dO = torch.zeros_like(O) if dO is None else dO
    options = ctx.options if len(ctx.options) == 5 else (*ctx.options, None)  # the operation's have no mask
    if torch.compiler.is_compiling():
        run, options = _attention_backward, options[:4]
    elif torch.is_grad_enabled() or in_forward_mode() or not _unwatched(O, dO, dlse):
        run = _Gradients.apply
    else:
        run = _launch_backward
    return *run(Q, K, V, O, lse, dO, dlse, *options), *(None,) * len(ctx.options)


def _refuse(ctx, *grads):
    raise RuntimeError(
        "the gradients of flashlib's attention cannot be differentiated again: there is no kernel for it; "
        "for second derivatives use flashlib.torch_ref.attention or SDPA's math backend"
    )


class _Attention(torch.autograd.Function):
    """Saves tensors in `forward`: with a setup_context, `apply` takes the CPU 40 us longer."""

    @staticmethod
    def forward(ctx, Q, K, V, call):
        by, plan, *ctx.options = call
        O, lse = by.run(Q, K, V, ctx.options[1], plan)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Q, K, V, O, lse)
        return O, lse

    @staticmethod
    def backward(ctx, dO, dlse):
        return *_gradients(ctx, dO, dlse)[:3], None


_watched = untransformed(_Attention)


class _WithMore(torch.autograd.Function):
    """The backward kernels get O and lse with the sink, so their gradients include it: P is exp(S - lse).

    The tensors that a mask's changes of scores read are inputs too, so that autograd knows them and notices if
    they are written to before the backward pass.
    """

    @staticmethod
    def forward(ctx, options, Q, K, V, sink, *read):
        by, plan, *ctx.options = options
        mask, scale = ctx.options[1:3]
        found = by.run(Q, K, V, scale, plan, **({} if mask is None else {"mask": mask}))
        if sink is not None:
            found = add_sink(found, sink)
        ctx.save_for_backward(Q, K, V, sink, *found, *read)
        ctx.set_materialize_grads(False)
        return tuple(found)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dO, dlse):
        Q, K, V, sink, O, lse, *read = ctx.saved_tensors
        causal, mask, scale, *rest = ctx.options
        if dO is None and dlse is None:
            return (None,) * (5 + len(read))
        dO = torch.zeros_like(O) if dO is None else dO
        check_readable(dO=dO, dlse=dlse)
        wanted = ctx.needs_input_grad[5:]
        d_bias: list | None = [] if any(wanted) else None
        grads = _launch_backward(Q, K, V, O, lse, dO, dlse, causal, scale, *rest, mask, d_bias)
        dsink = None
        if ctx.needs_input_grad[4]:
            dsink = sink_gradient(Attention(O, lse), sink, dO, dlse).to(sink.dtype)
        of_read = [None] * len(read) if d_bias is None else map(torch.Tensor.to, d_bias, (T.dtype for T in read))
        return None, *grads, dsink, *of_read


class _Transformed(torch.autograd.Function):
    @staticmethod
    def forward(*inputs):
        return tuple(_launch(*inputs) if _unwatched(*inputs[:3]) else _attention(*_without_mask(inputs)))

    @staticmethod
    def vmap(info, in_dims, *inputs):
        return _in_one_launch(_Transformed, info.batch_size, in_dims, inputs)

    setup_context = staticmethod(_keep)
    backward = staticmethod(_gradients)
    jvp = staticmethod(refuse_tangents)  # type: ignore[assignment]


class _Gradients(torch.autograd.Function):
    @staticmethod
    def forward(*inputs):
        if _unwatched(*inputs[:7]):
            return tuple(_launch_backward(*inputs))
        return tuple(_attention_backward(*_without_mask(inputs)))

    @staticmethod
    def vmap(info, in_dims, *inputs):
        return _in_one_launch(_Gradients, info.batch_size, in_dims, inputs)

    setup_context = staticmethod(lambda ctx, inputs, output: None)
    backward = staticmethod(_refuse)
    jvp = staticmethod(refuse_tangents)  # type: ignore[assignment]


def _without_mask(inputs):
    """Return all inputs except the last, the mask; raise RuntimeError if there is one."""
    *inputs, mask = inputs
    if mask is not None:
        raise RuntimeError(
            "torch traces flashlib's attention, or batches its gradients (is_grads_batched), and cannot look into "
            "a mask: compute batches with torch.func.vmap or in a loop, and put torch.compiler.disable around "
            "calls that must not be traced"
        )
    return inputs


def _in_one_launch(function, size, in_dims, inputs):
    """Apply the function to a batch, axis in_dims[i] of inputs[i] (None: no such axis), as a part of B."""

    def fold(X, dim):
        if not isinstance(X, torch.Tensor):
            return X
        return (X.expand(size, *X.shape) if dim is None else X.movedim(dim, 0)).flatten(0, 1)

    B = inputs[0].shape[1 if in_dims[0] == 0 else 0]
    *given, mask = map(fold, inputs, in_dims)
    outputs = function.apply(*given, mask and masks.repeated(mask, B, size))
    return tuple(Y.unflatten(0, (size, B)) for Y in outputs), (0,) * len(outputs)


@torch.library.custom_op("flashlib::attention", mutates_args=())
def _attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, scale: float, deterministic: bool,
    portable: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    if in_forward_mode():  # which tensors carry a tangent cannot be seen here
        refuse_tangents()
    return tuple(_launch(Q, K, V, causal, scale, deterministic, portable))


@_attention.register_fake
def _(Q, K, V, causal, scale, deterministic, portable=False):
    O = Q.new_empty((*Q.shape[:-1], V.shape[-1]))
    return O, Q.new_empty(Q.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("flashlib::attention_backward", mutates_args=())
def _attention_backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, scale: float, deterministic: bool, portable: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    if in_forward_mode():
        refuse_tangents()
    return tuple(_launch_backward(Q, K, V, O, lse, dO, dlse, causal, scale, deterministic, portable))


@_attention_backward.register_fake
def _(Q, K, V, O, lse, dO, dlse, causal, scale, deterministic, portable=False):
    return tuple(torch.empty_like(X, memory_format=torch.contiguous_format) for X in (Q, K, V))


torch.library.register_autograd(_attention, _gradients, setup_context=_keep)
torch.library.register_autograd(_attention_backward, _refuse)
