"""A value that a rank returns arrives unchanged, and nothing that arrives is run as code."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from flashlib.ring.processes import packing  # noqa: E402
from flashlib.types import Attention, Grads  # noqa: E402

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64]


def there_and_back(value):
    return packing.unpack(packing.pack(value))


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "§ rank", [], (), {}, [1, (2, [None])], {"a": (1, {2: "b"})}]
)
def test_plain_values(value):
    found = there_and_back(value)
    assert found == value and type(found) is type(value)


def test_infinities_and_nan():
    found = there_and_back([float("inf"), float("-inf"), float("nan")])
    assert found[:2] == [float("inf"), float("-inf")] and np.isnan(found[2])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7,), (5, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_any_dtype_and_shape(dtype, shape):
    X = (torch.rand(shape) * 9).to(dtype)
    found = there_and_back(X)
    assert found.dtype == dtype and found.shape == X.shape and torch.equal(found, X)


def test_views_arrive_as_values_without_a_gradient():
    X = torch.arange(12.0, requires_grad=True).reshape(3, 4)
    for view in (X.T, X[1], X[:, ::3], X.detach().to(torch.complex64).conj()):
        found = there_and_back(view)
        assert torch.equal(found, view) and not found.requires_grad
    found[0] = 0  # it is writable


def test_arrays_and_numpy_scalars():
    for X in (np.arange(6, dtype=np.int16).reshape(2, 3).T, np.zeros((0, 2)), np.array(["a", "bc"])):
        found = there_and_back(X)
        assert found.dtype == X.dtype and np.array_equal(found, X)
    number = there_and_back(np.float32(1.5))
    assert number == 1.5 and type(number) is np.float32


def test_tensors_in_a_list_keep_their_order():
    found = there_and_back([torch.ones(3), {"O": np.arange(5)}, (torch.zeros(2, dtype=torch.bfloat16), 4)])
    assert torch.equal(found[0], torch.ones(3)) and np.array_equal(found[1]["O"], np.arange(5))
    assert torch.equal(found[2][0], torch.zeros(2, dtype=torch.bfloat16)) and found[2][1] == 4


def test_attention_and_grads():
    found = there_and_back(Attention(torch.ones(2), torch.zeros(1)))
    assert type(found) is Attention and torch.equal(found.O, torch.ones(2))
    assert type(there_and_back(Grads(1, 2, 3))) is Grads


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, lambda: 0, np.array([None]), torch.ones(2).to_sparse(), torch.float32]
)
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match="a rank returned .*not sent"):
        packing.pack([1, value])


def test_a_pickle_is_not_loaded():
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("loaded",)

    with pytest.raises(Exception, match="^(?!loaded)"):
        packing.unpack(pickle.dumps(Trap()))
