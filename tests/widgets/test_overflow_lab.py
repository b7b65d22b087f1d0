"""OverflowLab shows what flashlib computes in the dtype, and its thresholds are exact."""

import base64
import math
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import softmax
from flashlib.widgets import OverflowLab, widget
from flashlib.widgets.overflow_lab import overflow_lab
from flashlib.widgets.overflow_lab.row_softmax import COLUMNS, format_of, thresholds, x_range
from flashlib.widgets.overflow_lab.words import apart

NUMPY = ["float16", "float32", "float64"]
DTYPES = [*NUMPY, "bfloat16"]
DEFAULT = (-2, -1, 0)
REST = ["m", "l", "l_safe", "naive_total", "safe_total", "log_l", "log_l_safe"]


def received(lab):
    """What the page reads: the columns, (n,) each, and the numbers after them."""
    numbers = np.frombuffer(lab.result["buffer"], "<f8")
    n = lab.result["n"]
    columns = dict(zip(COLUMNS, numbers[: n * len(COLUMNS)].reshape(-1, n), strict=True))
    return columns | dict(zip(REST, numbers[n * len(COLUMNS) :], strict=True))


def same_bits(a, b):
    return np.array_equal(np.asarray(a, "<f8").view("u8"), np.asarray(b, "<f8").view("u8"))


def step(x, dtype, towards):
    if dtype != "bfloat16":
        return float(np.nextafter(np.dtype(dtype).type(x), np.dtype(dtype).type(towards)))
    torch = pytest.importorskip("torch")
    return torch.nextafter(*(torch.tensor(y, dtype=torch.bfloat16) for y in (x, towards))).item()


def exp(x, dtype):
    if dtype != "bfloat16":
        with np.errstate(all="ignore"):
            return float(np.exp(np.dtype(dtype).type(x)))
    torch = pytest.importorskip("torch")
    return torch.exp(torch.tensor(x, dtype=torch.bfloat16)).item()


@pytest.mark.parametrize("copies", [1, 7, 1024])
@pytest.mark.parametrize("dtype", NUMPY)
def test_numbers_are_those_of_flashlib(dtype, copies):
    low, high = x_range(format_of(dtype), DEFAULT)
    for x in [*np.linspace(low, high, 41), 0.1]:
        sent = received(OverflowLab(x, dtype, copies=copies))
        scores = np.dtype(dtype).type(x) + np.array(DEFAULT, dtype)
        row = np.tile(scores, copies)
        with np.errstate(all="ignore"):
            assert same_bits(sent["x"], scores)
            assert same_bits(sent["e"], np.exp(scores))
            assert same_bits(sent["shifted"], scores - scores.max())
            assert same_bits(sent["e_safe"], np.exp(scores - scores.max()))
            assert same_bits(sent["m"], scores.max())
            assert same_bits(sent["l"], np.exp(row).sum())
            assert same_bits(sent["l_safe"], np.exp(row - row.max()).sum())
            assert np.array_equal(sent["naive"], softmax.naive(row)[:3], equal_nan=True)
            assert same_bits(sent["safe"], softmax.safe(row)[:3])
        assert np.allclose(sent["exact"], softmax.safe(row.astype(np.float64))[:3], rtol=1e-12, atol=0)
        assert np.isclose(sent["log_l"], softmax.logsumexp(row.astype(np.float64)), rtol=1e-12, atol=1e-12)


def test_bf16_is_computed_by_torch_in_bf16():
    torch = pytest.importorskip("torch")
    for x in range(-110, 107, 7):
        sent = received(OverflowLab(x, "bfloat16", copies=5))
        row = torch.tensor([x], dtype=torch.bfloat16) + torch.tensor(DEFAULT * 5, dtype=torch.bfloat16)
        p = torch.exp(row)
        assert np.array_equal(sent["naive"], (p / p.sum())[:3].tolist(), equal_nan=True)
        safe = torch.exp(row - row.max())
        assert same_bits(sent["safe"], (safe / safe.sum())[:3].tolist())
        assert same_bits([sent["l"], sent["l_safe"]], [p.sum().item(), safe.sum().item()])


LAST_FINITE = {
    "float16": "11.0859375",
    "bfloat16": "88.5",
    "float32": "88.7228317",
    "float64": "709.782712893384",
}


