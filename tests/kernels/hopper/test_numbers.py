"""Every kernel in Gluon on a CPU, launched by its public function: exact in three orders of events."""

import functools

import pytest
import torch

from flashlib.kernels import forward as portable
from flashlib.kernels import quantise
from tests.kernels import eight, gradients
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.on_a_cpu import BACKWARD_RUNGS, FORWARD_RUNGS, ORDERS, Sizes, Tiles

DTYPES = [torch.bfloat16, torch.float16]
RAGGED = [
    (Sizes((1, 2, 1), 150, 300, 64, True), Tiles(multiprocessors=2, section=2)),
    (Sizes((2, 2, 2), 77, 53, 64, True), Tiles(multiprocessors=3)),
    (Sizes((1, 1, 1), 200, 333, 64, False), Tiles(stages=3, multiprocessors=1)),
    (Sizes((1, 3, 3), 131, 257, 128, True), Tiles(B_c=128, multiprocessors=2, section=3)),
]
THREE = [  # consumers
    (Sizes((1, 1, 1), 200, 333, 64, False), Tiles(3, 3, 64, 1)),
    (Sizes((1, 1, 1), 5, 1, 64, True), Tiles(3, multiprocessors=1)),
    (Sizes((1, 2, 2), 400, 200, 64, True), Tiles(3, multiprocessors=2, section=2)),
]
WIDE = Sizes((1, 1, 1), 130, 150, 256, True), Tiles(multiprocessors=1)  # at d = 256 O goes into Q's slot
FORWARD = [("all" if case is THREE[0] else "few", "forward", *case) for case in (*RAGGED, *THREE, WIDE)]
FORWARD += [("few", name, *RAGGED[0]) for name in FORWARD_RUNGS]  # grouped heads, and causal
FORWARD += [("all", name, *case) for name in FORWARD_RUNGS for case in RAGGED[1:]]


@functools.cache
def known(sizes, dtype):
    """Return attention in fp64, and O of the portable kernels."""
    Q, K, V, *_ = on_a_cpu.inputs(sizes, dtype)
    return on_a_cpu.exact(Q, K, V, causal=sizes.causal), portable.attention(Q, K, V, causal=sizes.causal).O


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("amount, name, sizes, tiles", FORWARD, ids=str)
def test_attention_is_as_exact_as_the_portable_kernels(amount, name, sizes, tiles, dtype, order, poisoned):
    Q, K, V, *_ = on_a_cpu.inputs(sizes, dtype)
    (O, lse), _ = on_a_cpu.attended(name, Q, K, V, tiles, order, causal=sizes.causal)
    exact, plain = known(sizes, dtype)
    allowed = max((plain - exact.O).abs().max(), (exact.O - exact.O.to(dtype)).abs().max())
    assert (O - exact.O).abs().max() <= 2 * allowed  # nan is not
    unseen = exact.lse.isneginf()
    assert torch.equal(lse.isneginf(), unseen) and not O[unseen].any()
    torch.testing.assert_close(lse[~unseen].double(), exact.lse[~unseen], rtol=1e-5, atol=1e-5)


