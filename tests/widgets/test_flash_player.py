"""The player sends tiled.steps to the page, bit for bit."""

import base64
import re

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import cost, masks, tiled
from flashlib.widgets import ComparePlayers, FlashPlayer
from flashlib.widgets.flash_player import tiled_widget
from flashlib.widgets.flash_player.frames import PACKED, record
from tests import masked

SETTINGS = [
    dict(N_q=8, N_k=8, d=4, B_r=4, B_c=2),
    dict(N_q=7, N_k=5, d=3, B_r=3, B_c=2, causal=True),  # rows 0 and 1 see no key
    dict(N_q=5, N_k=11, d=2, B_r=2, B_c=4, causal=True),
    dict(N_q=9, N_k=3, d=1, B_r=2, B_c=3, causal=True),  # row blocks 0, 1, 2 have no tile at all
    dict(N_q=3, N_k=4, d=5, B_r=1, B_c=1, scale=0.5),
    dict(N_q=3, N_k=0, d=2, B_r=2, B_c=1),
    dict(N_q=0, N_k=3, d=2, B_r=1, B_c=2),
]


def inputs(rng, N_q, N_k, d, dtype=np.float64):
    return tuple(rng.normal(size=(N, d)).astype(dtype) for N in (N_q, N_k, N_k))


def split(setting):
    sizes = {name: setting[name] for name in ("N_q", "N_k", "d")}
    return sizes, {name: x for name, x in setting.items() if name not in sizes}


def numbers(frames):
    return np.frombuffer(frames["buffer"], "<f8")


def same_bits(a, b):
    return np.array_equal(np.asarray(a, "<f8").view("u8"), np.asarray(b, "<f8").view("u8"))


@pytest.fixture(params=["fa1", "fa2"])
def order(request):
    return request.param


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_buffer_is_steps(rng, setting, order, dtype):
    sizes, setting = split(setting)
    Q, K, V = inputs(rng, **sizes, dtype=dtype)
    frames = FlashPlayer(Q, K, V, **setting, order=order).frames
    sent = numbers(frames)
    steps = list(tiled.steps(Q, K, V, **setting, order=order))
    assert len(frames["steps"]) == len(steps)
    for (i, j, r0, r1, c0, c1, _, _, *offsets), step in zip(frames["steps"], steps, strict=True):
        assert (i, j, slice(r0, r1), slice(c0, c1)) == (step.i, step.j, step.rows, step.cols)
        rescaled = {"l_rescaled": step.alpha * step.l_old, "O_acc_rescaled": (step.alpha * step.O_acc_old.T).T}
        assert list(frames["packed"]) == [*PACKED, *rescaled]
        for name, offset in zip(frames["packed"], offsets, strict=True):
            X = rescaled[name] if name in rescaled else getattr(step, name)
            assert same_bits(sent[offset : offset + X.size].reshape(X.shape), X), name
    for name, X in (("Q", Q), ("K", K), ("V", V), ("lse", tiled.attention(Q, K, V, **setting, order=order).lse)):
        offset = frames["inputs"][name]
        assert same_bits(sent[offset : offset + X.size].reshape(X.shape), X), name


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_writes_are_O_as_memory_holds_it(rng, setting, order):
    sizes, setting = split(setting)
    Q, K, V = inputs(rng, **sizes)
    frames = FlashPlayer(Q, K, V, **setting, order=order).frames
    recording = record(Q, K, V, **setting, order=order)
    sent = numbers(frames)
    O, drawn = np.full_like(Q, np.nan), np.full_like(Q, np.nan)
    trace = tiled.steps(Q, K, V, **setting, order=order, O=O)
    T = len(frames["steps"])
    for position in range(T + 1):
        next(trace, None)
        stored = position if order == "fa1" else position - 1  # the last step that has stored by then
        for after, start, stop, offset in frames["writes"]:
            if after <= stored:
                rows = sent[offset : offset + (stop - start) * sizes["d"]]
                drawn[start:stop] = rows.reshape(stop - start, sizes["d"])
        assert same_bits(drawn, O)
        assert same_bits(recording.O_at(stored + 1), O)
    assert not np.isnan(drawn).any()


