"""How exact the gradients of the kernels must be."""

import torch

from flashlib import torch_ref
from flashlib.kernels import backward, forward
from tests import oracle
from tests.kernels.scores import under


def reference(Q, K, V, dO, dlse=None, **problem):
    """Return the gradients of sum(dO * O) + sum(dlse * lse) from autograd of standard attention in its dtype."""
    group = Q.shape[1] // K.shape[1]
    leaves = [X.detach().requires_grad_() for X in (Q, K, V)]
    O, lse = torch_ref.attention(leaves[0], *(X.repeat_interleave(group, dim=1) for X in leaves[1:]), **problem)
    if dlse is None:
        return torch.autograd.grad(O, leaves, dO.to(O.dtype))
    return torch.autograd.grad((O, lse), leaves, (dO.to(O.dtype), dlse.to(lse.dtype)))


def check(Q, K, V, dO, dlse=None, **options):
    """Compare the gradients of the finished kernel, see `hold`, and return them."""
    problem = {name: options[name] for name in ("causal", "mask", "scale") if name in options}
    O, lse = forward.attention(Q, K, V, **problem)
    given = backward.backward(Q, K, V, O, lse, dO, dlse=dlse, **options)
    hold(given, Q, K, V, dO, dlse, **problem)
    return given


def hold(given, Q, K, V, dO, dlse=None, *, out_dtype=None, **problem):
    """Compare Grads with fp64: at most twice the error of standard attention in the dtype of Q.

    out_dtype: of Grads, if not that of Q. The rounding of fp32 is added, since terms may cancel that standard
    attention never computes, and the rounding of the result: on small problems standard attention's error may be
    no more than that.
    """
    exact = reference(*(X.double() for X in (Q, K, V)), dO, dlse, **problem)
    plain = reference(Q, K, V, dO, dlse, **problem)
    roundings = rounding(Q, K, V, dO, dlse, **problem)
    for name, *tensors, bound in zip(given._fields, given, exact, plain, roundings, strict=True):
        assert tensors[0].shape == tensors[1].shape and tensors[0].dtype == (out_dtype or Q.dtype)
        X, X_exact, X_plain = (X.cpu().double() for X in tensors)
        stored = torch.finfo(tensors[0].dtype).eps / 2 * X_exact.abs().max().item() if X.numel() else 0.0
        oracle.assert_close(X, X_exact, plain=X_plain, rounding=bound + stored, what=name)


def rounding(Q, K, V, dO, dlse=None, *, causal=False, mask=None, scale=None):
    """Return how much dQ, dK and dV may lose that standard attention does not.

    In fp32 it is a unit times the sum of the terms' magnitudes: the unit of the largest score, since weights are
    powers of 2, times the root of the number of terms. A mask that changes scores multiplies their errors by its
    slope. And delta is computed from the rounded O.
    """
    dtype = Q.dtype
    scale = scale or Q.shape[-1] ** -0.5
    group = Q.shape[1] // K.shape[1]
    Q, K, V, dO = (X.double() for X in (Q, *(Y.repeat_interleave(group, dim=1) for Y in (K, V)), dO))
    if not Q.numel() or not K.numel():
        return 0.0, 0.0, 0.0
    O, lse = torch_ref.attention(Q, K, V, causal=causal, mask=mask, scale=scale)
    S = under(mask, Q @ K.mT * scale)  # including what `causal` hides: a larger bound does no harm
    P = torch.exp(S.after - lse[..., None].nan_to_num(neginf=torch.inf)).clamp(max=1)
    of_lse = 0 if dlse is None else dlse.double().abs()[..., None]
    dS = P * (dO.abs() @ V.abs().mT + (dO * O).abs().sum(-1, keepdim=True) + of_lse)
    dS *= S.slope.abs().clamp(min=1)  # 1 - tanh^2 may be 0, but its error is not
    d, longest = Q.shape[-1], max(Q.shape[2] * group, K.shape[2])
    farthest = S.steepest * scale * (Q.square() @ K.square().mT).max().sqrt().item()
    changes = 2 * S.steepest * S.size if mask is not None and mask.changes_scores else 0
    unit = 2.0**-23 * (lse.nan_to_num(neginf=0).abs().max().item() + changes + d**0.5 * farthest + longest**0.5)
    terms = scale * dS @ K.abs(), scale * group * dS.mT @ Q.abs(), group * P.mT @ dO.abs()
    in_delta = torch.finfo(dtype).eps * (dO * O).square().sum(-1, keepdim=True).sqrt()  # errors of either sign
    of_delta = (
        scale * in_delta * (P @ K).abs(),
        scale * (group * (P * in_delta).square().mT @ Q.square()).sqrt(),
        torch.zeros(()),
    )
    return tuple(unit * X.max().item() + Y.max().item() for X, Y in zip(terms, of_delta, strict=True))
