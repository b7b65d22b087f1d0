"""A metered array counts everything that is loaded from it, however that is done."""

import weakref

import numpy as np
import pytest

from flashlib.checks.harness.metered import MeteredArray, measured_memory

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    "load",
    [
        *(
            np.array,
            np.asarray,
            np.copy,
            np.sum,
            list,
            lambda x: x.copy(),
            lambda x: x.tolist(),
            lambda x: x.max(axis=1),
        ),
        *(
            lambda x: x + 1,
            lambda x: 1 + x,
            lambda x: x @ np.ones(3),
            lambda x: np.ones(4) @ x,
            lambda x: np.exp(x),
        ),
        *(lambda x: np.concatenate([x]), lambda x: x[:], lambda x: x.T[:], lambda x: x.reshape(-1)[:], np.vstack),
        *(lambda x: [row for row in x], lambda x: x.take(range(4), axis=0), lambda x: np.einsum("ij->j", x)),
        *(lambda x: [x[n, m] for n in range(4) for m in range(3)], lambda x: [x.item(n) for n in range(12)]),
    ],
)
def test_every_way_of_loading_all_is_seen(load):
    metered = MeteredArray(X)
    load(metered)
    assert (metered.reads >= 1).all() and metered.loads.read >= 12


@pytest.mark.parametrize(
    "ask", [len, np.empty_like, np.zeros_like, np.shape, repr, lambda x: x.shape, lambda x: x.T, lambda x: x.dtype]
)
def test_looking_up_its_shape_loads_nothing(ask):
    metered = MeteredArray(X)
    ask(metered)
    assert not metered.loads.times and not metered.reads.any()


def test_a_slice_is_an_array_and_is_counted():
    metered = MeteredArray(X)
    tile = metered[1:3]
    assert type(tile) is np.ndarray and np.array_equal(tile, X[1:3])
    assert (metered.loads.most, metered.loads.read, metered.loads.times) == (6, 6, 1)
    assert metered.reads.tolist() == [[0] * 3, [1] * 3, [1] * 3, [0] * 3]
    metered[1:3]
    assert metered.loads.read == 6, "asked for once more, straight after"
    metered[0], metered[1:3]
    assert metered.loads.read == 15


def test_what_is_held_at_once_is_counted():
    metered = MeteredArray(X)
    for n in range(4):
        row = metered[n]
    del row
    assert metered.loads.held <= 6, "the next row is loaded before the last one is let go"
    rows = [metered[n] for n in range(4)]
    assert metered.loads.held == 12 and len(rows) == 4


def test_counting_takes_no_memory_whatever_else_the_process_watches():
    watched = [np.empty(0) for _ in range(2000)]
    others = [weakref.finalize(x, len, ()) for x in watched]
    metered = MeteredArray(X)
    _, most = measured_memory(lambda: [metered[n % 4].size for n in range(5000)] and None, enough=0)
    for other in others:
        other.detach()
    assert most < 60_000, "only the list, each element of which takes 8 bytes"


def test_stores_are_counted_and_the_given_array_does_not_change():
    metered = MeteredArray(X)
    metered[0] = 7
    metered += 1
    assert metered.writes[0].tolist() == [2, 2, 2] and metered.writes[1].tolist() == [1, 1, 1]
    assert X[0, 0] == 0 and metered[0, 0] == 8


def test_memory_is_measured_again_if_it_seems_too_much():
    sizes = iter([10**6, 10**5])
    total, most = measured_memory(lambda: np.zeros(next(sizes)).sum(), enough=10**6)
    assert total == 0 and 8e5 <= most < 9e5
