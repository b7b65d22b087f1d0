"""HBM counts the bytes that are moved, changes no result, and agrees with the closed forms to the byte."""

import numpy as np
import pytest

from flashlib import cost, naive, tiled
from flashlib.memory import HBM
from flashlib.types import Traffic
from tests import masked, oracle


def test_a_slice_is_a_load_and_an_assignment_a_store():
    (X,) = HBM.put(np.arange(12.0).reshape(4, 3))
    tile = X[1:3]
    assert type(tile) is np.ndarray and X.traffic == Traffic(read=48)
    X[:2] = 0
    assert X.traffic == Traffic(read=48, written=48)
    _ = X[0, 0], X[[0, 2]], X[X[:, 0] > 100]
    assert X.traffic == Traffic(read=48 + 8 + 48 + 32, written=48)


def test_arithmetic_on_whole_arrays_loads_them():
    X, Y = HBM.put(np.ones((4, 3)), np.ones((4, 3)))
    Z = X @ Y.T
    assert type(Z) is np.ndarray and X.traffic == Traffic(read=192)
    X += 1
    assert isinstance(X, HBM) and X.traffic == Traffic(read=288, written=96)
    for load in (np.exp, np.sum, lambda x: x.max(axis=1), lambda x: np.concatenate([x]), lambda x: x.astype("f4")):
        before = X.traffic.read
        assert not isinstance(load(X), HBM) and X.traffic.read == before + 96
    assert sum(row.sum() for row in X) == 24 and X.traffic.read == before + 192


def test_what_was_loaded_is_a_copy():
    (X,) = HBM.put(np.ones((4, 3)))
    tile = X[:2]
    tile *= 5
    np.testing.assert_array_equal(X.view(np.ndarray), np.ones((4, 3)))
    assert X.traffic == Traffic(read=48)


def test_results_put_into_memory_are_stores():
    X, Y = HBM.put(np.ones((3, 3)), np.zeros((3, 3)))
    assert np.dot(X, X, out=Y) is Y and X.traffic == Traffic(read=144, written=72)
    np.copyto(Y, 7.0, where=[True, False, False])
    assert Y.view(np.ndarray)[0].tolist() == [7, 3, 3] and X.traffic.written == 144
    Y.fill(0)
    assert not Y.view(np.ndarray).any() and X.traffic.written == 216


def test_methods_load():
    plain = ("argmax", "argmin", "argsort", "copy", "flatten", "tolist")
    given = {"astype": ["f4"], "dot": [np.ones(3)], "repeat": [2], "take": [[0, 5]]}
    for method, arguments in (dict.fromkeys(plain, ()) | given).items():
        (X,) = HBM.put(np.ones((4, 3)))
        assert not isinstance(getattr(X, method)(*arguments), HBM) and X.traffic == Traffic(read=96), method
    X, Y = HBM.put(np.ones((4, 3)), np.ones(3))
    assert X.dot(Y).tolist() == [3] * 4 and X.traffic == Traffic(read=96 + 24)


def test_outputs_allocated_like_the_inputs_count_too():
    (X,) = HBM.put(np.ones((4, 3)))
    O = np.empty_like(X, shape=5, dtype="f4")
    assert isinstance(O, HBM) and X.traffic == Traffic()
    O[:] = 1
    assert X.traffic == Traffic(written=20)
    np.zeros_like(X)
    assert X.traffic == Traffic(written=20 + 96)


def test_printing_moves_nothing():
    (X,) = HBM.put(np.ones(3))
    assert "1." in repr(X) and "1." in str(X) and X.traffic == Traffic()


def test_only_arrays_can_be_put():
    with pytest.raises(TypeError, match="HBM.put was given a list"):
        HBM.put([1.0])


def random_case(rng):
    N_q, N_k, B_r, B_c = (int(n) for n in rng.integers([0, 0, 1, 1], [20, 20, 9, 9]))
    return N_q, N_k, int(rng.integers(1, 6)), B_r, B_c, str(rng.choice(["float16", "float32", "float64"]))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", masked.KINDS)
def test_metered_bytes_equal_the_closed_forms(causal, name, rng):
    for _ in range(8):
        N_q, N_k, d, B_r, B_c, dtype = case = random_case(rng)
        mask = {"causal": causal, "mask": masked.draw(name, rng, N_q, N_k).mask}
        arrays = oracle.inputs(rng, N_q, N_k, d, dtype)
        tiles = {"B_r": B_r, "B_c": B_c}
        runs = [
            (naive.attention, {}, cost.standard_traffic(N_q, N_k, d, dtype=dtype)),
            (tiled.attention, tiles | {"order": "fa1"}, cost.fa1_traffic),
            (tiled.attention, tiles | {"order": "fa2"}, cost.fa2_traffic),
        ]
        for attention, options, expected in runs:
            if callable(expected):
                expected = expected(N_q, N_k, d, **tiles, dtype=dtype, **mask)
            placed = HBM.put(*arrays)
            metered = attention(*placed, **mask, **options)
            assert placed[0].traffic == expected, (options, case)
            plain = attention(*arrays, **mask, **options)
            np.testing.assert_array_equal(metered.O.view(np.ndarray), plain.O)
            np.testing.assert_array_equal(metered.lse.view(np.ndarray), plain.lse)
