"""The key of a call contains all that its plan depends on: otherwise it would get the plan of a different call."""

from types import SimpleNamespace

import pytest
import torch

from flashlib import masks
from flashlib.kernels import append, backward, decode, eight_bits, forward, quantise, varlen
from flashlib.kernels.hopper import launch, launch_256, launch_backward, launch_fp8
from flashlib.kernels.launch import planning

X = torch.zeros(2, 3, 5, 16)
LSE, ROTARY = torch.zeros(2, 3, 5), (torch.zeros(9, 8), torch.zeros(9, 8))
LENGTHS = torch.full((2,), 5, dtype=torch.int32)
CU = torch.tensor([0, 2, 5], dtype=torch.int32)
SMALL = quantise.QuantisedQKV(X, X, X, *[None] * (len(quantise.QuantisedQKV._fields) - 3))
ONE, OTHER = SimpleNamespace(__name__="one"), SimpleNamespace(__name__="other")


def packed(mask=None, dropout=0.0, **options):
    return varlen.plan_of(X[0], X[0], X[0], CU, CU, options.pop("causal", False), mask, dropout=dropout, **options)


def of_hopper(plan_of, *tensors):
    def call(kernel=ONE, causal=False, out_dtype=None):
        return plan_of(kernel, *tensors, causal, None, out_dtype)

    return call


TILES = {"B_r": 16, "B_c": 32, "num_warps": 8, "num_stages": 3, "descriptors": True, "out_dtype": torch.float32}
PACKED = {"causal": True, "dropout": 0.5, "slopes": torch.ones(3)}
WINDOWS = {f"mask {n}": one for n, one in enumerate((masks.window(3, 2), masks.window(3, 1), masks.window(2, 2)))}
CAPS = {f"cap {n}": masks.softcap(n) for n in (2.0, 3.0)}
OF_HOPPER = {"causal": True, "out_dtype": torch.float32}
CALLS = {  # a call, and for each of its options a value other than the default
    "forward": (lambda **given: forward.attention(X, X, X, **given), {"causal": True, **TILES}),
    "backward": (
        lambda d_bias=False, **given: backward.plan_of(
            X, X, X, X, LSE, X, None, given.pop("causal", False), None, given.pop("deterministic", True),
            *(given.get(name) for name in TILES), wanted=d_bias,
        ),
        {"causal": True, "deterministic": False, "d_bias": True, **TILES},
    ),
    "decode": (
        lambda **given: decode.attention(X, X, X, LENGTHS, **given),
        {"causal": True, "shared": 2, "parts": 2, "sink": 1.0, "padding": LENGTHS, "slopes": torch.ones(3)},
    ),
    "varlen": (
        lambda **given: packed(next((given.pop(name) for name in WINDOWS | CAPS if name in given), None), **given),
        PACKED | WINDOWS | CAPS,
    ),
    "append": (
        lambda **given: append.append(X, X, LENGTHS, X, X, rotary=ROTARY, **given),
        {"interleaved": True},
    ),
    "rotate": (lambda **given: append.rotate(X, LENGTHS, ROTARY, **given), {"interleaved": True}),
    "eight bits": (
        lambda causal=False, V=None: eight_bits.of_quantised(SMALL, V, X, LSE, causal, 1.0),
        {"causal": True, "V": X},
    ),
    "quantise": (
        lambda **given: quantise.quantised(X, X, X, **given),
        {"qk": "int8", "permuted": True, "rotated": False, "centred": False},
    ),
    "hopper forward": (of_hopper(launch.plan_of, X, X, X), {"kernel": OTHER, **OF_HOPPER}),
    "hopper backward": (
        lambda kernel=ONE, causal=False, out_dtype=None: launch_backward.plan_of(
            kernel, ONE, X, X, X, X, LSE, X, None, None, causal, None, out_dtype
        ),
        {"kernel": OTHER, **OF_HOPPER},
    ),
    "hopper backward 256": (
        lambda causal=False, out_dtype=None: launch_256.plan_of(
            ONE, ONE, X, X, X, X, LSE, X, None, None, causal, None, out_dtype
        ),
        OF_HOPPER,
    ),
    "hopper fp8": (
        lambda kernel=ONE, causal=False: launch_fp8.of_quantised(kernel, SMALL, causal, 1.0),
        {"kernel": OTHER, "causal": True},
    ),
    "hopper fp8, whole": (
        lambda kernel=ONE, causal=False, qk="e4m3", rotated=True, centred=True: launch_fp8.attention(
            kernel, X, X, X, causal, None, 1.0, qk, rotated, centred
        ),
        {"kernel": OTHER, "causal": True, "qk": "int8", "rotated": False, "centred": False},
    ),
}  # fmt: skip


class Asked(Exception):
    """Raised with a key when it is made: nothing is computed."""


@pytest.fixture
def key_of(monkeypatch):
    plain = planning.Plans.key

    def asked(*given):
        raise Asked(plain(*given))

    def of(call, **options):
        with pytest.raises(Asked) as found:
            call(**options)
        return found.value.args[0]

    monkeypatch.setattr(planning.Plans, "key", asked)
    return of


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_differ_in_an_option_have_different_keys(name, key_of):
    call, options = CALLS[name]
    keys = {"": key_of(call)} | {option: key_of(call, **{option: value}) for option, value in options.items()}
    assert keys[""] == key_of(call) and None not in keys.values()
    assert len(set(keys.values())) == len(keys), keys
