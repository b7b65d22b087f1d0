"""Called by the compiler's worker for test_hopper_units.py: launches of `bench.hopper_units` without a GPU."""

import contextlib

from flashlib.bench import hopper_units

SOFTMAX, UNDER, PRODUCTS = ("softmaxes", 0), ("softmaxes", 1), ("products", 1)
LAUNCHES = {
    "products": lambda d, B_c: hopper_units.group(("products", 2), d=d, B_c=B_c),
    "softmax": lambda d, B_c: hopper_units.group(SOFTMAX, d=d, B_c=B_c),
    "under": lambda d, B_c: hopper_units.group(UNDER, d=d, B_c=B_c),
    "two": lambda d, B_c: hopper_units.group(UNDER, PRODUCTS, d=d, B_c=B_c),
    "stream": lambda d, B_c: hopper_units.stream(d, B_c, programs=2, n_tiles=4),
    "beginning": lambda d, B_c: hopper_units.beginning(d, hopper_units.ROWS, programs=2, n=4),
    "output": lambda d, B_c: hopper_units.output(d),
    "turn": lambda d, B_c: hopper_units.turn(),
    "watch": lambda d, B_c: hopper_units.watch(1.0),
}


def attention(Q, K, V, *, causal, what, B_c):
    hopper_units.DEVICE = "cpu"
    with contextlib.suppress(AssertionError, ZeroDivisionError):  # nothing ran: the results are wrong
        LAUNCHES[what](Q.shape[-1], B_c)
