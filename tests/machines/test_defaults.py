"""Results do not depend on torch's default device or dtype: tensors are created on the device of the input."""

import contextlib
from importlib.util import find_spec

import pytest
import torch

from flashlib import masks, torch_ref
from flashlib.lm import training
from flashlib.lm.tokenizer import encode_characters

if find_spec("triton"):
    from flashlib import kernels

KINDS = {
    "causal": masks.causal(),
    "window": masks.window(5, 2),
    "prefix": masks.prefix(4),
    "documents": masks.documents([0] * 9 + [1] * 11),
    "blocks": masks.blocks([[True, False], [True, True]], 10, 10),
    "function": masks.from_function(lambda r, c: (r + c) % 3 != 0),
    "soft cap": masks.softcap(2.0),
    "alibi": masks.alibi([0.5, 0.25]),
    "union": masks.window(3, 0) | masks.prefix(2),
}
needs_triton = pytest.mark.skipif(not find_spec("triton"), reason="Triton has packages for Linux only")


@contextlib.contextmanager
def defaults(device, dtype):
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):  # as torch.set_default_device does
            yield
    finally:
        torch.set_default_dtype(torch.float32)


OTHERS = [("meta", torch.float32), ("cpu", torch.float64), ("meta", torch.bfloat16)]
others = pytest.mark.parametrize("device, dtype", OTHERS, ids=["device", "fp64", "device and bf16"])


def same(compute, device, dtype):
    """Check that `compute` returns the same tensors whatever the defaults are."""
    expected = compute()
    with defaults(device, dtype):
        given = compute()
    for n, (x, y) in enumerate(zip(given, expected, strict=True)):
        assert (x.device, x.dtype) == (y.device, y.dtype), f"result {n}"
        assert torch.equal(x, y), f"result {n} depends on the defaults"


def tensors(*shapes):
    generator = torch.Generator("cpu").manual_seed(0)
    return [torch.randn(s, generator=generator, device="cpu", dtype=torch.float32) for s in shapes]


def with_gradients(attention, *inputs):
    leaves = [X.clone().requires_grad_() for X in inputs]
    O = attention(*leaves)
    return O, *torch.autograd.grad((O * O).sum(), leaves)


@others
@pytest.mark.parametrize("kind", KINDS)
def test_torch_ref(kind, device, dtype):
    inputs = tensors(*[(1, 2, 20, 16)] * 3)
    same(lambda: torch_ref.attention(*inputs, mask=KINDS[kind]), device, dtype)


@needs_triton
@others
@pytest.mark.parametrize("kind", KINDS)
def test_attention_and_its_gradients(kind, device, dtype):
    inputs = tensors(*[(1, 2, 20, 16)] * 3)
    options = {"mask": KINDS[kind], "sink": 0.5}
    if kernels.INTERPRETED:
        same(lambda: with_gradients(lambda *X: kernels.attention(*X, **options).O, *inputs), device, dtype)


@needs_triton
@others
def test_varlen_decode_append_and_trees(device, dtype):
    from flashlib.lm import rotary

    if not kernels.INTERPRETED:
        pytest.skip("kernels are compiled here")
    Q, K, V = tensors(*[(20, 2, 16)] * 3)
    offsets = torch.tensor([0, 7, 20], device="cpu")
    varlen = lambda *X: kernels.varlen.attention(*X, offsets, offsets, causal=True).O  # noqa: E731
    same(lambda: with_gradients(varlen, Q, K, V), device, dtype)

    q, k, v = tensors((1, 2, 3, 16), (1, 2, 40, 16), (1, 2, 40, 16))
    lengths = torch.tensor([30], dtype=torch.int32, device="cpu")
    for mask in (masks.tree([-1, 0, 0]), masks.window(5, 0), masks.alibi(0.5)):
        same(lambda: kernels.decode.attention(q, k, v, lengths, mask=mask, sink=0.5), device, dtype)  # noqa: B023

    def appended():
        caches = k.clone(), v.clone()
        angles = rotary.angles(40, 16, device="cpu")
        kernels.append.append(q, q, *caches, lengths, rotary=angles)
        return caches

    same(appended, device, dtype)


@others
def test_batches_of_training_and_tokens(device, dtype):
    def compute():
        tokens = encode_characters("a text that is long enough to cut pieces from")[0]
        return tokens, *next(training.batches(tokens, 8, 2))

    same(compute, device, dtype)
