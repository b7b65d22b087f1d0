"""Everything goes by what a mask's function says now, whatever it looks up and however that changes."""

import functools
import types

import numpy as np
import pytest
import torch

pytest.importorskip("anywidget")

from flashlib import cost, kernels, masks, naive, tiled, torch_ref
from flashlib.kernels import backward, decode, forward
from flashlib.masks.lookups import looked_up
from flashlib.widgets.mask_lab.numbers import kinds_of
from tests.tiers import amounts

triton, tl = kernels.triton, kernels.triton.language
N = 48
BEFORE, AFTER = np.arange(N) // 20, np.arange(N) // 7
SIZES = {"B_r": 16, "B_c": 16}
WORLD = types.SimpleNamespace()
IDS, WIDTH = BEFORE, 30
Q, K, V, dO = (torch.from_numpy(np.random.default_rng(i).standard_normal((1, 1, N, 16))).float() for i in range(4))


def same(ids, r, c):
    """Return whether rows and keys have one id, in the library of c; memory is shared, not copied."""
    ids = ids if isinstance(c, np.ndarray) else torch.from_numpy(ids).to(c.device)
    return ids[r] == ids[c]


class Table:
    def __init__(self, ids):
        self.ids = ids

    def __call__(self, r, c):
        return same(self.ids, r, c)

    def sees(self, r, c):
        return same(self.ids, r, c)


def in_place(make):
    """Return a case whose function looks up an array that changes in place."""

    def case():
        ids = BEFORE.copy()

        def change():
            ids[:] = AFTER

        return make(ids), change

    return case


def _global(ids):
    WORLD.ids = ids
    return lambda r, c: same(WORLD.ids, r, c)


def _attribute(ids):
    def f(r, c):
        return same(f.ids, r, c)

    f.ids = ids
    return f


def _inner(ids):
    def table():
        return ids

    return lambda r, c: same(table(), r, c)


def rebound_closure():
    ids = BEFORE

    def change():
        nonlocal ids
        ids = AFTER

    return lambda r, c: same(ids, r, c), change


def rebound_number():
    width = 30

    def change():
        nonlocal width
        width = 5

    return lambda r, c: abs(r - c) < width, change


def rebound_global():
    globals().update(IDS=BEFORE)
    return lambda r, c: same(IDS, r, c), lambda: globals().update(IDS=AFTER)


def rebound_global_number():
    globals().update(WIDTH=30)

    def near(r, c):
        return abs(r - c) < WIDTH

    return lambda r, c: near(r, c), lambda: globals().update(WIDTH=5)


def rebound_attribute():
    table = Table(BEFORE)
    return table, lambda: setattr(table, "ids", AFTER)


def rebound_default():
    def f(r, c, ids=BEFORE):
        return same(ids, r, c)

    return f, lambda: setattr(f, "__defaults__", (AFTER,))


CASES = {
    "a closure, in place": in_place(lambda ids: lambda r, c: same(ids, r, c)),
    "a global, in place": in_place(_global),
    "a default, in place": in_place(lambda ids: lambda r, c, ids=ids: same(ids, r, c)),
    "a partial, in place": in_place(lambda ids: functools.partial(same, ids)),
    "an object, in place": in_place(Table),
    "a method, in place": in_place(lambda ids: Table(ids).sees),
    "an attribute of the function, in place": in_place(_attribute),
    "another function, in place": in_place(_inner),
    "four arguments, in place": in_place(lambda ids: lambda b, h, r, c: same(ids, r, c) & (h >= 0)),
    "a closure, rebound": rebound_closure,
    "a number, rebound": rebound_number,
    "a global, rebound": rebound_global,
    "a global number of another function, rebound": rebound_global_number,
    "an attribute, rebound": rebound_attribute,
    "a default, rebound": rebound_default,
}
IN_CALLS = [  # a function of objects, in place and rebound; one of numbers; one of its numbers elsewhere; of heads
    "a closure, in place", "an object, in place", "another function, in place", "four arguments, in place",
    "a number, rebound", "a global number of another function, rebound", "a default, rebound",
]  # fmt: skip
IN_PASSES = ["a partial, in place", "four arguments, in place", "a number, rebound", "an attribute, rebound"]
JOINED = {
    "alone": lambda mask: mask,
    "both": lambda mask: masks.window(40, 0) & mask,
    "either": lambda mask: mask | masks.prefix(3),
    "repeated": lambda mask: masks.repeated(mask, 1, 1),
}


def _given():
    return [X.to(kernels.DEVICE, copy=True) for X in (Q, K, V)]


def _autograd(mask, change=lambda: None):
    given = [X.requires_grad_() for X in _given()]
    O, _ = kernels.attention(*given, mask=mask)
    change()
    return [O.detach(), *torch.autograd.grad(O, given, dO.to(kernels.DEVICE))]


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


