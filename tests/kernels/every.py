"""A small call of every kind of kernel, for tests that call them all: in threads, and after other imports."""

import functools
import hashlib
from importlib import import_module

import torch

from flashlib import kernels, masks
from flashlib.kernels import append, backward, decode, forward, softmax, varlen
from flashlib.lm.rotary import angles
from tests.kernels import drawn

triton, tl = kernels.triton, kernels.triton.language
RUNGS = "r1_eager", "r2_softmax", "r3_flash", "r4_exp2", "r5_causal", "r8_descriptors"


def _given(randn, dtype=torch.float32, N=35):
    return [randn(1, 2, n, 16).to(dtype) for n in (N, 41, 41, N)]


def _forward(randn, dtype):
    return [forward.attention(*_given(randn, dtype)[:3], causal=True, B_r=16, B_c=16)]


def _backward(randn, deterministic):
    Q, K, V, dO = _given(randn, torch.bfloat16)
    saved = forward.attention(Q, K, V, mask=drawn.BENT)
    return saved, backward.backward(Q, K, V, *saved, dO, mask=drawn.BENT, deterministic=deterministic)


def _autograd(randn, mask):
    Q, K, V, dO = _given(randn)
    given = [X.requires_grad_() for X in (Q, K, V)]
    O, lse = kernels.attention(*given, mask=mask, sink=torch.zeros(2))
    return (O.detach(), lse.detach()), torch.autograd.grad(O, given, dO)


def _varlen(randn):
    Q, K, V = (randn(40, 2, 16, requires_grad=True) for _ in range(3))
    cu = torch.tensor([0, 7, 40], dtype=torch.int32)
    O, lse = varlen.attention(Q, K, V, cu, cu, causal=True)
    return (O.detach(), lse.detach()), torch.autograd.grad(O.sum() + lse.sum(), (Q, K, V))


def _decode(randn):
    K, V, K_new = randn(2, 2, 40, 16), randn(2, 2, 40, 16), randn(2, 2, 1, 16)
    lengths, rotary = torch.tensor([33, 17]), tuple(map(torch.from_numpy, angles(40, 16)))
    append.append(K_new, K_new, K, V, lengths, rotary=rotary)
    Q = append.rotate(randn(2, 4, 1, 16), lengths, rotary)
    mask = masks.from_function(lambda b, h, r, c: (r - c) % (b + h + 2) == 0, kernel=drawn.in_stripes_of_heads)
    return (K, V, Q), decode.attention(Q, K, V, lengths, mask=mask, parts=2)


def _rung(randn, name):
    return [import_module(f"flashlib.kernels.ladder.{name}").attention(*_given(randn)[:3], causal=True)]


@triton.jit
def _of_a_learner(X_ptr, Y_ptr, n: tl.constexpr):
    x = tl.load(X_ptr + tl.arange(0, n))
    y = tl.sort(x) + tl.flip(x, 0) + tl.softmax(x) + tl.cumsum(x, 0) + tl.rand(7, tl.arange(0, n))
    at = x.argmax(0) + tl.argmin(x, 0) + tl.cdiv(n, 3)
    tl.store(Y_ptr + tl.arange(0, n), y + x.max() + x.sum() + tl.sigmoid(tl.min(x)) + at + tl.zeros_like(x))


def _own(randn):
    X, Y = randn(32), torch.empty(32)
    _of_a_learner[(1,)](X, Y, 32)
    return [(Y,)]


CALLS = {
    **{f"forward {dtype}": (_forward, dtype) for dtype in (torch.float16, torch.float32)},
    **{f"backward, deterministic: {given}": (_backward, given) for given in (True, False)},
    "autograd, a function": (_autograd, masks.from_function(lambda r, c: (r * c) % 3 != 1)),
    "autograd, a kernel": (_autograd, masks.from_function(lambda r, c: (r - c) % 5 == 0, kernel=drawn.in_stripes)),
    "autograd, a union": (_autograd, masks.window(5, 0) | masks.prefix(4)),
    "varlen": (_varlen,),
    "append and decode": (_decode,),
    "softmax": (lambda randn: [(softmax.softmax(randn(3, 70)),)],),
    "a learner's kernel": (_own,),
    **{name: (_rung, name) for name in RUNGS},
}


def result(name: str) -> str:
    """Return a hash of the results of a call, to the bit."""
    call, *given = CALLS[name]
    randn = functools.partial(torch.randn, generator=torch.Generator().manual_seed(0))  # of this call: threads
    hashed = hashlib.sha256()
    for tensors in call(randn, *given):
        for X in tensors:
            hashed.update(X.float().numpy().tobytes())
    return hashed.hexdigest()