def test_fa2_writes_a_row_block_once_and_fa1_at_every_step(rng):
    Q, K, V = inputs(rng, 8, 6, 2)
    rows = lambda order: [write[:3] for write in FlashPlayer(Q, K, V, order=order).frames["writes"]]  # noqa: E731
    assert rows("fa2") == [[2, 0, 4], [5, 4, 8]]  # after the last step of each row block
    assert rows("fa1") == [[-1, 0, 8], *([k, 4 * (k % 2), 4 * (k % 2) + 4] for k in range(6))]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_meters_end_at_the_closed_forms(rng, setting, order, dtype):
    sizes, setting = split(setting)
    frames = FlashPlayer(*inputs(rng, **sizes, dtype=dtype), **setting, order=order).frames
    tiling = {name: frames[name] for name in ("B_r", "B_c", "causal")}
    closed_form = {"fa1": cost.fa1_traffic, "fa2": cost.fa2_traffic}[order](**sizes, **tiling, dtype=dtype)
    assert frames["all"] == [closed_form.read, closed_form.written]
    standard = cost.standard_traffic(**sizes, dtype=dtype)
    assert frames["standard"] == [standard.read, standard.written]
    assert frames["sram"][0] == cost.sram_bytes(frames["B_r"], frames["B_c"], sizes["d"], dtype)


def test_meters_count_what_each_step_moves():
    """Worked by hand: N = 8, d = 4 in fp64, tiles of 4 x 2. Q_i is 128 bytes, and so are K_j and V_j together."""
    moved = lambda order: [step[6:8] for step in FlashPlayer(order=order).frames["steps"]]  # noqa: E731
    read = [128 * n for n in (2, 3, 4, 5, 7, 8, 9, 10)]
    written = [0, 0, 0, 160, 160, 160, 160, 320]  # O_i and lse_i, after the last step of a row block
    assert moved("fa2") == [list(pair) for pair in zip(read, written, strict=True)]
    rows = 2 * 128 + 2 * 32  # Q_i, O_i, m_i, l_i
    read = [128 * (k // 2 + 1) + rows * (k + 1) for k in range(8)]
    written = [8 * 4 * 8 + 2 * 64 + (rows - 128) * (k + 1) for k in range(8)]  # the initial values; O_i, m_i, l_i
    assert moved("fa1") == [list(pair) for pair in zip(read, written, strict=True)]


def test_block_sizes_retile(rng):
    Q, K, V = inputs(rng, 8, 6, 4)
    widget = FlashPlayer(Q, K, V, B_r=4, B_c=2, capacity=1024)
    seen = []
    widget.observe(lambda change: seen.append(change.new), names="frames")
    widget.B_c = 3
    assert (widget.frames["T_r"], widget.frames["T_c"], len(widget.frames["steps"])) == (2, 2, 4)
    widget.B_r = 3
    assert (widget.frames["T_r"], widget.frames["T_c"], len(widget.frames["steps"])) == (3, 2, 6)
    widget.order = "fa1"
    widget.causal = True
    assert len(seen) == 4
    expected = FlashPlayer(Q, K, V, B_r=3, B_c=3, order="fa1", causal=True, capacity=1024)
    assert widget.frames == expected.frames
    assert repr(widget) == repr(expected)


def test_block_sizes_are_clamped_to_their_range(rng):
    Q, K, V = inputs(rng, 8, 6, 4)
    widget = FlashPlayer(Q, K, V, B_r=100, B_c=100)
    assert (widget.B_r, widget.B_c) == (8, 6)
    widget.B_r, widget.B_c = 0, -3
    assert (widget.B_r, widget.B_c) == (1, 1)
    widget.B_r, widget.B_c = 9, 7
    assert (widget.B_r, widget.B_c) == (8, 6)
    assert len(widget.frames["steps"]) == 1


def test_the_page_may_ask_for_too_small_a_block(rng):
    Q, K, V = inputs(rng, 128, 128, 2)
    widget = FlashPlayer(Q, K, V, B_r=16, B_c=2)
    assert widget.frames["ranges"]["B_r"] == [2, 128]
    widget.set_state({"B_r": 1})  # as a message from the page does
    assert widget.B_r == 2
    assert len(widget.frames["steps"]) == tiled_widget.MAX_TILES


def test_inputs_are_not_modified_nor_kept(rng):
    Q, K, V = inputs(rng, 6, 6, 3)
    before = [X.copy() for X in (Q, K, V)]
    widget = FlashPlayer(Q, K, V, B_r=2, B_c=2, causal=True)
    frames = widget.frames
    widget.order = "fa1"
    widget._repr_mimebundle_()
    for X, X_before in zip((Q, K, V), before, strict=True):
        assert same_bits(X, X_before)
        X[:] = 0  # as the learner might later
    widget.order = "fa2"
    assert widget.frames == frames


def test_repr(rng):
    widget = FlashPlayer(*inputs(rng, 8, 8, 4), B_r=4, B_c=2)
    text = "FlashPlayer(N_q=8, N_k=8, d=4, B_r=4, B_c=2, order='fa2', causal=False: 8 steps of 2 x 4 tiles)"
    assert repr(widget) == text
    widget.causal = True
    assert repr(widget).endswith("order='fa2', causal=True: 6 steps of 2 x 4 tiles)")


def test_picture_for_viewers_without_a_kernel(rng):
    Q, K, V = inputs(rng, 64, 64, 16)
    bundle = lambda: FlashPlayer(Q, K, V, B_r=8, B_c=8)._repr_mimebundle_()[0]  # noqa: E731
    data = bundle()
    assert data["text/plain"] == repr(FlashPlayer(Q, K, V, B_r=8, B_c=8))
    assert "application/vnd.jupyter.widget-view+json" in data
    png = base64.b64decode(data["image/png"])
    assert png.startswith(b"\x89PNG")
    assert len(png) < 60_000
    assert data["image/png"] == bundle()["image/png"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(K=np.ones((4, 3))), "K has shape"),
        (dict(Q=np.ones((4, 2), int)), "accepted are float16"),
        (dict(Q=[[1.0, 2.0]]), "pass a plain NumPy array"),
        (dict(B_r=0), "B_r is 0"),
        (dict(B_c=2.5), "B_c is 2.5"),
        (dict(order="fa3"), "order is 'fa3'"),
        (dict(causal=1), "causal is 1"),
        (dict(scale=-1), "scale is -1"),
        (dict(capacity=0), "capacity is 0"),
        (dict(Q=None, K=None, V=None, seed=-1), "seed is -1"),
        (dict(K=None, V=None), "pass all, or none"),
        (dict(Q=None, K=None, V=None, N=0), "N is 0"),
        (dict(Q=None, K=None, V=None, d=1.5), "d is 1.5"),
        (dict(Q=np.ones((300, 2)), K=np.ones((300, 2)), V=np.ones((300, 2))), "90000 cells.*65536"),
        (
            dict(Q=np.ones((128, 2)), K=np.ones((128, 2)), V=np.ones((128, 2)), B_r=1, B_c=1),
            "128 x 128 = 16384 tiles.*4096.*larger blocks",
        ),
        (
            dict(Q=np.ones((256, 128)), K=np.ones((256, 128)), V=np.ones((256, 128)), B_r=256, B_c=1),
            "numbers.*6000000.*larger B_c",
        ),
    ],
    ids=lambda x: str(list(x)) if isinstance(x, dict) else None,
)
def test_a_sentence_in_place_of_the_player_says_what_cannot_be_played(change, words):
    arguments = dict(Q=np.ones((4, 2)), K=np.ones((4, 2)), V=np.ones((4, 2)), B_r=2, B_c=2) | change
    widget = FlashPlayer(**arguments)
    assert re.search(words, widget.problem)
    assert repr(widget) == f"FlashPlayer({widget.problem})"
    data = widget._repr_mimebundle_()[0]
    assert "image/png" not in data and data["text/plain"] == repr(widget)
    assert not widget.frames


