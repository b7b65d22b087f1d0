"""OnlineSoftmaxLab sends the scan of tiled.steps to the page, bit for bit."""

import math

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import softmax, tiled
from flashlib.widgets import OnlineSoftmaxLab
from flashlib.widgets.online_softmax_lab.scan import read, write

INF = math.inf
ROWS = {
    "one": [2.0],
    "increasing": np.arange(8.0),
    "decreasing": np.arange(8.0)[::-1],
    "equal": [3.0] * 5,
    "masked first": [-INF, -INF, 1.0, -INF, 3.0, 2.0],
    "masked all": [-INF] * 3,
    "far apart": [-1e308, 1e308, 5e-324, -INF, 1.7e308],
    "drifting": np.linspace(-2, 6, 64) + np.random.default_rng(0).normal(size=64),
}


@pytest.fixture(params=ROWS)
def x(request):
    return np.array(ROWS[request.param], np.float64)


def sent(lab):
    """The arrays that the page reads from the buffer, by name."""
    N, rows = lab.frames["N"], lab.frames["rows"]
    numbers = np.frombuffer(lab.frames["buffer"], "<f8")
    assert len(numbers) == (len(rows) + N) * N
    return {name: numbers[k * N : (k + 1) * N] for k, name in enumerate(rows)} | {
        "terms": numbers[len(rows) * N :].reshape(N, N)
    }


def same_bits(a, b):
    return np.array_equal(np.asarray(a, "<f8").view("u8"), np.asarray(b, "<f8").view("u8"))


@pytest.mark.filterwarnings("error")
def test_numbers_are_those_of_tiled_steps(x):
    scan = sent(OnlineSoftmaxLab(x))
    K = x[:, None]
    with np.errstate(over="ignore"):
        steps = list(tiled.steps(np.ones((1, 1)), K, np.ones_like(K), B_r=1, B_c=1, scale=1.0))
        weight = softmax.online(x)
    assert len(steps) == len(x)
    assert same_bits(scan["x"], x)
    for name in ("m_old", "m", "alpha", "l_old", "l"):
        assert same_bits(scan[name], [getattr(step, name)[0] for step in steps]), name
    assert same_bits(scan["p"], [step.P_ij[0, 0] for step in steps])
    assert same_bits(scan["kept"] + scan["p"], scan["l"])
    assert same_bits(scan["weight"], weight)
    assert not any(np.isnan(numbers).any() for numbers in scan.values())


def test_scan_without_the_rescale(x):
    scan = sent(OnlineSoftmaxLab(x))
    m, l_wrong = -INF, 0.0
    for j, x_j in enumerate(x.tolist()):
        if x_j > -INF:
            m = max(m, x_j)
            l_wrong = l_wrong + math.exp(x_j - m)
        assert math.isclose(scan["l_wrong"][j], l_wrong, rel_tol=1e-15)
        assert scan["l_wrong"][j] >= scan["l"][j] * (1 - 1e-15)
    weight = [math.exp(x_j - m) / l_wrong if x_j > -INF else 0 for x_j in x.tolist()]
    assert np.allclose(scan["weight_wrong"], weight, rtol=1e-14, atol=0)


def shifted(x):
    """exp(x_k - m) of the scores of x under their maximum, in plain Python."""
    m = max(x.tolist())
    return [0.0 if m == -INF else math.exp(x_k - m) for x_k in x.tolist()]


def test_terms_are_measured_against_the_maximum_of_their_row(x):
    scan = sent(OnlineSoftmaxLab(x))
    for j, terms in enumerate(scan["terms"]):
        assert np.allclose(terms[: j + 1], shifted(x[: j + 1]), rtol=1e-12, atol=0)
        assert np.isclose(terms.sum(), scan["l"][j], rtol=1e-14, atol=0)
        assert not terms[j + 1 :].any()


