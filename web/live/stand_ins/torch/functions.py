"""Functions of tensors: those that tensors have as methods too, and those of several tensors."""

from functools import wraps

import numpy as np

from .arithmetic import fits
from .dtypes import bool_, kept, numbers, result_type
from .tensor import Tensor

METHODS = (
    "abs add all amax amin any argmax argmin argsort bitwise_and bitwise_not bitwise_or bitwise_xor bmm "
    "broadcast_to ceil chunk clamp clone count_nonzero cos cumsum detach diagonal diff div eq exp exp2 expm1 "
    "flatten flip floor floor_divide fmod gather ge gt index_select is_complex is_floating_point isfinite "
    "isinf isnan le log log1p log2 log_softmax logaddexp logical_and logical_not logical_or logical_xor "
    "logsumexp lt masked_fill masked_select matmul max maximum mean min minimum mm movedim mul nan_to_num "
    "narrow ne neg nonzero norm numel permute pow prod ravel reciprocal relu remainder repeat_interleave "
    "reshape roll round rsqrt select sigmoid sign sin softmax sort split sqrt square squeeze std sub sum "
    "swapaxes t tanh topk transpose tril triu trunc unbind unflatten unsqueeze var"
).split()


def of_methods():
    """Return {name: function} of the functions that tensors have as methods."""
    return {name: _of_tensors(name, getattr(Tensor, name)) for name in METHODS}


def _of_tensors(name, method):
    """Return a method as a function, which names in torch's words what is no tensor, as a block of a kernel."""

    @wraps(method)
    def function(input, *others, **options):
        if not fits(input):
            given = type(input).__name__
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {given}")
        return method(input, *others, **options)

    return function


def is_tensor(x):
    return isinstance(x, Tensor)


def where(condition, *values):
    if not values:
        return condition.nonzero(as_tuple=True)
    of = result_type(*values)
    x, y = (numbers(kept(x._numbers() if is_tensor(x) else x, of), of) for x in values)
    return Tensor._made(np.where(condition._array, x, y), of)


def cat(tensors, dim=0):
    of = result_type(*tensors)
    return Tensor._raw(np.concatenate([X.to(of)._array for X in tensors], dim), of)


def stack(tensors, dim=0):
    of = result_type(*tensors)
    return Tensor._raw(np.stack([X.to(of)._array for X in tensors], dim), of)


def equal(X, Y):
    return X.shape == Y.shape and bool(np.array_equal(X._numbers(), Y._numbers()))


def isclose(X, Y, rtol=1e-5, atol=1e-8, equal_nan=False):
    with np.errstate(all="ignore"):
        return Tensor._made(np.isclose(X._wide(), Y._wide(), rtol, atol, equal_nan), bool_)


def allclose(X, Y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return bool(isclose(X, Y, rtol, atol, equal_nan).all())


def einsum(equation, *tensors):
    of = result_type(*tensors)
    with np.errstate(all="ignore"):
        return Tensor._made(np.einsum(equation, *(X._wide() for X in tensors), optimize=len(tensors) > 2), of)


def outer(X, Y):
    return X[:, None] * Y[None, :]


def broadcast_tensors(*tensors):
    shape = np.broadcast_shapes(*(X.shape for X in tensors))
    return tuple(X.expand(shape) for X in tensors)


def searchsorted(sorted_sequence, values, *, right=False, out_int32=False):
    side = "right" if right else "left"
    found = np.searchsorted(sorted_sequence._numbers(), values._numbers(), side)
    return Tensor._made(found.astype(np.int32 if out_int32 else np.int64))


def bincount(X, minlength=0):
    return Tensor._made(np.bincount(X._array.astype(np.intp), minlength=minlength).astype(np.int64))


# ---- of torch.nn.functional


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Return attention, computed in fp32 and not in tiles."""
    if dropout_p:
        raise ValueError("the stand-in for torch in this page has no dropout in scaled_dot_product_attention")
    if enable_gqa:
        key, value = (X.repeat_interleave(query.shape[-3] // X.shape[-3], -3) for X in (key, value))
    scores = (query.float() @ key.float().mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = Tensor._made(np.tri(*scores.shape[-2:], dtype=bool))
        attn_mask = seen if attn_mask is None else attn_mask & seen
    if attn_mask is not None:
        hides = attn_mask.dtype is bool_
        scores = scores.masked_fill(~attn_mask, -np.inf) if hides else scores + attn_mask
    return (scores.softmax(-1) @ value.float()).to(query.dtype)


def elu(input, alpha=1.0):
    return where(input > 0, input, alpha * input.expm1())


def pad(input, pad, mode="constant", value=None):
    if mode != "constant":
        raise ValueError(f"the stand-in for torch in this page has no padding of the mode {mode!r}")
    widths = [(0, 0)] * input.ndim
    for k in range(len(pad) // 2):
        widths[-1 - k] = tuple(pad[2 * k : 2 * k + 2])
    return Tensor._raw(np.pad(input._array, widths, constant_values=kept(value or 0, input.dtype)), input.dtype)