def test_random_inputs_follow_N_d_and_seed():
    widget = FlashPlayer(seed=3)
    X = np.random.default_rng(3).normal(size=(3, 8, 4))
    assert widget.frames["buffer"] == FlashPlayer(*X).frames["buffer"]
    widget.N, widget.d = 5, 3
    assert (widget.frames["N_q"], widget.frames["N_k"], widget.frames["d"]) == (5, 5, 3)
    assert widget.frames["buffer"] == FlashPlayer(N=5, d=3, seed=3).frames["buffer"]
    widget.seed = 4
    assert widget.frames["buffer"] == FlashPlayer(N=5, d=3, seed=4).frames["buffer"]


def test_sizes_are_clamped_and_blocks_follow():
    widget = FlashPlayer(B_r=8, B_c=8)
    widget.N = 3
    assert (widget.N, widget.B_r, widget.B_c) == (3, 3, 3)
    widget.N, widget.d = 10_000, 10_000
    assert (widget.N, widget.d) == (64, 16)
    assert widget.frames["setting"] == {
        "B_r": 3,
        "B_c": 3,
        "causal": False,
        "order": "fa2",
        "N": 64,
        "d": 16,
        "seed": 0,
    }


def test_one_change_is_computed_and_sent_once():
    widget = FlashPlayer(B_r=8, B_c=8)
    seen = []
    widget.observe(lambda change: seen.append(change.new), names="frames")
    widget.N = 3  # B_r and B_c follow
    assert len(seen) == 1


def test_own_inputs_have_no_N_and_d_to_set(rng):
    assert FlashPlayer().frames["controls"] == ["B_r", "B_c", "causal", "order", "N", "d"]
    widget = FlashPlayer(*inputs(rng, 6, 4, 2))
    assert widget.frames["controls"] == ["B_r", "B_c", "causal", "order"]
    widget.N = 3  # nothing follows
    assert (widget.frames["N_q"], widget.frames["N_k"]) == (6, 4)