def test_errors_are_relative_to_the_exact_sum(x):
    scan = sent(OnlineSoftmaxLab(x))
    for j in range(len(x)):
        exact = math.fsum(shifted(x[: j + 1]))
        wrong = abs(scan["l_wrong"][j] - exact) / exact if exact else 0.0
        assert math.isclose(scan["error_wrong"][j], wrong, rel_tol=1e-9, abs_tol=1e-14)
    assert scan["error"].max() < 1e-14


def test_what_the_widget_teaches():
    increasing, decreasing = (sent(OnlineSoftmaxLab(ROWS[name])) for name in ("increasing", "decreasing"))
    assert increasing["l_wrong"][-1] == 8  # each score was the maximum when it came, so each added exp(0)
    assert decreasing["error_wrong"].max() < 1e-15  # one lucky row does not show the mistake
    assert (decreasing["alpha"][1:] == 1).all()
    for lab in (OnlineSoftmaxLab(ROWS["increasing"]), OnlineSoftmaxLab(ROWS["drifting"])):
        assert math.isclose(lab.frames["weight"], 1, rel_tol=1e-14)
        assert lab.frames["weight_wrong"] < 0.2


def test_masked_scores_change_nothing():
    row = ROWS["masked first"]
    masked = sent(OnlineSoftmaxLab(row))
    finite = np.isfinite(row)
    alone = sent(OnlineSoftmaxLab(np.array(row)[finite]))
    for name in ("m", "l", "l_wrong", "weight", "weight_wrong"):
        assert same_bits(masked[name][finite], alone[name]), name
        if name.startswith("weight"):
            assert not masked[name][~finite].any()
    nothing = OnlineSoftmaxLab(ROWS["masked all"], rescale=False)
    assert repr(nothing) == "OnlineSoftmaxLab(N=3, rescale=False: m = −∞, l = 0, the weights add up to 0.0000)"
    assert not sent(nothing)["weight_wrong"].any()


@pytest.mark.parametrize("row", [(1, 3, -INF), [1, 3, -INF], np.array([1, 3, -INF], np.float16)], ids=type)
def test_takes_lists_tuples_and_arrays(row):
    assert same_bits(OnlineSoftmaxLab(row).x, [1, 3, -INF])
    assert same_bits(OnlineSoftmaxLab(np.arange(3)).x, [0, 1, 2])


def test_typing_computes_again():
    lab = OnlineSoftmaxLab([1, 2])
    seen = []
    lab.observe(lambda change: seen.append(change.new["text"]), names="frames")
    lab.set_state({"typed": "1,−2.5  3\t-inf , −∞,1e-3"})  # as a message from the page does
    row = [1, -2.5, 3, -INF, -INF, 0.001]
    assert same_bits(lab.x, row)
    assert seen == ["1, -2.5, 3, -inf, -inf, 0.001"]
    assert all(same_bits(sent(lab)[name], sent(OnlineSoftmaxLab(row))[name]) for name in sent(lab))
    lab.x = (4, 5)
    assert lab.frames["typed"] == lab.typed == "4, 5"
    lab.set_state({"rescale": False})
    assert repr(lab) == repr(OnlineSoftmaxLab((4, 5), rescale=False))


