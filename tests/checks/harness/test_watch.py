"""What kernels do is seen: `flashlib.checks.harness.watch`."""

# ruff: noqa: I001  flashlib.kernels before triton
import pytest

pytest.importorskip("flashlib.kernels", exc_type=ImportError)  # no Triton, nothing to watch

import torch

from flashlib.checks.engine import Finding
from flashlib.checks.harness import launches
from flashlib.checks.harness.strided import Out
from flashlib.checks.harness.watch import _nearest_of, watched
from flashlib.kernels import DEVICE, INTERPRETED
from flashlib.kernels import softmax as ours
import triton
import triton.language as tl

interpreted = pytest.mark.skipif(not INTERPRETED, reason="compiled kernels are not watched")


@triton.jit
def copy(x, y, first, n, step, BLOCK: tl.constexpr):
    at = first + tl.arange(0, BLOCK)
    tl.store(y + at - first, tl.load(x + at * step, mask=at < n, other=0.0))


@triton.jit
def copy_too_late(x, y, first, n, step, BLOCK: tl.constexpr):
    at = first + tl.arange(0, BLOCK)
    tl.store(y + at - first, tl.where(at < n, tl.load(x + at * step), 0.0))


@triton.jit
def copy_by_block_pointer(x, y, n, BLOCK: tl.constexpr, CHECKED: tl.constexpr):
    block = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(y + tl.arange(0, BLOCK), tl.load(block, boundary_check=(0,) if CHECKED else ()))


@triton.jit
def add_to(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(x + at, 1.0, mask=at < n)


@triton.jit
def product(a, b, c, PRECISION: tl.constexpr, KEYWORD: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    if PRECISION is None:
        z = tl.dot(x, y)
    elif KEYWORD:
        z = tl.dot(x, y, input_precision=PRECISION)
    else:
        z = tl.dot(x, y, None, PRECISION)
    tl.store(c + at, z)


def vector(n, step=1):
    """Return n elements of a longer tensor, `step` apart."""
    return torch.zeros(64, device=DEVICE)[16:].as_strided((n,), (step,), 16)


def outside(kernel, n, *, first=0, step=1, end=None):
    x, y = vector(n, step), vector(8)
    with watched(x=x, y=y) as watch:
        kernel[(1,)](x, y, first, n if end is None else end, step, BLOCK=8)
    return watch.outside


@interpreted
@pytest.mark.parametrize("kernel", [copy, copy_too_late])
def test_lanes_that_are_all_inside_are_not_outside(kernel):
    assert outside(kernel, 8) == ""
    assert outside(kernel, 8, step=2) == ""


@interpreted
def test_a_lane_past_the_end_is_seen_and_a_masked_one_is_not():
    assert outside(copy, 5) == ""
    assert outside(copy, 5, end=6) == "x"
    assert outside(copy_too_late, 5) == "x"


@interpreted
def test_a_lane_before_the_start_is_seen():
    assert outside(copy, 8, first=-1) == "x"


@interpreted
def test_a_lane_between_rows_is_seen():
    X, Y = torch.zeros(8, 10, device=DEVICE)[:, :4], torch.zeros(32, device=DEVICE)
    with watched(X=X, Y=Y) as watch:
        copy[(1,)](X, Y, 10, 16, 1, BLOCK=4)
    assert watch.outside == ""
    with watched(X=X, Y=Y) as watch:
        copy[(1,)](X, Y, 10, 16, 1, BLOCK=8)
    assert watch.outside == "X"


@interpreted
def test_a_store_outside_is_seen():
    x, y = vector(8), vector(5)
    with watched(x=x, y=y) as watch:
        copy[(1,)](x, y, 0, 8, 1, BLOCK=8)
    assert watch.outside == "y"
    assert watch.stored


@interpreted
def test_an_address_far_away_is_not_touched():
    assert outside(copy, 1, step=1 << 28, end=8) == "x"


@interpreted
@pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
@pytest.mark.parametrize("checked", [True, False])
def test_block_pointers_are_watched(checked):
    x, y = vector(5), vector(8)
    with watched(x=x, y=y) as watch:
        copy_by_block_pointer[(1,)](x, y, 5, BLOCK=8, CHECKED=checked)
    assert watch.outside == ("" if checked else "x")


@interpreted
@pytest.mark.parametrize(("n", "name"), [(5, ""), (6, "x")])
def test_atomics_are_watched(n, name):
    x = vector(5)
    with watched(x=x) as watch:
        add_to[(1,)](x, n, BLOCK=8)
    assert watch.outside == name
    assert x.sum() == 5


@interpreted
@pytest.mark.parametrize(
    ("precision", "keyword", "rounded"),
    [
        (None, False, True),
        ("tf32", True, True),
        ("tf32", False, True),
        ("tf32x3", True, True),
        ("ieee", True, False),
        ("ieee", False, False),
    ],
)
def test_tf32_is_seen(precision, keyword, rounded):
    a, b, c = torch.ones(3, 16, 16, device=DEVICE)
    with watched(a=a, b=b, c=c) as watch:
        product[(1,)](a, b, c, precision, keyword)
    assert watch.tf32 == rounded
    with watched() as watch:
        product[(1,)](a.half(), b.half(), c, precision, keyword)
    assert not watch.tf32


@interpreted
def test_loads_are_counted():
    x, y = vector(5), vector(8)
    with watched(x=x, y=y) as watch:
        copy[(2,)](x, y, 0, 5, 1, BLOCK=8)
        copy_too_late[(1,)](x, y, 0, 5, 1, BLOCK=4)
    assert (watch.loads, watch.masked, watch.read) == ({"x": 3, "y": 0}, {"x": 2, "y": 0}, {"x": 14, "y": 0})


def test_launches_are_counted():
    x = vector(8)
    with watched(x=x) as watch:
        x + x
    assert (watch.launches, watch.ours) == (0, "")
    with watched(x=x) as watch:
        for _ in range(2):
            copy[(1,)](x, vector(8), 0, 8, 1, BLOCK=8)
    assert (watch.launches, watch.ours) == (2, "")
    with watched() as watch:
        ours.softmax(torch.zeros(2, 5, device=DEVICE))
    assert watch.ours == "_softmax"


def test_an_autotuned_kernel_runs():
    configs = [triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})]
    tuned = triton.autotune(configs, key=["n"])(copy)
    x, y = vector(5).fill_(1.0), vector(16)
    with watched(x=x, y=y) as watch:
        tuned[(1,)](x, y, 0, 5, 1)
    assert watch.launches
    assert y.sum() == 5


