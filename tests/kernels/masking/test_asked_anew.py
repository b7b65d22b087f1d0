"""Each call evaluates a mask's function anew; a backward pass uses what its forward pass saw."""

import dataclasses
import types

import numpy as np
import pytest
import torch

pytest.importorskip("anywidget")

from flashlib import cost, kernels, masks, naive, tiled, torch_ref
from flashlib.kernels import autograd, backward, forward
from flashlib.widgets.mask_lab.tile_counts import kinds_of
from tests.kernels import drawn

N = 48
BEFORE, AFTER = np.arange(N) // 20, np.arange(N) // 7
SIZES = {"B_r": 16, "B_c": 16}
Q, K, V, dO = (torch.from_numpy(np.random.default_rng(i).standard_normal((1, 1, N, 16))).float() for i in range(4))


def same(ids, r, c):
    """Return whether rows and keys have the same id, in the library of c; memory is shared, not copied."""
    ids = ids if isinstance(c, np.ndarray) else torch.from_numpy(ids).to(c.device)
    return ids[r] == ids[c]


def changed_in_place():
    ids = BEFORE.copy()

    def change():
        ids[:] = AFTER

    return masks.from_function(lambda b, h, r, c: same(ids, r, c) & (h >= 0)), change


def bound_to_another_value():
    width = 30

    def change():
        nonlocal width
        width = 5

    return masks.from_function(lambda r, c: abs(r - c) < width), change


class Stepped(masks.Mask):
    """A new kind that can change."""

    step = 2

    def sees(self, place, r, c):
        return (r - c + place.h + place.b) % self.step == 0


@dataclasses.dataclass(frozen=True)
class Shifted(masks.Mask):
    """A new kind that equals others with its step, and looks up something that can change."""

    step: int
    world = types.SimpleNamespace(shift=0)

    def sees(self, place, r, c):
        return (r - c + self.world.shift) % self.step == 0


def new_kind():
    mask = Stepped()
    return mask, lambda: setattr(mask, "step", 5)


def new_kind_known_by_value():
    Shifted.world.shift = 0
    return Shifted(3), lambda: setattr(Shifted.world, "shift", 1)


CHANGING = {
    "an array, in place": changed_in_place,
    "a number, bound anew": bound_to_another_value,
    "a new kind": new_kind,
    "a new kind that equals others": new_kind_known_by_value,
}
JOINED = {
    "alone": lambda mask: mask,
    "both": lambda mask: masks.window(40, 0) & mask,
    "either": lambda mask: mask | masks.prefix(3),
    "repeated": lambda mask: masks.repeated(mask, 1, 1),
    "placed": lambda mask: masks.placed(mask, N, N, range(N), range(N)),
}


def _given():
    return [X.to(kernels.DEVICE, copy=True) for X in (Q, K, V)]


def _autograd(mask, change=lambda: None):
    given = [X.requires_grad_() for X in _given()]
    O, _ = autograd.attention(*given, mask=mask)
    change()
    return [O, *torch.autograd.grad(O, given, dO.to(kernels.DEVICE), retain_graph=True)]  # which keeps the mask


def _backward(mask):
    given = _given()
    saved = forward.attention(*given, mask=mask)
    return backward.backward(*given, *saved, dO.to(kernels.DEVICE), mask=mask)


def _tiles(mask):
    tiles, blocks = mask.on(N, N), [slice(i, i + 16) for i in range(0, N, 16)]
    return [tiles.seen(*tiles.all), kinds_of(tiles, tiles.seen(*tiles.all), blocks, blocks)]


def _numpy(attention, **sizes):
    given = [X[0, 0].numpy() for X in (Q, K, V)]
    return lambda mask: attention(*given, mask=mask, **sizes)


CALLS = {
    "naive": _numpy(naive.attention),
    "tiled": _numpy(tiled.attention, **SIZES),
    "torch_ref": lambda mask: torch_ref.attention(Q, K, V, mask=mask),
    "backward": _backward,
    "autograd": _autograd,
    "cost": lambda mask: [cost.computed_tiles(N, N, mask=mask, **SIZES)],
    "MaskLab": _tiles,
}


def numbers(found):
    return [X.detach().cpu().numpy() if isinstance(X, torch.Tensor) else np.asarray(X) for X in found]


def alike(one, other):
    return all(np.array_equal(X, Y) for X, Y in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "changing, joined",
    [*(("an array, in place", joined) for joined in JOINED)]
    + [(changing, joined) for changing in [*CHANGING][1:] for joined in ("alone", "both")],
)
def test_the_next_call_sees_the_change(changing, joined):
    changing_mask, change = CHANGING[changing]()
    mask = JOINED[joined](changing_mask)
    found = {name: call(mask) for name, call in CALLS.items()}  # and stays, with what a backward pass keeps
    before = {name: numbers(of) for name, of in found.items()}
    change()
    table = mask.on(N, N).seen(slice(0, N), slice(0, N))
    wrong = []
    for name, call in CALLS.items():
        now, expected = numbers(call(mask)), numbers(call(masks.dense(table)))
        assert name == "cost" or not alike(before[name], expected), "this case changes nothing"
        if not all(
            np.allclose(X, Y, atol=2e-6) if X.dtype.kind == "f" else (X == Y).all()
            for X, Y in zip(now, expected, strict=True)
        ):
            wrong.append(name)
    assert not wrong, f"after {changing} these go by what the mask said before the change"


@pytest.mark.parametrize("changing", CHANGING)
def test_a_backward_pass_uses_the_mask_of_its_forward_pass(changing):
    mask, change = CHANGING[changing]()
    expected = numbers(_autograd(mask))
    assert alike(numbers(_autograd(mask, change)), expected), "the gradients are of another mask than O"


def test_a_mask_with_a_kernel_or_of_a_table_is_prepared_once():
    for mask in (drawn.stripes(), masks.dense(np.tri(N, dtype=bool))):
        forward.attention(*_given(), mask=mask)
        kept = forward.PLANS.of(mask)
        assert len(kept) == 1
        forward.attention(*_given(), mask=mask)
        assert forward.PLANS.of(mask) is kept and len(kept) == 1
