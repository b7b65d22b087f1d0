"""BackwardPlayer sends tiled.backward_steps to the page, bit for bit, with their true errors."""

import base64
import re

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import cost, naive, tiled
from flashlib.widgets import BackwardPlayer, FlashPlayer
from flashlib.widgets.backward_player.frames import PACKED, in_words
from flashlib.widgets.flash_player import tiled_widget

SETTINGS = [
    dict(N_q=8, N_k=8, d=4, B_r=4, B_c=2),
    dict(N_q=7, N_k=5, d=3, B_r=3, B_c=2, causal=True),  # rows 0 and 1 see no key
    dict(N_q=5, N_k=11, d=2, B_r=2, B_c=4, causal=True),
    dict(N_q=9, N_k=3, d=1, B_r=2, B_c=3, causal=True),  # row blocks 0, 1, 2 have no tile at all
    dict(N_q=3, N_k=4, d=5, B_r=1, B_c=1, scale=0.5),
    dict(N_q=3, N_k=0, d=2, B_r=2, B_c=1),
    dict(N_q=0, N_k=3, d=2, B_r=1, B_c=2),
]
GRADIENTS = {"kv": ["dV", "dK"], "q": ["dQ"]}


@pytest.fixture(params=["kv", "q"])
def wrt(request):
    return request.param


@pytest.fixture(params=SETTINGS, ids=str)
def setting(request):
    return dict(request.param)


def inputs(rng, setting, dtype=np.float64):
    """Remove the sizes from a setting; return Q, K, V and dO of these sizes."""
    N_q, N_k, d = (setting.pop(name) for name in ("N_q", "N_k", "d"))
    return tuple(rng.normal(size=(N, d)).astype(dtype) for N in (N_q, N_k, N_k, N_q))


def forward(Q, K, V, B_r, B_c, **setting):
    return tiled.attention(Q, K, V, B_r=B_r, B_c=B_c, **setting)


def numbers(frames):
    return np.frombuffer(frames["buffer"], "<f8")


def same_bits(a, b):
    return np.array_equal(np.asarray(a, "<f8").view("u8"), np.asarray(b, "<f8").view("u8"))


def named(frames):
    """Return {name: offset} for each step."""
    return [dict(zip(frames["packed"], step[8:], strict=True)) for step in frames["steps"]]


def exact(Q, K, V, dO, setting):
    """Return the gradients of standard attention in fp64."""
    Q, K, V, dO = (X.astype(np.float64) for X in (Q, K, V, dO))
    setting = {name: x for name, x in setting.items() if name in ("causal", "scale")}
    return naive.backward(Q, K, V, *naive.attention(Q, K, V, **setting), dO, **setting)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_buffer_is_backward_steps(rng, setting, wrt, dtype):
    Q, K, V, dO = inputs(rng, setting, dtype)
    frames = BackwardPlayer(Q, K, V, dO, **setting, wrt=wrt).frames
    sent = numbers(frames)
    O, lse = forward(Q, K, V, **setting)
    steps = list(tiled.backward_steps(Q, K, V, O, lse, dO, wrt=wrt, **setting))
    assert len(frames["steps"]) == len(steps)
    for packed, offsets, step in zip(frames["steps"], named(frames), steps, strict=True):
        assert packed[:6] == [step.i, step.j, step.rows.start, step.rows.stop, step.cols.start, step.cols.stop]
        sums = {f"{name}_sum": getattr(step, f"{name}_{'i' if wrt == 'q' else 'j'}") for name in GRADIENTS[wrt]}
        for name, X in ({name: getattr(step, name) for name in PACKED} | sums).items():
            assert same_bits(sent[offsets[name] :][: X.size].reshape(X.shape), X), name
    for name, X in {"Q": Q, "K": K, "V": V, "dO": dO, "lse": lse}.items():
        assert same_bits(sent[frames["inputs"][name] :][: X.size].reshape(X.shape), X), name
    delta = sent[frames["inputs"]["delta"] :][: len(Q)]
    np.testing.assert_allclose(delta, (dO.astype(float) * O.astype(float)).sum(axis=1), rtol=1e-5, atol=1e-5)