def test_text_of_a_row_is_the_row_bit_for_bit(x):
    assert same_bits(read(write(x)), x)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1, zwei, 3", "“zwei” is not a number; accepted are 1 to 64 numbers, finite or -inf"),
        ("[1, 2]", "“[1” is not a number"),
        ("y" * 1000, f"“{'y' * 20}…” is not a number"),
        (" , ", "x has 0 numbers"),
        ("0 " * 65, "x has 65 numbers"),
        ("1 nan", "number 2 of x is nan"),
        ("1 2 inf", "number 3 of x is inf"),
        ("1e999", "number 1 of x is inf"),
    ],
)
def test_typed_and_refused(text, sentence):
    lab = OnlineSoftmaxLab([1, 2])
    frames, answers = lab.frames, []
    lab.observe(lambda change: answers.append(change.new), names="refused")
    lab.set_state({"typed": text})
    assert lab.refused.startswith(sentence)
    assert lab.refused.endswith("e.g. 1, 3, 2, -inf. It stays '1, 2'.")
    assert lab.frames is frames and same_bits(lab.x, [1, 2])
    lab.set_state({"typed": text + " "})  # the same sentence counts as a new answer
    assert answers == [lab.refused, "", lab.refused]
    lab.set_state({"typed": "7"})
    assert lab.refused == "" and same_bits(lab.x, [7])


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("1, 2", "x is a str; pass a list, a tuple or a NumPy array"),
        (range(3), "x is a range; pass a list"),
        (None, "x is a NoneType; pass a list"),
        ([], "x has 0 numbers; accepted are 1 to 64"),
        (np.zeros(65), "x has 65 numbers; accepted are 1 to 64"),
        ([[1, 2]], "x has shape (1, 2); expected one row"),
        (np.array(1.0), "x has shape (); expected one row"),
        ([[1], [2, 3]], "x is not one row of numbers"),
        ([1, "3"], "x has '3' in it, which is not an fp64 number"),
        ([1, None], "x has None in it"),
        ([1, 2j], "x has 2j in it"),
        ([True, False], "x has True in it"),
        ([1, 10**400], "x has a number too large in it"),
        ([1, math.nan], "number 2 of x is nan"),
        ([1, 2, INF], "number 3 of x is inf"),
    ],
)
def test_a_sentence_in_place_of_the_widget_reports_a_bad_row(row, sentence):
    lab = OnlineSoftmaxLab(row)
    assert lab.problem.startswith(sentence)
    assert "finite or -inf" in lab.problem
    assert repr(lab) == f"OnlineSoftmaxLab({lab.problem})"
    assert "image/png" not in lab._repr_mimebundle_()[0]
    lab = OnlineSoftmaxLab([1, 2])
    with pytest.raises((TypeError, ValueError), match="finite or -inf"):
        lab.x = row
    assert same_bits(lab.x, [1, 2])


def test_rescale_is_a_bool():
    assert OnlineSoftmaxLab(rescale=1).problem == "rescale is 1; pass True or False."
    assert OnlineSoftmaxLab(rescale=np.False_).rescale is False


def test_the_widget_copies_its_row():
    row = np.array([1.0, 3.0, 2.0])
    lab = OnlineSoftmaxLab(row)
    row[:] = 0
    lab.x[:] = 0
    assert same_bits(lab.x, [1, 3, 2])


def test_examples_can_be_read():
    lab = OnlineSoftmaxLab()
    assert len(lab.examples) == 6
    for name, text in lab.examples.items():
        lab.typed = text
        assert (lab.refused, lab.frames["text"]) == ("", text), name
        assert (lab.frames["weight_wrong"] < 0.9) == (name != "decreasing"), name
    assert same_bits(read(lab.examples["increasing"]), np.arange(8))


def test_repr():
    lab = OnlineSoftmaxLab(np.arange(8.0))
    assert repr(lab) == "OnlineSoftmaxLab(N=8, rescale=True: m = 7, l = 1.581, the weights add up to 1.0000)"
    lab.rescale = False
    assert repr(lab) == "OnlineSoftmaxLab(N=8, rescale=False: m = 7, l = 8, the weights add up to 0.1977)"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rescale", [True, False])
def test_picture(x, rescale):
    pictures = [OnlineSoftmaxLab(x, rescale).figure().png() for _ in range(2)]
    assert pictures[0].startswith(b"\x89PNG")
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) < 60_000


def test_picture_says_what_happened():
    lab = OnlineSoftmaxLab([1, 0, 3, 2])
    alpha, l = math.exp(-2), math.exp(-2) * (1 + math.exp(-1)) + 1
    wrong = 1 + math.exp(-1) + 1
    right = ["Score 3 of 4: m = 3", f"Terms of l: alpha = {alpha:.4f}", f"l = {l:.3f}, without: {wrong:.3f}"]
    assert set(right) <= set(lab.figure(2).texts) == set(lab.figure().texts)
    lab.rescale = False
    assert "Terms of l, never rescaled" in lab.figure(2).texts
