"""The stand-in for torch computes what torch does, bit by bit where it can, and says what it lacks."""

import copy
import pickle

import numpy as np
import pytest
import torch

from tests.web import torch_calls
from web.live import beside
from web.live.kernel_files import STAND_INS

page_torch = beside.loaded("page_torch")
FLOATS = "float32", "float16", "bfloat16", "float64"
WHOLE = "int64", "int32", "int8", "uint8"
NEAR = 3e-7  # of 1, and of a number
EPS = {"bfloat16": 2**-7, "float16": 2**-10}


def numbers(rng, plain):
    """Return x (3, 5), y (5,) and i (3, 5): plain ones are above 0."""
    x, y = rng.standard_normal((3, 5)), rng.standard_normal(5)
    if plain:
        return np.abs(x) + 0.1, np.abs(y) + 0.1, rng.integers(0, 7, (3, 5))
    x[0, 1], x[1, 1], x[2, 3], y[2] = 0, np.inf, 0.1, -0.0
    return x, y, rng.integers(0, 7, (3, 5))


def evaluated(t, call, arrays, kind, whole="int64"):
    """Return what a call gives with torch or its stand-in."""
    x, y, i = (t.from_numpy(array.copy()) for array in arrays)
    t.manual_seed(3)
    names = {"x": x.to(getattr(t, kind)), "y": y.to(getattr(t, kind)), "i": i.to(getattr(t, whole)), "t": t}
    return eval(call, names | {"g": t.Generator().manual_seed(5)})


def plain(t, result):
    """Return a result in a form that can be compared, and the bits of its numbers, without those of NaN."""
    if not hasattr(result, "stride"):
        return (result if isinstance(result, bool | int | float | list) else str(result)), np.zeros(0), np.zeros(0)
    kept = result.contiguous()
    bits = np.array(kept.view(getattr(t, f"int{8 * kept.itemsize}") if kept.dtype != t.bool else t.bool).numpy())
    values = np.array(kept.double().numpy())
    said = str(result.dtype), tuple(result.shape), steps(result), np.isnan(values).tolist()
    return said, bits[~np.isnan(values)], values[~np.isnan(values)]


def steps(X):
    """Return the strides of the axes that have more than one element, if it has any."""
    return tuple(step for n, step in zip(X.shape, X.stride(), strict=True) if n > 1) if X.numel() else ()


def both(call, arrays, kind="float32", whole="int64"):
    """Return what torch and its stand-in give."""
    return [plain(t, evaluated(t, call, arrays, kind, whole)) for t in (torch, page_torch)]


def assert_equal(call, *given):
    (said, bits, _), (page_said, page_bits, _) = both(call, *given)
    assert said == page_said and np.array_equal(bits, page_bits), call


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FLOATS)
def test_most_calls_give_the_same_bits(kind, rng):
    arrays = numbers(rng, False)
    for call in torch_calls.EXACT:
        assert_equal(call, arrays, kind)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_numbers_of_16_bits_are_rounded_alike(kind, rng):
    arrays = numbers(rng, True)
    for call in torch_calls.ROUNDED:
        assert_equal(call, arrays, kind)


@pytest.mark.parametrize("whole", WHOLE)
def test_calls_of_whole_numbers_give_the_same_bits(whole, rng):
    arrays = numbers(rng, False)
    for call in torch_calls.WHOLE:
        assert_equal(call, arrays, "float32", whole)


def test_random_numbers_are_the_same(rng):
    for call in torch_calls.RANDOM:
        assert_equal(call, numbers(rng, True))


@pytest.mark.parametrize("kind", FLOATS)
def test_other_calls_give_nearly_the_same(kind, rng):
    arrays = numbers(rng, True)
    for call in torch_calls.NEAR:
        (said, _, values), (page_said, _, page_values) = both(call, arrays, kind)
        assert said == page_said, call
        near = next((eps for name, eps in EPS.items() if name in str(said)), NEAR)
        np.testing.assert_allclose(page_values, values, near, near, err_msg=call)


def test_every_float_is_converted_to_the_same_bits(rng):
    given = rng.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    for kind in FLOATS:
        (_, bits, _), (_, page_bits, _) = both("x", (given, given, np.zeros(1, int)), kind)
        assert len(bits) > 190_000 and np.array_equal(bits, page_bits), kind


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_8_bits_are_those_of_torch(kind, rng):
    given = rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    given[:1000] = rng.standard_normal(1000) * np.repeat([1, 300, 0.002, 40000], 250)
    given[1000:1006] = 464, 465, -464, 61440, 61441, -0.0
    own, page = (t.from_numpy(given).to(getattr(t, kind)) for t in (torch, page_torch))
    assert np.array_equal(own.view(torch.uint8).numpy(), page.view(page_torch.uint8).numpy())
    assert page_torch.finfo(page.dtype).max == torch.finfo(own.dtype).max
    codes = np.arange(256, dtype=np.uint8)
    own, page = (t.from_numpy(codes).view(getattr(t, kind)).float().numpy() for t in (torch, page_torch))
    np.testing.assert_array_equal(own, page)