def test_a_sum_is_the_previous_sum_plus_what_the_step_adds(rng, setting, wrt):
    frames = BackwardPlayer(*inputs(rng, setting), **setting, wrt=wrt).frames
    sent, last = numbers(frames), {}
    for step, offsets in zip(frames["steps"], named(frames), strict=True):
        i, j, r0, r1, c0, c1, *_ = step
        block, size = (j, c1 - c0) if wrt == "kv" else (i, r1 - r0)
        for name in GRADIENTS[wrt]:
            part = lambda x: sent[offsets[f"{name}_{x}"] :][: size * frames["d"]]  # noqa: B023, E731
            assert same_bits(part("old"), last.get((name, block), np.zeros(size * frames["d"])))
            assert same_bits(part("old") + part("added"), part("sum"))
            last[name, block] = part("sum")
    blocks = {step[1] if wrt == "kv" else step[0] for step in frames["steps"]}
    assert {block for _, block in last} == blocks


def test_writes_are_the_gradients_as_memory_holds_them(rng, setting, wrt):
    Q, K, V, dO = inputs(rng, setting)
    frames = BackwardPlayer(Q, K, V, dO, **setting, wrt=wrt).frames
    held = {name: np.full_like({"Q": Q, "K": K, "V": V}[name[1]], np.nan) for name in GRADIENTS[wrt]}
    drawn = {name: X.copy() for name, X in held.items()}
    trace = tiled.backward_steps(Q, K, V, *forward(Q, K, V, **setting), dO, wrt=wrt, **setting, **held)
    sent = numbers(frames)
    for position in range(len(frames["steps"]) + 1):
        next(trace, None)
        for after, start, stop, offset, name in frames["writes"]:
            if after < position:
                X = sent[offset:][: (stop - start) * frames["d"]]
                drawn[name][start:stop] = X.reshape(stop - start, frames["d"])
        assert all(same_bits(drawn[name], X) for name, X in held.items())
    assert not any(np.isnan(X).any() for X in drawn.values())
    starts = [(name, start) for _, start, _, _, name in frames["writes"]]
    assert len(starts) == len(set(starts)), "every block is written once"


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_errors_are_differences_from_exact_gradients(rng, setting, wrt, dtype):
    Q, K, V, dO = inputs(rng, setting, dtype)
    widget = BackwardPlayer(Q, K, V, dO, **setting, wrt=wrt)
    sent, offsets = numbers(widget.frames), widget.frames["errors"]
    T = len(widget.frames["steps"])
    before, after = (sent[offsets[name] :][:T] for name in ("before", "after"))
    whole = sent[offsets["whole"] :][: T + 1]
    truth = exact(Q, K, V, dO, setting)._asdict()
    held = {name: np.zeros(truth[name].shape) for name in GRADIENTS[wrt]}
    outputs = {name: np.empty_like({"Q": Q, "K": K, "V": V}[name[1]]) for name in held}
    off = lambda rows: max(np.abs(held[name] - truth[name])[rows].max(initial=0) for name in held)  # noqa: E731
    steps = list(tiled.backward_steps(Q, K, V, *forward(Q, K, V, **setting), dO, wrt=wrt, **setting, **outputs))
    assert whole[0] == off(slice(None))
    for k, step in enumerate(steps):
        block = step.cols if wrt == "kv" else step.rows
        same = lambda a: (a.j == step.j) if wrt == "kv" else (a.i == step.i)  # noqa: B023, E731
        assert before[k] == off(block)
        last = k + 1 == T or not same(steps[k + 1])
        for name in held:
            total = getattr(step, f"{name}_{'i' if wrt == 'q' else 'j'}")
            summed = total * widget.frames["scale"] if wrt == "q" else total
            held[name][block] = outputs[name][block] if last else summed
        assert after[k] == off(block) and whole[k + 1] == off(slice(None))
    assert whole[-1] < (0.1 if dtype == np.float16 else 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_meters_of_both_passes_are_the_closed_form(rng, setting, dtype):
    Q, K, V, dO = inputs(rng, setting, dtype)
    passes = {wrt: BackwardPlayer(Q, K, V, dO, **setting, wrt=wrt).frames for wrt in ("kv", "q")}
    N_q, N_k, d, size = len(Q), len(K), Q.shape[1], Q.itemsize
    tiling = {name: passes["kv"][name] for name in ("B_r", "B_c", "causal")}
    both = cost.fa2_backward_traffic(N_q, N_k, d, **tiling, dtype=dtype)
    acc = np.promote_types(dtype, np.float32).itemsize
    delta = 2 * N_q * d * size, N_q * acc  # each pass computes delta, tiled.backward only once
    moved = [passes["kv"]["all"][n] + passes["q"]["all"][n] - delta[n] for n in range(2)]
    assert moved == [both.read, both.written]
    standard = cost.standard_backward_traffic(N_q, N_k, d, dtype=dtype)
    for frames in passes.values():
        assert frames["both"] == [both.read, both.written]
        assert frames["standard"] == [standard.read, standard.written]
        steps = [step[6:8] for step in frames["steps"]]
        assert all(
            a <= b
            for before, after in zip(steps, steps[1:], strict=False)
            for a, b in zip(before, after, strict=True)
        )


def test_the_lines_are_those_of_the_source():
    lines = {wrt: BackwardPlayer(wrt=wrt).frames["lines"] for wrt in ("kv", "q")}
    for found in lines.values():
        assert found["weights"] == ["P_ij = np.exp(S_ij - np.where(lse_i == -np.inf, 0, lse_i))"]
        assert found["dS"] == ["dS_ij = mask.gradient(P_ij * (dP_ij - delta_i), S_raw, rows, cols)"]
        assert len(found["scores"]) == 2 and all(found.values())
    assert lines["kv"]["add"] == ["dV_j = dV_j + P_ij.T @ dO_i", "dK_j = dK_j + dS_ij.T @ Q_i"]
    assert lines["kv"]["store"] == ["dK[cols], dV[cols] = dK_j, dV_j"]
    assert lines["q"]["add"] == ["dQ_i = dQ_i + dS_ij @ K_j"]
    assert lines["q"]["store"] == ["dQ[rows] = dQ_i * scale"]


def test_a_change_is_computed_and_sent_once():
    widget = BackwardPlayer(seed=2)
    seen = []
    widget.observe(lambda change: seen.append(change.new), names="frames")
    changes = {"B_c": 3, "B_r": 3, "wrt": "q", "causal": True, "N": 6, "d": 3, "seed": 5}
    for n, (name, value) in enumerate(changes.items()):
        setattr(widget, name, value)
        assert len(seen) == n + 1
    expected = BackwardPlayer(**changes)
    assert widget.frames == expected.frames and repr(widget) == repr(expected)


def test_sizes_are_clamped_to_their_range():
    widget = BackwardPlayer(B_r=100, B_c=100)
    assert (widget.B_r, widget.B_c) == (8, 8)
    widget.B_r, widget.B_c = 0, -3
    assert (widget.B_r, widget.B_c) == (1, 1)
    widget.N = 1000
    assert widget.N == 64 and len(widget.frames["steps"]) == tiled_widget.MAX_TILES


def test_random_inputs_are_those_of_flash_player_and_one_more():
    sent = [numbers(cls(N=5, d=3, seed=7).frames) for cls in (BackwardPlayer, FlashPlayer)]
    assert same_bits(sent[0][:45], sent[1][:45])
    X = np.random.default_rng(7).normal(size=(4, 5, 3))
    assert BackwardPlayer(*X).frames["buffer"] == BackwardPlayer(N=5, d=3, seed=7).frames["buffer"]


def test_inputs_are_not_modified_nor_kept(rng):
    X = tuple(rng.normal(size=(6, 3)) for _ in range(4))
    before = [x.copy() for x in X]
    widget = BackwardPlayer(*X, B_r=2, B_c=2, causal=True)
    frames = widget.frames
    widget.wrt = "q"
    widget._repr_mimebundle_()
    for x, x_before in zip(X, before, strict=True):
        assert same_bits(x, x_before)
        x[:] = 0  # as the learner might later
    widget.wrt = "kv"
    assert widget.frames == frames
    assert widget.frames["controls"] == ["B_r", "B_c", "causal", "wrt"]


def test_it_opens_at_a_step_and_another_tiling_from_its_start():
    widget = BackwardPlayer(opens_at=3)
    assert widget.frames["opens_at"] == 3
    widget.wrt = "q"
    assert widget.frames["opens_at"] is None
    assert BackwardPlayer(opens_at=99).frames["opens_at"] is None


ONES = np.ones((4, 2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(dO=np.ones((3, 2))), r"dO has shape \(3, 2\) and Q \(4, 2\); they must be equal"),
        (dict(dO=np.ones((4, 2), "float32")), "dO has dtype float32 and Q has float64"),
        (dict(dO=[[1.0, 2.0]]), "dO is of type list; pass a plain NumPy array"),
        (dict(K=np.ones((4, 3))), "K has shape"),
        (dict(dO=None), "Q, K, V and dO are given in part; pass all, or none"),
        (dict(B_r=0), "B_r is 0"),
        (dict(B_c=2.5), "B_c is 2.5"),
        (dict(wrt="v"), "wrt is 'v'; accepted are \"kv\""),
        (dict(causal=1), "causal is 1"),
        (dict(scale=-1), "scale is -1"),
        (dict(Q=None, K=None, V=None, dO=None, N=0), "N is 0"),
        (dict(Q=None, K=None, V=None, dO=None, seed=-1), "seed is -1"),
        (dict.fromkeys(("Q", "K", "V", "dO"), np.ones((300, 2))), r"90000 cells.*65536.*dO\[:64\]"),
        (dict.fromkeys(("Q", "K", "V", "dO"), np.ones((128, 2))) | dict(B_r=1, B_c=1), "16384 tiles.*4096"),
        (
            dict.fromkeys(("Q", "K", "V", "dO"), np.ones((256, 128))) | dict(B_r=1, B_c=256),
            "numbers.*6000000.*larger blocks",
        ),
    ],
    ids=lambda x: str(list(x)) if isinstance(x, dict) else None,
)
def test_a_sentence_in_place_of_the_player_says_what_cannot_be_played(change, words):
    arguments = dict(Q=ONES, K=ONES, V=ONES, dO=ONES, B_r=2, B_c=2) | change
    widget = BackwardPlayer(**arguments)
    assert re.search(words, widget.problem)
    assert repr(widget) == f"BackwardPlayer({widget.problem})"
    data = widget._repr_mimebundle_()[0]
    assert "image/png" not in data and data["text/plain"] == repr(widget)
    assert not widget.frames
    with pytest.raises(ValueError, match=re.escape(widget.problem)):
        widget.figure()


