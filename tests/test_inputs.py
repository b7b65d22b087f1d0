"""Wrong input is refused before any work, with an error that says what was given and what is accepted."""

import numpy as np
import pytest

from flashlib import naive, softmax, tiled
from flashlib.types import Step, Traffic

X = np.zeros((4, 2))
ATTENTIONS = {
    "naive": naive.attention,
    "tiled fa1": lambda *a, **k: tiled.attention(*a, order="fa1", **k),
    "tiled fa2": lambda *a, **k: tiled.attention(*a, order="fa2", **k),
    "steps": tiled.steps,  # at the call, not at the first step
}


@pytest.mark.parametrize("attention", ATTENTIONS.values(), ids=ATTENTIONS)
@pytest.mark.parametrize(
    "Q, K, V, options, error, words",
    [
        (X.tolist(), X, X, {}, TypeError, "Q is of type list; pass a plain NumPy array"),
        (X, X.astype(int), X, {}, TypeError, "K has dtype int64; accepted are float16, float32 and float64"),
        (X, X, X.astype("f4"), {}, TypeError, "V has dtype float32 and Q has float64"),
        (X[0], X, X, {}, ValueError, r"Q has shape \(2,\); expected 2 axes \(N, d\)"),
        (X[None], X, X, {}, ValueError, r"Q has shape \(1, 4, 2\); expected 2 axes"),
        (np.float64(1) * np.array(1.0), X, X, {}, (TypeError, ValueError), "Q"),
        (X, X, X[:3], {}, ValueError, r"K has shape \(4, 2\) and V \(3, 2\); they must be equal"),
        (X, X, X[:, :0], {}, ValueError, "but for the last axis, which is at least 1"),
        (X[:, :1], X, X, {}, ValueError, "the last axis, d, must be equal"),
        (X, X, X, {"mask": 1}, TypeError, "mask is of type int; pass one of flashlib.masks"),
        (X[:, :0], X[:, :0], X[:, :0], {}, ValueError, "at least 1"),
        (X, X, X, {"causal": 1}, TypeError, "causal is 1; pass True or False"),
        (X, np.ma.array(X), X, {}, TypeError, "K is of type MaskedArray"),
        (X, X, X, {"scale": 0}, ValueError, "scale is 0; pass a positive number from 1e-30 to 1e"),
        (X, X, X, {"scale": 10**400}, ValueError, "scale is 1000"),
        (X, X, X, {"scale": -1.0}, ValueError, "scale is -1.0; pass a positive number"),
        (X, X, X, {"scale": np.nan}, ValueError, "scale is nan"),
        (X, X, X, {"scale": "1"}, TypeError, "scale is '1'"),
    ],
)
def test_bad_input_is_refused(attention, Q, K, V, options, error, words):
    with pytest.raises(error, match=words):
        attention(Q, K, V, **options)


@pytest.mark.parametrize("name", ["B_r", "B_c"])
@pytest.mark.parametrize("size, error", [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)])
def test_bad_block_sizes_are_refused(name, size, error):
    with pytest.raises(error, match=f"{name} is {size}; accepted are whole numbers of at least 1"):
        tiled.attention(X, X, X, **{name: size})


def test_numpy_integers_are_block_sizes():
    tiled.attention(X, X, X, B_r=np.int64(2), B_c=np.int32(3))


@pytest.mark.parametrize("B_r, B_c", [(np.uint8(100), 64), (64, np.int8(100)), (np.uint8(200), np.uint8(200))])
@pytest.mark.parametrize("order", ["fa1", "fa2"])
def test_small_integers_of_numpys_do_not_overflow(B_r, B_c, order, rng):
    Q, K, V, dO = rng.standard_normal((4, 300, 2))
    small, plain = {"B_r": B_r, "B_c": B_c}, {"B_r": int(B_r), "B_c": int(B_c)}
    given, expected = (tiled.attention(Q, K, V, order=order, causal=True, **blocks) for blocks in (small, plain))
    assert all(map(np.array_equal, given, expected))
    both = (tiled.backward(Q, K, V, *given, dO, causal=True, **blocks) for blocks in (small, plain))
    assert all(map(np.array_equal, *both))
    assert np.array_equal(softmax.online_blocks(Q[:, 0], B_c=B_c), softmax.online_blocks(Q[:, 0], B_c=int(B_c)))


def test_blocks_are_counted_in_whole_numbers():
    cut = [slice(0, 100), slice(100, 200), slice(200, 300)]
    assert list(tiled.blocks(300, np.uint8(100))) == list(tiled.blocks(np.int16(300), np.int8(100))) == cut
    with pytest.raises(TypeError):
        list(tiled.blocks(4, 2.0))


def test_bad_order_is_refused():
    with pytest.raises(ValueError, match="order is 'fa3'; accepted are"):
        tiled.attention(X, X, X, order="fa3")


def test_outputs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"O has shape \(3, 2\)"):
        tiled.steps(X, X, X, O=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="lse has shape .* dtype float32; expected"):
        tiled.steps(X, X, X, lse=np.zeros(4, np.float32))


ROWS = {name: getattr(softmax, name) for name in ("naive", "safe", "logsumexp", "online", "summarise")}


@pytest.mark.parametrize("f", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize(
    "x, error, words",
    [
        ([1.0, 2.0], TypeError, "x is of type list"),
        (np.arange(3), TypeError, "x has dtype int64"),
        (X, ValueError, r"x has shape \(4, 2\); expected one row of scores"),
    ],
)
def test_bad_rows_are_refused(f, x, error, words):
    with pytest.raises(error, match=words):
        f(x)


@pytest.mark.parametrize("f", [softmax.weighted_sum, softmax.weighted_sum_normalised, softmax.summarise])
def test_bad_values_are_refused(f):
    with pytest.raises(ValueError, match=r"V has shape \(4, 2\); expected \(3, d\)"):
        f(np.zeros(3), X)
    with pytest.raises(TypeError, match="V has dtype float32 and x has float64"):
        f(np.zeros(4), X.astype("f4"))


def test_a_step_needs_five_values():
    step = Step(i=0, j=1, m=2, l=3, O_acc=4)
    assert step.S_ij is None and step.rows is None
    with pytest.raises(TypeError):
        Step(i=0, j=1, m=2, l=3)


def test_traffic_adds_up():
    assert Traffic(read=3, written=4).total == 7
