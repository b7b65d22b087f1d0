"""A kind of mask that is defined outside the package, in one class: kernels call its functions, not torch."""

import dataclasses

import numpy as np
import pytest
import torch

from flashlib import masks, torch_ref
from flashlib.kernels import DEVICE, decode, forward, triton
from flashlib.kernels.masking import bits
from tests.kernels import gradients
from tests.kernels.masking.test_masks import SMALL, check, tensors

tl = triton.language


@triton.jit
def _in_steps(b, h, r, c, numbers):
    (step,) = numbers
    return (r - c) % step == 0


@triton.jit
def _with_weights(S, h, r, c, numbers):
    (weights,) = numbers
    return S * tl.load(weights + h)


@triton.jit
def _weights(S, h, r, c, numbers):
    (weights,) = numbers
    return tl.load(weights + h)


@dataclasses.dataclass(frozen=True)
class Steps(masks.Mask):
    """Each `step`-th key before and after a row's own."""

    step: int
    asks_batch = asks_head = may_change = False

    def sees(self, place, r, c):
        return (r - c) % self.step == 0

    def device_test(self, place):
        return masks.DeviceTest(_in_steps, (self.step,))


class WeightedSteps(Steps):
    """The same steps, and scores with a weight for each head."""

    weights = np.float32([0.5, 2.0])

    def score(self, S, place, r, c):
        return S * (torch.as_tensor(self.weights, device=S.device)[place.h])

    def slope(self, S, place, r, c):
        return S * 0 + torch.as_tensor(self.weights, device=S.device)[place.h]

    def device_change(self, place, H):
        return masks.DeviceChange(_with_weights, _weights, (self.weights,))


MASKS = {
    "hides": Steps(3),
    "hides and changes": WeightedSteps(3) & masks.window(20, None),
    "placed": masks.placed(WeightedSteps(3), 90, 90, (range(5, 16), range(30, 40)), range(0, 90, 2)),
}


@pytest.mark.parametrize("kind", MASKS)
def test_a_kind_with_functions_for_kernels_is_right_without_torch(kind, device, poisoned, monkeypatch):
    monkeypatch.setattr(bits, "mask_bits", lambda *_: pytest.fail("torch was asked"))
    Q, K, V, dO = tensors(device, 21, 45, heads=(1, 2, 1))
    check(Q, K, V, mask=MASKS[kind], B_r=16, B_c=16)
    gradients.check(Q, K, V, dO, mask=MASKS[kind], **SMALL)


def test_decoding_takes_a_kind_whose_numbers_are_valid_for_all_sizes_and_calls():
    Q, K, V = (torch.randn(1, 2, n, 16, device=DEVICE) for n in (2, 45, 45))
    mask = WeightedSteps(3)
    given, exact = (
        decode.attention(Q, K, V, mask=mask),
        torch_ref.attention(*(X.double() for X in (Q, K, V)), mask=mask),
    )
    torch.testing.assert_close(given.O.double(), exact.O, atol=5e-6, rtol=1e-5)

    class Changing(Steps):
        may_change = True

    class Sized(Steps):
        def sees(self, place, r, c):
            return (r - c) % self.step == place.N_q % 2

        def device_test(self, place):
            return super().device_test(place)._replace(sized=True)

    for mask in (Changing(3), Sized(3)):
        forward.attention(Q, K, V, mask=mask)
        with pytest.raises(ValueError, match=f"decoding takes no mask of {type(mask).__name__.lower()}"):
            decode.attention(Q, K, V, mask=mask)