def test_everything_is_restored_afterwards():
    from triton.runtime import interpreter

    before = dict(vars(interpreter.InterpreterBuilder)), dict(vars(interpreter.GridExecutor))
    with pytest.raises(ZeroDivisionError), watched():
        1 / 0  # noqa: B018
    assert (dict(vars(interpreter.InterpreterBuilder)), dict(vars(interpreter.GridExecutor))) == before


@interpreted
def test_programs_and_products_are_counted():
    a, b, c = torch.ones(3, 16, 16, device=DEVICE)
    with watched(a=a, b=b) as watch:
        product[(3, 2)](a, b, c, "ieee", True)
    assert (watch.programs, watch.products) == (6, {(16, 16, 16): 6})


@interpreted
def test_a_load_whose_mask_hides_all_lanes_is_counted():
    x, y = vector(5), vector(16)
    with watched(x=x, y=y) as watch:
        copy[(1,)](x, y, 0, 5, 1, BLOCK=8)
    assert watch.idle == 0
    with watched(x=x, y=y) as watch:
        copy[(2,)](x, y, 8, 5, 1, BLOCK=8)
    assert watch.idle == 2


@interpreted
def test_whether_a_stray_load_has_a_mask_is_seen():
    """An error says "mask the load" only if there is no mask."""
    for kernel, masked in ((copy, True), (copy_too_late, False)):
        x, y = vector(5), vector(8)
        with watched(x=x, y=y) as watch:
            kernel[(1,)](x, y, 0, 6, 1, BLOCK=8)
        assert (watch.outside, watch.behind_mask) == ("x", masked)


@pytest.mark.parametrize(
    "at, name", [(0, "x"), (9, "x"), (10, "x"), (14, "x"), (15, "y"), (20, "y"), (29, "y"), (99, "y")]
)
def test_the_tensor_nearest_to_a_byte_is_named(at, name):
    assert _nearest_of([("x", 0, 10), ("y", 20, 30)], at) == _nearest_of([("y", 20, 30), ("x", 0, 10)], at) == name


@pytest.mark.parametrize(
    "at, strides, found",
    [
        ([-1], (3, 1), "written_outside"), ([4], (5, 1), "between"), ([-1, 4], (5, 1), "written_outside"),
        ([6], (3, 1), "one_past_end"), ([6, 7], (3, 1), "past_end"), ([3, 4], (5, 1), "between"),
        ([], (3, 1), None),
    ],
)  # fmt: skip
def test_the_finding_says_where_a_stray_store_was(at, strides, found):
    placed = launches._Placed(Out((2, 3), strides))
    placed.tensor.fill_(1)
    placed.memory[[placed.border + one for one in at]] = 7
    try:
        placed.check_outside("X")
    except Finding as finding:
        assert finding.id == found
    else:
        assert found is None


def test_the_finding_counts_the_missing_numbers_of_an_output():
    placed = launches._Placed(Out((2, 3)))
    placed.tensor[0] = 1
    with watched() as watch:
        watch.launches = 1
    found = launches._found(watch, {"X": placed}, False)
    assert (found.id, found.fields) == ("partly_written", {"name": "X", "n": 3, "size": 6})


def test_a_stray_load_is_called_masked_only_if_it_was():
    with watched() as watch:
        watch.masked["x"] = 1
        assert launches.outside_id(watch) == "outside"
        watch.behind_mask = True
        assert launches.outside_id(watch) == "outside_masked"
