"""Masks of new kinds, derived from Mask outside the package: each is right everywhere, or is refused."""

import dataclasses
import types

import numpy as np
import pytest

from flashlib import masks, naive, tiled
from tests import masked, oracle
from tests.masks.test_masks import problem


def derived(base=masks.Mask, **methods):
    """Return a class of masks, defined anew."""
    return types.new_class("Mine", (base,), exec_body=lambda names: names.update(methods))


def every_third(self, place, r, c):
    return (r - c) % 3 == 0


def near(self, place, r):
    return r.clip(0, place.N_k), (r + 2).clip(0, place.N_k)


def twice(self, S, place, r, c):
    return 2 * S


def two(self, S, place, r, c):
    return 2.0


REFUSED = {
    "a kind that kernels know": (
        lambda: derived(masks.Window, sees=every_third),
        "Mine derives from Window and overrides sees, but algorithms also use other methods of Window: derive",
    ),
    "what a kind does to scores": (
        lambda: derived(masks.Softcap, score=twice, slope=two),
        "Mine derives from Softcap and overrides score, slope",
    ),
    "a new kind beside a known one": (
        lambda: types.new_class("Mine", (derived(sees=every_third), masks.Documents)),
        "Mine derives from Documents and overrides sees",
    ),
    "bounds alone": (lambda: derived(bounds=near), "Mine overrides bounds and not sees: override sees"),
    "a test of the kernels alone": (
        lambda: derived(device_test=lambda self, place: masks.DeviceTest("in_prefix", (3,))),
        "Mine overrides device_test and not sees: override sees",
    ),
    "a change of the kernels alone": (
        lambda: derived(
            device_change=lambda self, place, H: masks.DeviceChange("capped", "capped_slope", (2, 0.5))
        ),
        "Mine overrides device_change and not score: override score and slope too",
    ),
    "keys": (lambda: derived(keys=lambda self, place: None), "Mine overrides keys: override bounds"),
    "a score without a slope": (lambda: derived(score=twice), "Mine overrides score and not slope"),
    "a slope without a score": (lambda: derived(slope=two), "Mine overrides slope and not score"),
}


@pytest.mark.parametrize("define, words", REFUSED.values(), ids=REFUSED)
def test_a_class_that_would_be_ignored_is_refused_when_it_is_defined(define, words):
    with pytest.raises(TypeError, match=words):
        define()


def test_a_mask_whose_methods_are_set_on_the_object_is_refused():
    mask = masks.Mask()
    mask.sees = every_third
    for use in (lambda: naive.attention(*np.ones((3, 4, 2)), mask=mask), lambda: mask & masks.causal()):
        with pytest.raises(TypeError, match="sees is set on an object of Mask, and the algorithms use its class"):
            use()


def test_a_mask_without_a_hash_is_refused():
    mask = dataclasses.dataclass(derived(sees=every_third))()
    with pytest.raises(TypeError, match=r"must be hashable, and Mine is not .*write @dataclass\(eq=False\)"):
        tiled.attention(*np.ones((3, 4, 2)), mask=mask)


def test_bounds_of_a_different_sees_are_not_inherited(rng):
    of_near = derived(sees=lambda self, place, r, c: (r <= c) & (c < r + 2), bounds=near)
    other, again = derived(of_near, sees=every_third), derived(of_near, bounds=lambda self, place, r: None)
    seen = np.subtract.outer(np.arange(9) + 4, np.arange(13))
    for kind, expected in ((of_near, (-2 < seen) & (seen <= 0)), (other, seen % 3 == 0)):
        tiles = kind().on(9, 13)
        assert np.array_equal(tiles.seen(*tiles.all), expected)
        assert masked.count(kind(), 9, 13) == expected.sum()
    assert of_near().on(9, 13).keys is not None and other().on(9, 13).keys is again().on(9, 13).keys is None


def test_device_functions_of_a_different_sees_or_score_are_not_inherited():
    test, change = masks.DeviceTest("in_prefix", (3,)), masks.DeviceChange("capped", "capped_slope", (2, 0.5))
    place = masks.Place(9, 13)
    first = derived(
        sees=lambda self, place, r, c: (c <= r) | (c < 3), score=twice, slope=two,
        device_test=lambda self, place: test, device_change=lambda self, place, H: change,
        band=lambda self: masks.Band(None, 0, 3),
    )  # fmt: skip
    assert first().device_test(place) is test and first().device_change(place, 1) is change
    of_sees, of_score = derived(first, sees=every_third), derived(first, score=twice, slope=two)
    assert of_sees().device_test(place) is of_sees().band() is None and of_sees().device_change(place, 1) is change
    assert of_score().device_test(place) is test
    with pytest.raises(TypeError, match="no kernel changes scores as Mine does"):
        of_score().device_change(place, 1)


def test_a_new_kind_may_hide_and_change_scores(rng):
    mask = derived(sees=every_third, score=lambda self, S, place, r, c: S * S / 2, slope=lambda self, S, *at: S)()
    case = masked.Case(mask, lambda r, c: (r - c) % 3 == 0, lambda s, r, c: s * s / 2)
    Q, K, V, dO = problem(rng, 11, 14)
    O, lse, grads = masked.attention(Q, K, V, case, dO=dO)
    for module, blocks in ((naive, {}), (tiled, {"B_r": 4, "B_c": 3})):
        given = module.attention(Q, K, V, mask=mask, **blocks)
        oracle.assert_close(given.O, O, rounding=1e-13)
        oracle.assert_close(given.lse, lse, rounding=1e-13)
        for X, exact in zip(module.backward(Q, K, V, O, lse, dO, mask=mask, **blocks), grads, strict=True):
            oracle.assert_close(X, exact, rounding=1e-8)


def test_mask_lab_counts_what_a_new_kind_sees():
    widgets = pytest.importorskip("flashlib.widgets", exc_type=ImportError)
    assert widgets.MaskLab(masked.Dilated(3), N_q=9, N_k=9, B_r=3, B_c=3).result["scores"]["seen"] == 27