@pytest.mark.parametrize("B_r, B_c, d", [(4, 32, 16), (32, 4, 16), (8, 8, 300)])
def test_no_more_numbers_are_sent_than_were_counted(rng, wrt, B_r, B_c, d):
    widget = BackwardPlayer(*rng.normal(size=(4, 64, d)), B_r=B_r, B_c=B_c, wrt=wrt)
    T_r, T_c = widget.frames["T_r"], widget.frames["T_c"]
    assert len(numbers(widget.frames)) <= widget._numbers(64, 64, d, T_r, T_c)


def test_repr():
    text = "BackwardPlayer(N_q=8, N_k=8, d=4, B_r=4, B_c=2, wrt='kv', causal=False: 8 steps of 2 x 4 tiles"
    widget = BackwardPlayer()
    first = np.abs(np.concatenate(exact(*widget._inputs, {})[1:])).max()
    assert repr(widget) == f"{text}, error from {first:.4g} to below 1e-07)"
    assert in_words(0.25, "float64") == "0.2500" and in_words(1e-9, "float32") == "below 0.001"


def test_picture_for_viewers_without_a_kernel(wrt):
    bundle = lambda: BackwardPlayer(N=64, d=16, B_r=8, B_c=8, wrt=wrt, causal=True)._repr_mimebundle_()[0]  # noqa: E731
    data = bundle()
    assert data["text/plain"].startswith("BackwardPlayer(N_q=64")
    assert "application/vnd.jupyter.widget-view+json" in data
    png = base64.b64decode(data["image/png"])
    assert png.startswith(b"\x89PNG") and len(png) < 60_000
    assert data["image/png"] == bundle()["image/png"]


def test_every_setting_has_a_picture(rng, setting, wrt):
    widget = BackwardPlayer(*inputs(rng, setting), **setting, wrt=wrt)
    T = len(widget.frames["steps"])
    pictures = [widget.figure(at=k).png() for k in range(0, T, 5)]
    assert len(set(pictures)) == len(pictures)
    assert widget.figure().png().startswith(b"\x89PNG")
    if T:
        ended = numbers(widget.frames)[widget.frames["errors"]["whole"] :][T]
        assert widget.figure(at=T - 1).words.endswith(f"; of all: {in_words(ended, widget.frames['dtype'])}.")
    with pytest.raises(IndexError, match=f"at is {T + 1}; there are {T} steps"):
        widget.figure(at=T + 1)


def test_nan_is_shown_as_nan():
    Q, K, V, dO = np.random.default_rng(0).normal(size=(4, 8, 4))
    Q[1, 2] = np.nan
    widget = BackwardPlayer(Q, K, V, dO)
    whole = numbers(widget.frames)[widget.frames["errors"]["whole"] :][:9]
    assert np.isnan(whole).all()
    assert "error from NaN to NaN" in repr(widget) and widget.figure().png()
