"""What the compiler's worker calls for test_units.py: launches of `bench.units` where there is no GPU."""

import contextlib

from flashlib.bench import units

SOFTMAX, UNDER, PRODUCTS = ("softmaxes", 0), ("softmaxes", 1), ("products", 1)
LAUNCHES = {
    "products": lambda d, B_c: units.group(("products", 2), d=d, B_c=B_c),
    "softmax": lambda d, B_c: units.group(SOFTMAX, d=d, B_c=B_c),
    "under": lambda d, B_c: units.group(UNDER, d=d, B_c=B_c),
    "two": lambda d, B_c: units.group(UNDER, PRODUCTS, d=d, B_c=B_c),
    "stream": lambda d, B_c: units.stream(d, B_c, programs=2, n_tiles=4),
    "beginning": lambda d, B_c: units.beginning(d, units.ROWS, programs=2, n=4),
    "output": lambda d, B_c: units.output(d),
    "turn": lambda d, B_c: units.turn(),
    "watch": lambda d, B_c: units.watch(1.0),
}


def attention(Q, K, V, *, causal, what, B_c):
    units.DEVICE = "cpu"
    with contextlib.suppress(AssertionError, ZeroDivisionError):  # nothing ran: the results are wrong
        LAUNCHES[what](Q.shape[-1], B_c)