BACKWARD = [
    Sizes((1, 2, 2), 150, 300, 64, True),
    Sizes((1, 4, 2), 77, 53, 64, True),
    Sizes((1, 1, 1), 200, 333, 64, False),
    Sizes((1, 2, 1), 131, 197, 128, True),
    Sizes((2, 2, 1), 140, 69, 128, True),  # a whole tile of rows sees nothing
    Sizes((1, 1, 1), 64, 128, 128, False),
    Sizes((1, 1, 1), 5, 1, 128, True),
]
BACKWARD_256 = [
    Sizes((1, 2, 2), 150, 70, 256, True),
    Sizes((1, 4, 2), 77, 53, 256, True),
    Sizes((1, 3, 1), 67, 131, 256, True),
    Sizes((2, 2, 1), 131, 70, 256, False),
    Sizes((1, 1, 1), 67, 321, 256, False),
    Sizes((1, 1, 1), 5, 1, 256, True),
]
# With grouped heads; a tile of rows sees nothing, and others see the first of two blocks of keys.
COMBINED = Sizes((1, 2, 1), 205, 140, 128, True)
FEW = BACKWARD[0], BACKWARD[2], BACKWARD[-1], *BACKWARD_256[::4], BACKWARD_256[-1]
OF_RUNGS = [sizes for sizes in BACKWARD if sizes.d == 128]
GRADIENTS = [("few" if sizes in FEW else "all", "backward", sizes) for sizes in (*BACKWARD, *BACKWARD_256)]
GRADIENTS += [("few", name, COMBINED) for name in on_a_cpu.MODULES if name.startswith("backward")]
GRADIENTS += [
    ("all" if sizes.causal else "few", f"backward_{name}", sizes) for name in BACKWARD_RUNGS for sizes in OF_RUNGS
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("amount, name, sizes", GRADIENTS, ids=str)
def test_gradients_are_as_exact_as_those_of_standard_attention(amount, name, sizes, dtype, order, poisoned):
    *tensors, dlse = on_a_cpu.inputs(sizes, dtype)
    options = {"dlse": dlse, "causal": sizes.causal}
    grads, _ = on_a_cpu.differentiated(name, *tensors, tiles=Tiles(), order=order, **options)
    Q, K, V, _, _, dO = tensors
    gradients.hold(grads, Q, K, V, dO, dlse, causal=sizes.causal)


# d, heads, lag, ring: few buffers, which are reused, for both d; or no program is as late as the lag
BUFFERS = [("few", 64, (3, 2, 1), 1, 2), ("few", 128, (2, 2, 2), 2, 3), ("few", 64, (1, 2, 1), 9, 18)]
BUFFERS += [("all", d, (3, 4, 2), *turns) for d in (64, 128) for turns in ((1, 2), (2, 3), (3, 7), (9, 18))]


@pytest.mark.parametrize("amount, d, heads, lag, ring", BUFFERS)
def test_buffers_of_sums_are_used_again(amount, d, heads, lag, ring, poisoned):
    sizes = Sizes(heads, 75, 131, d, True)
    *tensors, dlse = on_a_cpu.inputs(sizes)
    tiles, options = Tiles(lag=lag, ring=ring), {"dlse": dlse, "causal": True}
    grads, _ = on_a_cpu.differentiated("backward", *tensors, tiles=tiles, order=ORDERS[2], **options)
    Q, K, V, _, _, dO = tensors
    gradients.hold(grads, Q, K, V, dO, dlse, causal=True)


EIGHT_BITS = [
    (Sizes((1, 1, 1), 64, 128, 64, False), Tiles(B_c=128)),
    (Sizes((1, 2, 1), 150, 300, 64, True), Tiles(multiprocessors=2, section=2, turns=False)),
    (Sizes((2, 2, 2), 77, 53, 64, True), Tiles(multiprocessors=3)),
    (Sizes((1, 1, 1), 200, 333, 64, False), Tiles(3, 3, multiprocessors=1, turns=False)),
    (Sizes((1, 3, 3), 131, 257, 128, True), Tiles(B_c=128, multiprocessors=2, section=3, two_level=False)),
    (Sizes((1, 1, 1), 5, 1, 64, True), Tiles(3, multiprocessors=1)),
    (Sizes((1, 1, 1), 130, 150, 256, True), Tiles(multiprocessors=1, two_level=False, turns=False)),
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("qk", sorted(quantise.FORMATS))
@pytest.mark.parametrize("sizes, tiles", EIGHT_BITS, ids=str)
def test_in_eight_bits_the_only_error_is_the_rounding_of_P(sizes, tiles, qk, order, poisoned):
    Q, K, V = (X + 0.5 for X in on_a_cpu.inputs(sizes)[:3])
    options = {"causal": sizes.causal, "scale": 0.25, "qk": qk}
    found, _ = on_a_cpu.attended("fp8", Q, K, V, tiles, order, **options)
    small = quantise.quantised(Q, K, V, qk=qk, permuted=True)
    eight.check(found, small, *eight.stands_for(small, sizes.N_k, True), sizes.causal, 0.25)


SMALL = Sizes((1, 1, 1), 77, 131, 128, True)  # two tiles of rows and three of keys, ragged


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("name", on_a_cpu.MODULES)
def test_no_order_changes_a_bit(name, amount, poisoned):
    """Not even of dQ, except if two consumers add to it: programs run one after the other here."""
    *tensors, dlse = on_a_cpu.inputs(SMALL)

    def run(order):
        if name.startswith("backward"):
            options = {"tiles": Tiles(), "order": order, "dlse": dlse, "causal": True}
            return on_a_cpu.differentiated(name, *tensors, **options)[0]
        return on_a_cpu.attended(name, *tensors[:3], Tiles(), order, causal=True)[0]

    first, *others = map(run, ORDERS[:2] if amount == "few" else ORDERS)
    for other in others:
        for of, X, Y in zip(first._fields, first, other, strict=True):
            assert torch.equal(X, Y) or (of == "dQ" and name == "backward_r3_two_consumers")