ASKED = {
    "naive": _numpy(naive.attention),
    "tiled": _numpy(tiled.attention, **SIZES),
    "torch_ref": lambda mask: torch_ref.attention(Q, K, V, mask=mask),
    "forward": lambda mask: forward.attention(*_given(), mask=mask),
    "backward": _backward,
    "autograd": _autograd,
    "cost": lambda mask: [cost.computed_tiles(N, N, mask=mask, **SIZES)],
    "MaskLab": _tiles,
}


def numbers(found):
    return [np.asarray(X.cpu() if isinstance(X, torch.Tensor) else X) for X in found]


def alike(one, other):
    return all(np.array_equal(X, Y) for X, Y in zip(one, other, strict=True))


@pytest.mark.parametrize("launched", ["forward", "backward", "autograd"])
@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("amount, case", amounts(CASES, few=IN_CALLS))
def test_the_next_call_sees_what_was_changed(amount, case, joined, launched):
    (f, change), join = CASES[case](), JOINED[joined]
    mask = join(masks.from_function(f))
    asked = {name: ASKED[name] for name in ("naive", "tiled", "torch_ref", "cost", "MaskLab", launched)}
    before = {name: numbers(ask(mask)) for name, ask in asked.items()}
    change()
    wrong = []
    for name, ask in asked.items():
        now, expected = numbers(ask(mask)), numbers(ask(join(masks.from_function(f))))
        assert name == "cost" or not alike(before[name], expected), "this case changes nothing"
        if not alike(now, expected):
            wrong.append(name)
    assert not wrong, f"after {case} these go by what the mask said before the change"


@pytest.mark.parametrize("amount, case", amounts(CASES, few=IN_PASSES))
def test_a_backward_pass_goes_by_what_its_forward_pass_saw(amount, case):
    f, change = CASES[case]()
    mask = masks.from_function(f)
    expected = numbers(_autograd(mask))
    assert alike(numbers(_autograd(mask, change)), expected), "the gradients are of another mask than O"


@triton.jit
def _near(b, h, r, c):
    return tl.abs(r - c) < REACH


@triton.jit
def _added(S, h, r, c):
    return S + tl.where(tl.abs(r - c) < REACH, 1.0, 0.0)


@triton.jit
def _slope(S, h, r, c):
    return 1.0


REACH = tl.constexpr(30)


def _reach():
    return REACH.value


KERNELS = {
    "hide": lambda: masks.from_function(lambda r, c: abs(r - c) < _reach(), kernel=_near),
    "score": lambda: masks.score(
        lambda S, h, r, c: S + (abs(r - c) < _reach()) * 1.0, lambda S, h, r, c: 1.0, kernel=(_added, _slope)
    ),
}


@pytest.mark.skipif(not kernels.INTERPRETED, reason="a compiled kernel has its constants compiled in")
@pytest.mark.parametrize("what", KERNELS)
def test_the_constants_of_a_kernel_are_those_of_the_call(what, monkeypatch):
    asked = {name: ask for name, ask in ASKED.items() if name not in ("cost", "MaskLab")}
    asked["decode"] = lambda mask: decode.attention(Q[:, :, -2:], K, V, mask=mask)
    mask = KERNELS[what]()
    before = {name: numbers(ask(mask)) for name, ask in asked.items()}
    monkeypatch.setitem(globals(), "REACH", tl.constexpr(5))
    now = {name: numbers(ask(mask)) for name, ask in asked.items()}
    fresh = {name: numbers(ask(KERNELS[what]())) for name, ask in asked.items()}
    assert not [name for name in asked if alike(before[name], fresh[name])], "these do not see the constant at all"
    assert not [name for name in asked if not alike(now[name], fresh[name])], "these go by the constant before"


def test_each_number_that_a_function_has_is_looked_up():
    def made(default=30, keyword=1):
        def f(r, c, width=default, *, more=keyword):
            return abs(r - c) < width + more

        return f

    functions = [made(), made(5), made(keyword=2)]
    functions += [functools.partial(made(), **given) for given in ({"width": 3}, {"width": 4}, {"more": 4})]
    found = [looked_up(f) for f in functions]
    assert None not in found and len(set(found)) == len(found) and looked_up(made()) == found[0]


def test_a_function_of_numbers_is_asked_once_and_one_of_objects_in_each_call():
    ids, width = BEFORE.copy(), 7
    of_numbers = lambda r, c: (c <= r) & (abs(r - c) < width)  # noqa: E731
    of_objects = lambda r, c: same(ids, r, c)  # noqa: E731
    assert looked_up(of_numbers) is not None and looked_up(of_objects) is None
    given = _given()
    mask = masks.from_function(of_numbers)
    forward.attention(*given, mask=mask)
    kept = forward.PLANS.of(mask)
    assert len(kept) == 1
    forward.attention(*given, mask=mask)
    assert forward.PLANS.of(mask) is kept and len(kept) == 1, "a mask of numbers is prepared again for each call"