@pytest.mark.parametrize("dtype, text", list(LAST_FINITE.items()))
def test_last_finite_argument_of_exp(dtype, text):
    if dtype == "bfloat16":
        pytest.importorskip("torch")
    x, shown = OverflowLab(1, dtype, offsets=[0]).result["thresholds"]["terms"]
    assert shown == text
    assert math.isfinite(exp(x, dtype))
    assert exp(step(x, dtype, math.inf), dtype) == math.inf


@pytest.mark.parametrize("copies", [1, 1000])
@pytest.mark.parametrize("offsets", [(0,), DEFAULT, (3.3, -7), (-1000, -998.5), (700, 701)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_is_well_at_a_threshold_and_not_one_step_further(dtype, offsets, copies):
    if dtype == "bfloat16":
        pytest.importorskip("torch")
    fine = {
        "positive": (-math.inf, lambda sent: sent["l"] > 0),
        "sum": (math.inf, lambda sent: math.isfinite(sent["l"])),
        "terms": (math.inf, lambda sent: np.isfinite(sent["e"]).all()),
    }
    lab = OverflowLab(sum(x_range(format_of(dtype), offsets)) / 2, dtype, offsets, copies)
    for name, (towards, holds) in fine.items():
        lab.x = lab.result["thresholds"][name][0]
        assert holds(received(lab)), name
        before = lab.x
        lab.x = step(lab.x, dtype, towards)
        assert lab.x != before
        assert not holds(received(lab)), name


def test_stepping_through_all_numbers_reaches_the_threshold():
    lab = OverflowLab(11.0)
    seen = []
    while np.isfinite(received(lab)["e"]).all():
        seen.append(lab.result["x"][0])
        lab.x = lab.result["neighbours"][1][0]
    assert seen == [11 + k / 128 for k in range(12)]  # fp16 has 2 ** 7 numbers in a unit there
    assert lab.result["x"] == [11.09375, "11.09375"]
    assert lab.result["neighbours"][0] == [11.0859375, "11.0859375"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_x_is_the_nearest_number_and_its_text_differs_from_its_neighbours(rng, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("torch")
    f = format_of(dtype)
    for asked in rng.uniform(*x_range(f, (0,)), size=50):
        lab = OverflowLab(asked, dtype, (0,))
        (x, text), (below, above) = lab.result["x"], lab.result["neighbours"]
        assert below[0] < x < above[0]
        assert step(x, dtype, math.inf) == above[0] and step(x, dtype, -math.inf) == below[0]
        assert abs(asked - x) <= min(abs(asked - below[0]), abs(asked - above[0]))
        assert f.nearest(float(text.replace("−", "-"))) == x
        assert len({text, below[1], above[1]}) == 3


@pytest.mark.parametrize(
    "setting, naive, safe, words",
    [
        (dict(x=3), "is right", "is right", "agree to 3 digits"),
        (dict(x=12), "has 1 NaN", "is right", "exp(12) = 162755 is more than 65504, the largest fp16 number"),
        (dict(x=12, copies=10), "has 10 NaN", "is right", "inf/inf is NaN, and finite/inf is 0"),
        (dict(x=13, offsets=(0, 1)), "has 2 NaN", "is right", "inf/inf is NaN."),
        (dict(x=11.0859375), "is all 0", "is right", "finite/inf is 0: all naive weights are 0"),
        (dict(x=2, copies=16384), "is all 0", "is right", "their sum, 182016, is more than 65504"),
        (dict(x=-18), "has 3 NaN", "is right", "l is 0, and 0/0 is NaN"),
        (dict(x=-16, offsets=(0, -0.5, -1)), "is wrong by 13%", "is right", "only the multiples of 5.960e−8"),
        (dict(x=0, offsets=(-20, 0)), "is right", "is right", "what underflows does not count"),
        (dict(x=0, offsets=(0,), copies=65536), "is all 0", "is all 0", "their sum, 65536, is more than 65504"),
        (dict(x=0, offsets=(0,), copies=65535), "is all 0", "is all 0", "65535"),  # rounded, 65536
        (dict(x=-1, offsets=(0,), copies=65536), "is right", "is all 0", "nor is their sum"),
        (dict(x=0, offsets=(0,), copies=65504), "is right", "is right", "agree in every digit"),
        (dict(x=89, dtype="float32"), "has 1 NaN", "is right", "the largest fp32 number"),
        (dict(x=3, dtype="float64"), "is right", "is right", "agree to 15 digits"),
    ],
    ids=str,
)
def test_sentences(setting, naive, safe, words):
    lab = OverflowLab(**setting)
    assert lab.result["verdicts"] == {"naive": naive, "safe": safe}
    assert words in lab.result["words"][0]
    assert lab.result["words"][1].startswith("Safe fails too" if safe == "is all 0" else "Safe: m = ")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_x_has_sentences(rng, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("torch")
    for n, scale in ((1, 3), (2, 300), (16, 0.1)):
        offsets = rng.normal(scale=scale, size=n).clip(-1000, 1000)
        for copies in (1, 1000, overflow_lab.MAX_SCORES // n):
            for x in rng.uniform(*x_range(format_of(dtype), offsets), size=2):
                lab = OverflowLab(x, dtype, offsets, copies)
                assert lab.problem == "" and all(len(text) < 250 for text in lab.result["words"])
                naive, safe = lab.result["words"]
                assert ("agree" in naive) == (lab.result["verdicts"] == {"naive": "is right", "safe": "is right"})
                assert safe.startswith("Safe fails too") == (lab.result["verdicts"]["safe"] == "is all 0")
                assert not any(word in naive + safe for word in ("nan", "Infinity", "e+"))
            lab.figure()


def test_numbers_compared_in_a_sentence_look_different():
    lab = OverflowLab(np.nextafter(709.782712893384, 800), "float64")
    assert (
        "exp(709.7827128933841) = 1.7976931348625e308 is more than 1.7976931348623e308" in lab.result["words"][0]
    )
    assert apart(1, 2) == ["1", "2"]
    assert apart(1.23456789, 1.23456799) == ["1.2345679", "1.2345680"]


def test_marks():
    marks = OverflowLab(12).result["marks"]
    assert marks["e"] == ["", "", "overflow"] and marks["l"] == ["overflow"]
    assert marks["naive"] == ["wrong"] * 3 and marks["naive_total"] == ["wrong"]
    assert marks["e_safe"] == marks["safe"] == [""] * 3 and marks["safe_total"] == [""]
    marks = OverflowLab(-17, offsets=(0, -0.5, -1, 2)).result["marks"]
    assert marks["e"] == ["subnormal", "underflow", "underflow", "subnormal"] and marks["l"] == ["subnormal"]
    assert marks["naive"] == ["wrong"] * 4 and marks["naive_total"] == [""]  # wrong, and they add up to 1
    marks = OverflowLab(0, offsets=(-20, 0)).result["marks"]
    assert marks["naive"] == marks["safe"] == ["underflow", ""]  # 2e-9 is 0 in fp16: right


def test_x_is_clamped_to_the_range_of_a_new_dtype():
    lab = OverflowLab(700, "float64")
    lab.dtype = "float16"
    assert lab.x == lab.result["range"][1] == lab.result["x"][0]
    assert lab.result == OverflowLab(lab.x).result
    lab.set_state({"dtype": "float32"})  # as a message from the page does
    assert lab.result == OverflowLab(lab.x, "float32").result


def test_every_answer_differs_from_the_last():
    """Otherwise it would not be sent, and the page would wait for it: 10 and numbers nearby are one fp16."""
    lab = OverflowLab(10)
    answers = []
    lab.observe(lambda change: answers.append(change.new["x"]), names="result")
    lab.x = 10.001
    lab.x = 10.002
    assert answers == [[10.0, "10"]] * 2


@pytest.mark.parametrize(
    "setting, words",
    [
        (dict(x=15), ["x is 15", "float16", "from -20 to 14"]),
        (dict(x=math.nan), ["x is nan", "from -20 to 14"]),
        (dict(x="11"), ["x is '11'", "pass a number from -20 to 14 for float16"]),
        (dict(x=True), ["x is True"]),
        (dict(x=np.array([1.0])), ["x is array([1.])"]),
        (dict(dtype="int8"), ["dtype is 'int8'", "'float16', 'bfloat16', 'float32', 'float64'"]),
        (dict(dtype=None), ["dtype is 'None'"]),
        (dict(offsets=()), ["offsets has 0 numbers", "1 to 16"]),
        (dict(offsets=range(17)), ["offsets has 17 numbers", "copies"]),
        (dict(offsets=(0, math.inf)), ["offsets is (0, inf)", "-1000 to 1000"]),
        (dict(offsets=(0, 1001)), ["-1000 to 1000"]),
        (dict(offsets="ab"), ["offsets is 'ab'"]),
        (dict(offsets=3), ["offsets is 3"]),
        (dict(copies=0), ["copies is 0", "from 1 to 21845"]),
        (dict(copies=2.5), ["copies is 2.5"]),
        (dict(copies=21846), ["copies is 21846", "from 1 to 21845", "65536 scores"]),
    ],
    ids=lambda x: str(x) if isinstance(x, dict) else None,
)
def test_bad_input_is_reported_in_the_widget(setting, words):
    lab = OverflowLab(**setting)
    assert all(word in lab.problem for word in words), lab.problem
    assert lab.problem.endswith(".") and lab.result == {}
    assert repr(lab) == f"OverflowLab({lab.problem})"
    assert "image/png" not in lab._repr_mimebundle_()[0]


@pytest.mark.parametrize(
    "name, value, words",
    [("x", 15.0, "x is 15.0"), ("copies", 0, "copies is 0"), ("dtype", "int8", "dtype is 'int8'")],
)
def test_a_later_request_that_is_not_accepted_is_refused(name, value, words):
    lab = OverflowLab(9, copies=2)
    before, refusals = lab.result, []
    lab.observe(lambda change: refusals.append(change.new), names="refused")
    for _ in range(2):
        lab.set_state({name: value})
        assert words in lab.refused and lab.result == before
        assert getattr(lab, name) == before["setting"][name]
    assert [words in refusal for refusal in refusals].count(True) == 2  # the refusal is repeated with the request
    lab.x = 8
    assert lab.refused == "" and lab.result["x"] == [8.0, "8"]


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), "float32"], ids=repr)
def test_dtypes_are_accepted_in_several_forms(dtype):
    assert OverflowLab(1, dtype).result == OverflowLab(1, "float32").result


def test_torch_dtype():
    torch = pytest.importorskip("torch")
    assert OverflowLab(1, torch.bfloat16).dtype == "bfloat16"


def test_missing_torch_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    format_of.cache_clear()
    lab = OverflowLab()
    lab.set_state({"dtype": "bfloat16"})
    assert "torch is not installed" in lab.refused and lab.dtype == "float16"
    assert "torch is not installed" in OverflowLab(dtype="bfloat16").problem


@pytest.mark.process
def test_torch_is_imported_for_bf16_only_and_its_absence_is_reported():
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("torch is blocked", name="torch")
sys.meta_path.insert(0, Block())
from flashlib.widgets.overflow_lab.overflow_lab import OverflowLab
lab = OverflowLab()
assert not lab.problem
lab.set_state({"dtype": "bfloat16"})
assert "torch is not installed" in lab.refused and lab.dtype == "float16", lab.refused
lab = OverflowLab(dtype="bfloat16")
assert "torch is not installed" in lab.problem and lab.problem.count(".") == 1, lab.problem
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=widget.FOLDER, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_repr_is_short_and_in_ascii():
    assert repr(OverflowLab()) == "OverflowLab(x=11, dtype='float16', 3 scores: naive is all 0, safe is right)"
    text = repr(OverflowLab(-18, copies=2))
    assert text == "OverflowLab(x=-18, dtype='float16', 6 scores: naive has 6 NaN, safe is right)"


@pytest.mark.parametrize("setting", [{}, dict(x=-17, offsets=range(-15, 1)), dict(x=0, copies=16384)], ids=str)
def test_picture_for_viewers_without_a_kernel(setting):
    lab = OverflowLab(**setting)
    data = lab._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(lab)
    png = base64.b64decode(data["image/png"])
    assert png.startswith(b"\x89PNG") and len(png) < 60_000
    assert png == OverflowLab(**setting).figure().png()
    assert png != OverflowLab(**setting | {"x": 5}).figure().png()


def test_thresholds_are_searched_once():
    lab = OverflowLab(3, copies=4)
    before = thresholds.cache_info().misses
    lab.x, lab.x = 4, 5
    assert thresholds.cache_info().misses == before
    lab.copies = 12345
    assert thresholds.cache_info().misses == before + 1


def test_the_row_has_a_maximum_length():
    assert OverflowLab(0, copies=overflow_lab.MAX_SCORES // 3).problem == ""
