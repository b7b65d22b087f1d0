"""Results that depend on hidden lanes of a load without other= are found: `harness.undefined`."""

# ruff: noqa: I001  flashlib.kernels before triton
import numpy as np
import pytest

pytest.importorskip("flashlib.kernels", exc_type=ImportError)  # no Triton, nothing to watch

import torch

from flashlib.checks.harness import undefined
from flashlib.checks.harness.launches import launched
from flashlib.checks.harness.strided import Out
from flashlib.checks.harness.watch import watched
from flashlib.kernels import DEVICE, INTERPRETED
import triton
import triton.language as tl

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="compiled kernels are not watched")
N, BLOCK = 5, 8


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if HOW == "other":
        values = tl.load(x + at, mask=at < n, other=0.0)
    elif HOW == "chosen":
        values = tl.where(at < n, tl.load(x + at, mask=at < n), 0.0)
    elif HOW == "multiplied":
        values = tl.load(x + at, mask=at < n) * (at < n)
    elif HOW == "all seen":
        values = tl.load(x + at, mask=at < BLOCK)
    else:
        values = tl.load(x + at, mask=at < n)
    tl.store(y, tl.sum(values, axis=0))


@triton.jit
def both(first, second, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(first + at, mask=at < n, other=0.0), tl.load(second + at, mask=at < n)
    tl.store(y, tl.sum(a + b, axis=0))


@triton.jit
def until(ends, x, y, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    at, sum = tl.arange(0, BLOCK), 0.0
    hidden = tl.load(ends + at, mask=at < n)
    for i in range(tl.max(tl.where(at < n, hidden, 0) if HOW == "chosen" else hidden, axis=0)):
        sum += tl.load(x + i)
    tl.store(y, sum)


@triton.jit
def largest(x, y, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y, tl.max(tl.load(x + at, mask=at < n), axis=0))


@triton.jit
def by_block_pointer(x, y, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    block = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(y, tl.sum(tl.load(block, boundary_check=(0,), padding_option=HOW), axis=0))


@triton.jit
def gathered(x, table, y, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = tl.load(table + at, mask=at < n)
    values = tl.load(x + place, mask=at < n, other=0.0) if HOW == "masked" else tl.load(x + place)
    tl.store(y, tl.sum(tl.where(at < n, values, 0.0), axis=0))


def found(kernel, how, n=N, dtype=np.float32):
    """Return the result of a kernel and the id of the Finding."""

    def answer(x, y):
        kernel[(1,)](x, y, n, BLOCK=BLOCK, HOW=how)

    y, finding = launched(answer)(np.arange(1, BLOCK + 1 if n == BLOCK else N + 1).astype(dtype), Out((1,)))
    return y[0], finding and finding.id


@pytest.mark.parametrize("how", ["other", "chosen"])
def test_lanes_that_are_not_used_may_hold_anything(how):
    assert found(total, how) == (15, None)


@pytest.mark.parametrize("how", ["", "multiplied"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_lanes_that_matter_are_found_and_the_result_is_that_with_0(how, dtype):
    assert found(total, how, dtype=dtype) == (15, "undefined_lanes")


def test_a_maximum_is_found_although_it_ignores_nan():
    assert found(largest, "") == (5, "undefined_lanes")


def test_a_mask_that_hides_nothing_leaves_nothing_undefined():
    assert found(total, "all seen", n=BLOCK) == (36, None)


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
@pytest.mark.parametrize(("padding", "id"), [("", "undefined_lanes"), ("zero", None)])
def test_a_block_pointer_without_padding_leaves_lanes_undefined(padding, id):
    assert found(by_block_pointer, padding) == (15, id)


@pytest.mark.parametrize(("how", "id"), [("masked", None), ("", "undefined_lanes")])
def test_an_address_made_of_anything_is_found_unless_its_own_load_hides_it(how, id):
    def answer(x, table, y):
        gathered[(1,)](x, table, y, N, BLOCK=BLOCK, HOW=how)

    y, finding = launched(answer)(np.arange(1.0, N + 1), np.arange(N)[::-1], Out((1,)))
    assert (y[0], finding and finding.id) == (15, id)


@pytest.mark.parametrize(("how", "id"), [("chosen", None), ("", "undefined_lanes")])
def test_a_loop_whose_end_is_anything_is_found_at_once(how, id):
    def answer(ends, x, y):
        until[(1,)](ends, x, y, 3, BLOCK=BLOCK, HOW=how)

    y, finding = launched(answer)(np.array([2, 5, 4]), np.arange(1.0, N + 1), Out((1,)))
    assert (y[0], finding and finding.id) == (15, id)


def test_the_tensors_are_named():
    def answer(x, y):
        total[(1,)](x, y, N, BLOCK=BLOCK, HOW="")

    _, finding = launched(answer)(np.ones(N), Out((1,)))
    assert finding.fields == {"names": "x"}


def test_the_loaded_one_of_tensors_that_share_memory_is_named():
    def answer(y):
        first, second = torch.ones(2, N, device=DEVICE)
        both[(1,)](first, second, y, N, BLOCK=BLOCK)

    _, finding = launched(answer)(Out((1,)))
    assert finding.fields == {"names": "second"}


def test_a_result_in_reused_memory_is_copied():
    kept = torch.zeros(1, device=DEVICE)

    def answer(x):
        total[(1,)](x, kept, N, BLOCK=BLOCK, HOW="")
        return kept

    y, finding = launched(answer)(np.arange(1.0, N + 1))
    assert y[0] == 15 and finding.id == "undefined_lanes"


@pytest.mark.parametrize(
    "name",
    ["fp16", "bf16", "fp32", "fp64", "fp8e4nv", "fp8e5", "int1", "int8", "int32", "int64", "uint8", "uint64"],
)
def test_hidden_lanes_never_hold_0(name):
    numpy = {"bf16": "uint16", "fp8e4nv": "uint8", "fp8e5": "uint8", "int1": "bool"}
    made = undefined.anything((3, 2), np.dtype(numpy.get(name, name.replace("fp", "float"))), name)
    assert made.shape == (3, 2) and made.all()


def test_bf16_and_fp8_get_the_bits_of_nan():
    for name, dtype in (("bf16", torch.bfloat16), ("fp8e4nv", torch.float8_e4m3fn), ("fp8e5", torch.float8_e5m2)):
        bits = torch.int16 if name == "bf16" else torch.uint8
        held = undefined.anything((1,), np.dtype("uint16" if name == "bf16" else "uint8"), name)
        assert torch.tensor(held.astype(np.int32)).to(bits).view(dtype).float().isnan().all()


def test_hidden_lanes_outside_of_a_watch_are_0_as_before():
    x, y = torch.arange(1.0, N + 1, device=DEVICE), torch.zeros(1, device=DEVICE)
    with watched(x=x, y=y) as watch:
        total[(1,)](x, y, N, BLOCK=BLOCK, HOW="")
    assert y[0] == 15 and watch.undefined == {"x"}
