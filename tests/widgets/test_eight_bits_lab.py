"""EightBitsLab shows what lowbit computes, cause by cause, and each idea has its effect."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import lowbit
from flashlib.lowbit import sums
from flashlib.widgets import EightBitsLab
from flashlib.widgets.eight_bits_lab import choices, problem, words
from flashlib.widgets.eight_bits_lab.rounded_attention import (
    PARTS,
    POINTS,
    attention,
    exact_attention,
    passes,
    rounded_inputs,
)
from tests import oracle

SETTINGS = [
    {},
    {"N": 512, "outliers": 1, "mean": "positive", "l_rounded": True, "p_times": 1},
    {"mean": "channels", "k_minus_mean": True, "v_minus_mean": True, "rotate": True, "sums": "two levels"},
    {"N": 256, "outliers": 100, "qk": "int8", "scales": "row", "pv": "e5m2", "o": "e4m3"},
    {"qk": "e5m2", "scales": "block", "power_of_two": True, "sharpness": 8, "p_times": 448},
    {"qk": "fp16", "pv": "fp16", "outliers": 5, "mean": "channels"},
    {"N": 2048, "sums": "exact", "mean": "positive"},
]
FP32 = 2e-6  # of numbers of about 1, added in any order


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def lab(request):
    lab = EightBitsLab(**request.param)
    assert not lab.problem
    return lab


def of(lab):
    return tuple(lab.result["setting"][name] for name in choices.OF_THE_NUMBERS)


def sent(lab):
    """What the page unpacks from the buffer, under the same names."""
    r = lab.result
    scores, output, points = (r["rows"], r["shown"]), (r["rows"], r["cols"]), r["points"]
    shapes = {name: scores for name in ("S", "S_now", "P", "P_q", "weights", "weights_now")}
    shapes |= {name: output for name in ("O", "O_now", "unit", "lost")}
    shapes |= {"keys": (points,), "running": (points, *output), "unrounded": (points, *output)}
    found, at = np.frombuffer(r["buffer"], "<f8"), 0
    parts = {}
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        parts[name] = found[at : at + size].reshape(shape)
        at += size
    assert at == len(found)
    return parts


def test_the_first_keys_are_the_same_for_every_length():
    for mean in choices.WORDS["mean"]:
        short, long = (problem.problem(N, 10, 2, mean) for N in (256, 4096))
        assert all(np.array_equal(a, b[: len(a)]) for a, b in zip(short, long, strict=True))


def test_inputs_follow_their_settings():
    Q, K, V = problem.problem(4096, 1, 1, "none")
    Q_2, K_10, V_10 = problem.problem(4096, 10, 2, "none")
    assert np.array_equal(Q_2[np.abs(Q_2) < 6], 2 * Q[np.abs(Q_2) < 6])
    larger = K_10 != K
    assert 0.0008 < larger.mean() < 0.0012 and np.allclose(K_10[larger], 10 * K[larger])
    assert problem.problem(256, 100, 1, "positive")[2].min() >= 1
    means = np.abs(problem.problem(4096, 1, 1, "channels")[1].mean(axis=0))
    assert means.max() > 4 and np.abs(K.mean(axis=0)).max() < 0.1


def test_causes_are_those_of_lowbit(lab):
    recipe, r = lab.recipe, lab.result
    expected = lowbit.by_cause(*problem.problem(*of(lab)), recipe)
    assert r["total"] == pytest.approx(expected.pop("all"), rel=1e-3, abs=FP32)
    assert lowbit.CAUSE_NAMES.keys() == expected.keys() == lowbit.CAUSES.keys()
    found = [cause["error"] for cause in r["causes"]]
    assert found == pytest.approx([*expected.values()], rel=1e-3, abs=FP32)
    assert [cause["name"] for cause in r["causes"]] == [*lowbit.CAUSE_NAMES.values()]
    squares = np.square(found)
    assert [cause["part"] for cause in r["causes"]] == pytest.approx(squares / squares.sum())


def test_a_cause_that_does_nothing_has_no_error():
    r = EightBitsLab(sums="exact", qk="int8").result
    nothing = [cause["name"] for cause in r["causes"] if cause["error"] == 0]
    assert nothing == ["sums of Q K^T", "sums of P V"]


def test_scores_and_outputs_are_those_of_attention(lab):
    Q, K, V = (X.astype(float) for X in problem.problem(*of(lab)))
    recipe, page, shown = lab.recipe, sent(lab), lab.result["shown"]
    if recipe.k_minus_mean:
        K = K - K.mean(axis=0)
    O, lse = oracle.attention(Q, K, V) if len(V[0]) == len(Q[0]) else attended(Q, K, V)
    S = Q @ K[:shown].T / 8
    assert oracle.worst(page["O"], O) < 1e-9
    assert oracle.worst(page["S"], S) < 1e-9
    assert oracle.worst(page["weights"], np.exp(S - lse[:, None])) < 1e-9
    steps = [*lowbit.steps(lowbit.prepared(*problem.problem(*of(lab)), recipe), recipe, B_c=128)]
    assert np.array_equal(page["S_now"], steps[0].S_ij) and np.array_equal(page["P_q"], steps[0].P_ij)
    assert np.array_equal(lowbit.rounded(page["P"], recipe.p), page["P_q"]), "what rounding makes of it"
    now = lowbit.attention(*problem.problem(*of(lab)), recipe).O
    assert np.array_equal(page["O_now"], now)
    ratio = page["P_q"] * np.exp(steps[0].m - steps[-1].m)[:, None] / steps[-1].l[:, None]
    assert oracle.worst(page["weights_now"], ratio) < FP32


def test_passes_are_those_of_lowbit_bit_for_bit(lab):
    steps = [*lowbit.steps(lowbit.prepared(*problem.problem(*of(lab)), lab.recipe), lab.recipe, B_c=128)]
    now, of_sums = passes(of(lab), lab.recipe)
    assert len(steps) == len(now.O_acc) == lab.N // 128
    pairs = [("S", "S_ij"), ("P_q", "P_ij"), ("m", "m"), ("alpha", "alpha")]
    for k, step in enumerate(steps):
        for name, of_step in pairs:
            assert np.array_equal(getattr(now.tiles, name)[k], getattr(step, of_step)), (name, k)
        assert np.array_equal(now.O_acc[k], step.O_acc), k
    assert np.array_equal(now.tiles.l, steps[-1].l)
    assert np.array_equal(of_sums.tiles.P, of_sums.tiles.P_q), "nothing else is rounded"


def attended(Q, K, V):
    """O and lse for a V with a different number of columns than K."""
    S = Q @ K.T / np.sqrt(Q.shape[1])
    top = S.max(axis=1, keepdims=True)
    P = np.exp(S - top)
    return P @ V / P.sum(axis=1, keepdims=True), top[:, 0] + np.log(P.sum(axis=1))


def test_a_running_sum_ends_at_the_output(lab):
    page, recipe = sent(lab), lab.recipe
    ready = lowbit.prepared(*problem.problem(*of(lab)), recipe)
    O = lowbit.output((page["running"][-1] + ready.V_mean).astype(np.float32), recipe)
    spacing = 2.0**-7 if recipe.o == "bf16" else 2.0**-3
    assert oracle.worst(O, page["O_now"]) <= spacing * np.abs(page["O_now"]).max()
    assert page["keys"][-1] == lab.N and (np.diff(page["keys"]) > 0).all() and len(page["keys"]) <= POINTS
    exact = lab.recipe.o_sums == "exact"
    near = np.abs(page["running"] - page["unrounded"]).max() <= FP32 * np.abs(page["unrounded"]).max()
    assert near == exact


@pytest.fixture(scope="module")
def long():
    """Many terms of one sign."""
    return EightBitsLab(16_384, 1, mean="positive")


def test_lost_terms_are_smaller_than_the_last_bit(long):
    page, lab = sent(long), long
    ready = lowbit.prepared(*problem.problem(*of(lab)), lab.recipe)
    *_, last = lowbit.steps(ready, lab.recipe, B_c=128)
    for row, column in [(0, 0), (3, 7), (7, 15)]:
        terms = last.P_ij[row, -32:] * ready.V.X_q[-32:, column]
        total = last.O_acc[row, column]
        kept = np.array([sums.add(np.array([total, term])) != sums.add(np.array([total])) for term in terms])
        assert page["lost"][row, column] == (~kept & (terms != 0)).sum() > 16
        assert page["unit"][row, column] == pytest.approx(page["running"][-1][row, column] / total * 2.0 ** (
            np.floor(np.log2(total)) - sums.BITS))  # fmt: skip


@pytest.mark.parametrize("setting", [{"sums": "two levels"}, {"sums": "exact"}, {"pv": "fp16"}], ids=str)
def test_only_sums_of_13_bits_have_a_last_bit(setting):
    page = sent(EightBitsLab(**setting))
    assert np.isnan(page["unit"]).all() and np.isnan(page["lost"]).all()


def test_histograms_and_grids(lab):
    recipe, page = lab.recipe, lab.result["rounding"]
    now, before = rounded_inputs(of(lab), recipe)
    assert [one["name"] for one in page] == ["Q", "K", "V", "P"]
    assert [one["format"] for one in page] == [recipe.qk, recipe.qk, recipe.v, recipe.p]
    for one, X, X_q in zip(page, before[:3], now[:3], strict=False):
        assert one["below"] + sum(one["bars"]) == pytest.approx(1) and min(one["bars"]) >= 0
        assert one["largest"] == np.abs(X.X).max()
        assert one["error"] == pytest.approx(lowbit.error(X_q.X, X.X), rel=1e-4)
        assert one["zeros"] == np.mean((X_q.X == 0) & (X.X != 0))
        half = np.abs(X.X) >= X_q.scale * lowbit.FORMATS[one["format"]].largest / 2
        if lowbit.FORMATS[one["format"]].bits == 8:
            assert sum(one["bars"][-PARTS:]) == pytest.approx(half.mean(), abs=1e-4), "the last octave"
    for name, format in (("qk", recipe.qk), ("pv", recipe.p)):
        grid = lab.result["grids"][name]
        if format == "fp16":
            assert grid == []
            continue
        assert np.array_equal(lowbit.rounded(np.array(grid), format), grid), "numbers of the format"
        between = np.concatenate([[0], grid])
        assert np.isin(lowbit.rounded((between[1:] + between[:-1]) / 2, format), between).all(), "all of them"


def test_where_the_page_opens(lab):
    page, opens = sent(lab), lab.result["opens"]
    off = np.abs(page["weights_now"] - page["weights"])
    rounded = page["P"] != page["P_q"]
    assert off[opens["row"], opens["key"]] == off[rounded].max()
    assert np.abs(page["O_now"] - page["O"])[opens["row"]].argmax() == opens["column"]


def error(name=None, **setting):
    r = EightBitsLab(**setting).result
    return r["total"] if name is None else {one["name"]: one["error"] for one in r["causes"]}[name]


def test_each_idea_has_its_effect():
    outliers = error("Q and K")
    assert error("Q and K", outliers=1) < 0.6 * outliers, "outliers take the numbers from the others"
    assert error("Q and K", rotate=True) < 0.6 * outliers, "and a rotation spreads them"
    assert error("Q and K", qk="int8", rotate=True) < 0.2 * outliers
    biased = {"mean": "channels", "outliers": 1}
    assert error("Q and K", **biased, k_minus_mean=True) < error("Q and K", **biased)
    assert error("V", **biased, v_minus_mean=True) < error("V", **biased)
    positive = {"mean": "positive", "outliers": 1, "N": 4096, "sharpness": 2}
    assert error("P", **positive) < 0.2 * error("P", **positive, p_times=1), "P times 256"
    assert error("P", **positive, l_rounded=True) < error("P", **positive)


def test_a_sum_of_one_sign_loses_a_fifth_in_13_bits_and_little_otherwise(long):
    page = sent(long)
    assert -0.3 < (page["running"][-1] / page["unrounded"][-1] - 1).mean() < -0.2
    positive = {"N": 4096, "outliers": 1, "mean": "positive"}
    assert error("sums of P V", **positive) > 0.05
    assert error("sums of P V", **positive, sums="two levels") < 0.01
    assert error("sums of P V", **positive, v_minus_mean=True) < 0.01


def test_bytes(lab):
    recipe, found = lab.recipe, lab.result["bytes"]
    ready = lowbit.prepared(*problem.problem(*of(lab)), recipe)
    sizes = {name: lowbit.FORMATS[format].bits // 8 for name, format in (("K", recipe.qk), ("V", recipe.v))}
    assert found["before"] == 2 * (ready.K.X_q.size + ready.V.X_q.size)
    assert found["now"] == sizes["K"] * ready.K.X_q.size + sizes["V"] * ready.V.X_q.size
    count = sum(
        one.scale.size // (recipe.block if name == "K" and recipe.qk_share == "block" else 1)
        for name, one in (("K", ready.K), ("V", ready.V))
        if sizes[name] == 1
    )
    assert found["scales"] == 4 * count


@pytest.mark.parametrize("name", choices.PRESETS)
def test_a_preset_is_a_recipe_of_lowbit(name):
    setting = EightBitsLab().result["presets"][name]
    lab = EightBitsLab(**setting)
    recipe, shown = choices.PRESETS[name], lab.recipe
    assert lab.problem == "" and set(setting) == set(lab.result["setting"]) - set(choices.OF_THE_NUMBERS)
    fields = set(recipe._fields) - {"qk_share", "v_share", "block"}
    assert {field: getattr(shown, field) for field in fields} == {f: getattr(recipe, f) for f in fields}
    assert shown.qk_share == shown.v_share == "tensor", "of one head, as a head"


def test_a_record_is_passed_on_and_the_choice_is_named():
    lab = EightBitsLab(record=[("e4m3, two levels", 871.5), ["cuDNN", 994]])
    assert lab.result["record"] == [("e4m3, two levels", 871.5), ("cuDNN", 994.0)]
    assert lab.result["way"] == "e4m3, 13 bits"
    lab.set_state({"qk": "int8", "sums": "two levels"})
    assert lab.result["way"] == "int8, two levels"
    lab.set_state({"pv": "fp16"})
    assert lab.result["way"] == "int8, two levels, P and V in fp16", "which nobody measured"
    assert EightBitsLab(o="e4m3").result["way"] == "e4m3, 13 bits, O in e4m3"
    assert EightBitsLab().result["record"] == []


def test_words():
    r = EightBitsLab().result
    assert r["words"][0] == (
        "8 queries and 1024 keys of 64 channels, 16 channels of V: normal numbers around 0, outliers 10 "
        "times as large, one number in 1000."
    )
    largest = max(r["causes"], key=lambda cause: cause["error"])
    assert largest["name"] == "Q and K"
    assert r["words"][1].startswith(f"O is off by {words.percent(r['total'])}. Most comes from Q and K: alone ")
    assert [cause["how"] for cause in r["causes"]] == [
        *("in e4m3, one scale", "in 13 bits, 32 terms at a time", "in e4m3, times 256", "in e4m3, one scale"),
        *("in 13 bits, 32 terms at a time", "in bf16"),
    ]
    assert (
        r["read"] == "K and V are 160 KB in 16 bits. Now they are 80.01 KB: 80 KB, and 8 bytes of scales, in fp32."
    )
    fine = EightBitsLab(
        scales="row", qk="int8", rotate=True, v_minus_mean=True, p_times=1, sums="two levels"
    ).result
    assert [cause["how"] for cause in fine["causes"]] == [
        *("in int8, a scale for each row, rotated", "exact", "in e4m3"),
        "in e4m3, a scale for each channel, without its mean",
        *("of a tile in 13 bits, of tiles in fp32", "in bf16"),
    ]
    shares = (0, 0.5, 0.12345, 12.3456, 1.5e-5, 3.14159e-7)
    assert [words.percent(x) for x in shares] == ["0%", "50%", "12.3%", "1230%", "0.0015%", "0.0000314%"]


def test_it_can_be_sent_to_the_page():
    lab = EightBitsLab(N=256)
    rest = {name: value for name, value in lab.result.items() if name != "buffer"}
    assert json.loads(json.dumps(rest)) == rest
    data = lab._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(lab)
    assert base64.b64decode(data["image/png"]) == lab.figure().png()


BAD = [
    (dict(N=1000), "N is 1000; pass 256, 512, 1024, 2048, 4096, 8192 or 16384."),
    (dict(N=True), "N is True; pass 256"),
    (dict(outliers=3), "outliers is 3; pass 1, 2, 5, 10, 20, 50 or 100."),
    (dict(sharpness=None), "sharpness is None; pass 1, 2, 4 or 8."),
    (dict(mean="x"), "mean is 'x'; pass one of 'none', 'channels', 'positive'."),
    (dict(qk="e4m4"), "qk is 'e4m4'; pass one of 'e4m3', 'e5m2', 'int8', 'fp16'."),
    (dict(pv="int8"), "pv is 'int8'; pass one of 'e4m3', 'e5m2', 'fp16'."),
    (dict(o="int8"), "o is 'int8'; pass one of 'bf16', 'e4m3'."),
    (dict(scales="head"), "scales is 'head'; pass one of 'tensor', 'block', 'row'."),
    (dict(sums="14 bits"), "sums is '14 bits'; pass one of '13 bits', 'two levels', 'exact'."),
    (dict(p_times=2), "p_times is 2; pass 1, 256 or 448."),
    (dict(rotate=1), "rotate is 1; pass True or False."),
    (dict(record=3), 'record is 3; pass a list of (words, TFLOP/s), e.g. [("e4m3, two levels", 871.5)].'),
    (dict(record=[("a", 1, 2)]), "record has ('a', 1, 2) in it; pass a list"),
    (dict(record=[(1, 2.0)]), "record has (1, 2.0) in it"),
    (dict(record=[("a", float("nan"))]), "record has a speed of nan in it"),
]


@pytest.mark.parametrize(("change", "sentence"), BAD, ids=str)
def test_a_sentence_says_what_cannot_be_shown(change, sentence):
    lab = EightBitsLab(**change)
    assert lab.problem.startswith(sentence) and lab.problem.endswith(".")
    assert repr(lab) == f"EightBitsLab({lab.problem})"
    assert "image/png" not in lab._repr_mimebundle_()[0]


CHANGES = [
    *(dict(N=256), dict(outliers=5), dict(sharpness=4), dict(mean="channels"), dict(mean="positive")),
    *(dict(qk="int8"), dict(pv="fp16"), dict(o="e4m3"), dict(scales="block"), dict(power_of_two=True)),
    *(dict(p_times=1), dict(l_rounded=True), dict(rotate=True), dict(k_minus_mean=True), dict(v_minus_mean=True)),
    *(dict(sums="exact"), dict(rotate=True, sums="two levels")),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_changes_from_the_page(change):
    """For every control the answer equals that of a new widget with this setting, and nothing cached."""
    lab = EightBitsLab()
    results = []
    lab.observe(lambda change: results.append(change.new), names="result")
    lab.set_state(change)
    assert len(results) == 1 and lab.refused == ""
    for remembers in (problem.problem, exact_attention, rounded_inputs, passes, attention):
        remembers.cache_clear()
    expected = EightBitsLab(**change)
    assert lab.result == expected.result and repr(lab) == repr(expected)


def test_repr():
    found = repr(EightBitsLab(256, 1, qk="int8"))
    assert found.startswith(
        "EightBitsLab(N=256, outliers=1, sharpness=1, mean='none', qk='int8', pv='e4m3', o='bf16', "
        "scales='tensor', power_of_two=False, p_times=256, l_rounded=False, rotate=False, k_minus_mean=False, "
        "v_minus_mean=False, sums='13 bits': O is off by "
    )
    assert "; alone Q and K " in found and "sums of Q K^T 0%" in found