def test_a_given_capacity_stays():
    widget = FlashPlayer()
    first = widget.frames["sram"]
    assert first[0] < first[1] == 1024
    widget.B_r = widget.B_c = 8
    assert widget.frames["sram"][1] == 1024 < widget.frames["sram"][0]
    assert FlashPlayer(capacity=300).frames["sram"] == [512, 300]


def test_a_numpy_bool_is_a_bool():
    X = np.ones((4, 2))
    assert FlashPlayer(X, X, X, B_r=2, B_c=2, causal=np.True_).causal is True


MASKS = [
    masks.window(2, 0),
    masks.documents([0, 0, 0, 1, 1, 2, 2, 2, 2, 5, 5]) & masks.causal() & masks.softcap(0.7),
    masks.from_function(lambda r, c: (r - c) % 3 == 0) | masks.prefix(2),
    masks.alibi(0.5),
    masked.Dilated(3) & masks.softcap(0.7),
]


@pytest.mark.parametrize("mask", MASKS, ids=tiled_widget.name_of)
@pytest.mark.parametrize("causal", [False, True])
def test_a_mask_s_steps_are_played(rng, mask, order, causal):
    Q, K, V = inputs(rng, 7, 11, 3)
    setting = dict(B_r=3, B_c=2, causal=causal, mask=mask, order=order)
    frames = FlashPlayer(Q, K, V, **setting).frames
    steps = list(tiled.steps(Q, K, V, **setting))
    assert [tuple(sent[:2]) for sent in frames["steps"]] == [(step.i, step.j) for step in steps]
    at = frames["packed"].index("S_ij") + 8
    for sent, step in zip(frames["steps"], steps, strict=True):
        assert same_bits(numbers(frames)[sent[at] :][: step.S_ij.size].reshape(step.S_ij.shape), step.S_ij)

    hidden = np.zeros((7, 11), bool)
    for row, ends in zip(hidden, frames["masked"], strict=True):
        for first, end in zip(ends[::2], ends[1::2], strict=True):
            row[first:end] = True
    assert np.array_equal(hidden, ~masks.resolve(mask, causal, 7, 11).seen(slice(0, 7), slice(0, 11)))
    assert frames["changed"] == mask.changes_scores
    both = ComparePlayers(Q, K, V, **{name: x for name, x in setting.items() if name != "order"})
    assert both.frames[order]["steps"] == frames["steps"] and both.frames[order]["masked"] == frames["masked"]


def test_causal_can_be_set_only_where_there_is_no_mask():
    for cls in (FlashPlayer, ComparePlayers):
        assert "causal" in cls().frames["controls"]
        player = cls(mask=masks.window(1, 0))
        assert "causal" not in player.frames["controls"]
        assert "mask=window" in repr(player) and "mask" not in repr(cls())


def test_a_mask_that_does_not_fit_is_reported():
    assert "there are 8 keys" in FlashPlayer(mask=masks.documents([0, 1])).problem
    assert "mask is of type int" in ComparePlayers(mask=3).problem
    player = FlashPlayer(mask=masks.documents([0] * 8))
    player.N = 9
    assert player.N == 8 and "there are 9 keys" in player.refused


def test_values_of_a_different_size_are_not_drawn(rng):
    Q, K, V = inputs(rng, 4, 5, 3)
    assert "V (5, 2); they must be equal" in FlashPlayer(Q, K, V[:, :2]).problem


def test_compare_holds_both_orders_as_the_player_does(rng):
    Q, K, V = inputs(rng, 9, 6, 3)
    setting = dict(B_r=4, B_c=2, causal=True)
    both = ComparePlayers(Q, K, V, **setting).frames
    for order in ("fa1", "fa2"):
        alone = FlashPlayer(Q, K, V, **setting, order=order).frames
        assert all(alone[name] == x for name, x in both[order].items())
    assert both["controls"] == ["B_r", "B_c", "causal"]


def test_compare_says_what_each_moves(rng):
    widget = ComparePlayers(N=7, d=3, B_r=4, B_c=2)
    fa1, fa2 = (f(7, 7, 3, B_r=4, B_c=2, dtype="float64").total for f in (cost.fa1_traffic, cost.fa2_traffic))
    standard = cost.standard_traffic(7, 7, 3, dtype="float64").total
    moved = f"fa1 moves {fa1} bytes, fa2 moves {fa2} bytes, standard attention {standard}"
    assert repr(widget) == f"ComparePlayers(N_q=7, N_k=7, d=3, B_r=4, B_c=2, causal=False: {moved})"
    png = base64.b64decode(widget._repr_mimebundle_()[0]["image/png"])
    assert png.startswith(b"\x89PNG") and len(png) < 60_000
    widget.B_c = 7
    assert widget.frames["fa1"]["T_c"] == widget.frames["fa2"]["T_c"] == 1
    assert "K has shape" in ComparePlayers(Q := np.ones((4, 2)), np.ones((4, 3)), Q).problem