def raised(t, call, arrays):
    with pytest.raises(Exception) as error:
        evaluated(t, call, arrays, "float32")
    return error.type.__name__, str(error.value)


def test_what_torch_refuses_is_refused_in_its_words(rng):
    arrays = numbers(rng, True)
    for call in torch_calls.REFUSED:
        assert raised(torch, call, arrays) == raised(page_torch, call, arrays), call


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_it_has_no_names_that_torch_lacks():
    assert not public(dir(page_torch.Tensor)) - public(dir(torch.Tensor))
    own = {path.stem for path in (STAND_INS / "torch").glob("*.py")}
    assert not public(vars(page_torch)) - public(dir(torch)) - own


@pytest.mark.parametrize(
    "call, said",
    [
        ("t.svd(x)", "no torch.svd"),
        ("t.zeroes(3)", "no torch.zeroes; the nearest name that it has is torch.zeros"),
        ("x.soft_max(1)", "no Tensor.soft_max; the nearest name that it has is Tensor.softmax"),
        ("t.nn.Linear(3, 4)", "no torch.nn.Linear"),
        (
            "exec('from page_torch.nn.functional import elus')",
            "no torch.nn.functional.elus; the nearest name that it has is torch.nn.functional.elu",
        ),
        ("exec('from page_torch import vmap')", "no torch.vmap"),
        ("exec('import page_torch.distributed')", "no module torch.distributed"),
        ("t.cuda.synchronize()", "no torch.cuda.synchronize"),
        ("t.zeros(3, device='cuda')", "no device 'cuda': it has the CPU only"),
    ],
)
def test_what_it_lacks_is_named(call, said, rng):
    _, sentence = raised(page_torch, call, numbers(rng, True))
    assert sentence.startswith("the stand-in for torch in this page has " + said)


@pytest.mark.parametrize(
    "call",
    ["x.requires_grad_()", "t.zeros(3, requires_grad=True)", "t.randn(3, requires_grad=True)", "x.backward()"],
)
def test_gradients_are_refused(call, rng):
    kind, sentence = raised(page_torch, call, numbers(rng, True))
    assert (kind, sentence) == ("RuntimeError", "the stand-in for torch in this page computes no gradients")


@pytest.mark.parametrize("t", [torch, page_torch], ids=["torch", "stand-in"])
def test_copies_of_a_tensor_have_memory_of_their_own(t):
    X = t.arange(6).reshape(2, 3).T.bfloat16()
    for copied in (copy.deepcopy(X), pickle.loads(pickle.dumps(X)), X.clone()):
        assert copied.dtype == X.dtype and copied.data_ptr() != X.data_ptr() and t.equal(copied, X)
    assert pickle.loads(pickle.dumps(X.dtype)) is X.dtype
    for kind in (t.Tensor, t.dtype, t.device, t.Size):
        assert f"{kind.__module__}.{kind.__name__}" == f"{t.__name__}.{kind.__name__}"


def test_a_tensor_is_not_made_by_its_class():
    with pytest.raises(TypeError, match=r"no torch.Tensor\(...\): write torch.tensor\(...\)"):
        page_torch.Tensor([1.0])


@pytest.mark.parametrize("t", [torch, page_torch], ids=["torch", "stand-in"])
def test_more_memory_than_there_is_is_refused(t):
    with pytest.raises(RuntimeError, match="can't allocate memory: you tried to allocate 1125899906842624 bytes"):
        t.empty(2**48)


def test_it_says_what_it_is():
    assert page_torch.__version__ == "stand-in"
    assert not page_torch.cuda.is_available() and not page_torch.is_grad_enabled()


@pytest.mark.parametrize("t", [torch, page_torch], ids=["torch", "stand-in"])
def test_tensors_share_memory_with_arrays_and_with_views_of_them(t):
    array = np.arange(12.0).reshape(3, 4)[:, ::2]
    X = t.from_numpy(array)
    X[1, 1] = 7
    assert array[1, 1] == 7 and X.stride() == (4, 2)
    X.T[0, 2] = 5
    assert array[2, 0] == 5 and X[2].numpy()[0] == 5
    assert X[1:].data_ptr() - X.data_ptr() == 32
    written = X._version
    X.add_(1)
    assert X._version == written + 1 and array[1, 1] == 8


@pytest.mark.parametrize("t", [torch, page_torch], ids=["torch", "stand-in"])
def test_a_mode_sees_the_calls_that_a_program_makes_itself(t):
    names = []

    class Names(t.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), options=None):
            names.append(function.__name__)
            return function(*arguments, **(options or {}))

    X = t.ones(2)
    with Names():
        Y = t.zeros_like(X) + 1
        Y.softmax(0)
        Y[0] = t.Tensor.new_empty(Y, 1)[0]
    assert names == ["zeros_like", "add", "softmax", "new_empty", "__getitem__", "__setitem__"]
