"""What the player sends to the page is tiled.steps, bit for bit."""

import base64

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import tiled
from flashlib.widgets import FlashPlayer, player, widget
from flashlib.widgets.frames import PACKED, record

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
    for (i, j, r0, r1, c0, c1, offset), step in zip(frames["steps"], steps, strict=True):
        assert (i, j, slice(r0, r1), slice(c0, c1)) == (step.i, step.j, step.rows, step.cols)
        for name in PACKED:
            X = getattr(step, name)
            assert same_bits(sent[offset : offset + X.size].reshape(X.shape), X), name
            offset += X.size
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
    for position in range(len(frames["steps"]) + 1):
        next(trace, None)
        for at, start, stop, offset in frames["writes"]:
            if at == position:
                drawn[start:stop] = sent[offset : offset + drawn[start:stop].size].reshape(
                    stop - start, sizes["d"]
                )
        assert same_bits(drawn, O)
        assert same_bits(recording.O_at(position), O)
    assert not np.isnan(drawn).any()


def test_fa2_writes_a_row_block_once_and_fa1_at_every_step(rng):
    Q, K, V = inputs(rng, 8, 6, 2)
    rows = lambda order: [write[:3] for write in FlashPlayer(Q, K, V, order=order).frames["writes"]]  # noqa: E731
    assert rows("fa2") == [[3, 0, 4], [6, 4, 8]]  # with the first step of the next block, and at the end
    assert rows("fa1") == [[0, 0, 8], *([k, 4 * (k % 2), 4 * (k % 2) + 4] for k in range(6))]


def test_block_sizes_retile(rng):
    Q, K, V = inputs(rng, 8, 6, 4)
    widget = FlashPlayer(Q, K, V, B_r=4, B_c=2)
    seen = []
    widget.observe(lambda change: seen.append(change.new), names="frames")
    widget.B_c = 3
    assert (widget.frames["T_r"], widget.frames["T_c"], len(widget.frames["steps"])) == (2, 2, 4)
    widget.B_r = 3
    assert (widget.frames["T_r"], widget.frames["T_c"], len(widget.frames["steps"])) == (3, 2, 6)
    widget.order = "fa1"
    widget.causal = True
    assert len(seen) == 4
    expected = FlashPlayer(Q, K, V, B_r=3, B_c=3, order="fa1", causal=True)
    assert widget.frames == expected.frames
    assert repr(widget) == repr(expected)


def test_block_sizes_out_of_range_are_moved_into_it(rng):
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
    assert widget.frames["range_B_r"] == [2, 128]
    widget.set_state({"B_r": 1})  # as a message from the page does
    assert widget.B_r == 2
    assert len(widget.frames["steps"]) == player.MAX_TILES


def test_inputs_are_not_modified_nor_kept(rng):
    Q, K, V = inputs(rng, 6, 6, 3)
    before = [X.copy() for X in (Q, K, V)]
    widget = FlashPlayer(Q, K, V, B_r=2, B_c=2, causal=True)
    frames = widget.frames
    widget.order = "fa1"
    widget._repr_mimebundle_()
    for X, X_before in zip((Q, K, V), before, strict=True):
        assert same_bits(X, X_before)
        X[:] = 0  # what the learner does afterwards
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
    ("change", "error", "words"),
    [
        (dict(K=np.ones((4, 3))), ValueError, "K has shape"),
        (dict(Q=np.ones((4, 2), int)), TypeError, "accepted are float16"),
        (dict(Q=[[1.0, 2.0]]), TypeError, "pass a plain NumPy array"),
        (dict(B_r=0), ValueError, "B_r is 0"),
        (dict(B_c=2.5), TypeError, "B_c is 2.5"),
        (dict(order="fa3"), ValueError, "order is 'fa3'"),
        (dict(causal=1), TypeError, "causal is 1"),
        (dict(scale=-1), ValueError, "scale is -1"),
        (dict(Q=np.ones((300, 2)), K=np.ones((300, 2)), V=np.ones((300, 2))), ValueError, "90000 cells.*65536"),
        (
            dict(Q=np.ones((128, 2)), K=np.ones((128, 2)), V=np.ones((128, 2)), B_r=1, B_c=1),
            ValueError,
            "128 x 128 = 16384 tiles.*4096.*larger blocks",
        ),
        (
            dict(Q=np.ones((256, 128)), K=np.ones((256, 128)), V=np.ones((256, 128)), B_r=256, B_c=1),
            ValueError,
            "numbers.*4000000.*larger B_c",
        ),
    ],
    ids=lambda x: str(list(x)) if isinstance(x, dict) else None,
)
def test_what_cannot_be_played_is_refused_in_a_sentence(change, error, words):
    arguments = dict(Q=np.ones((4, 2)), K=np.ones((4, 2)), V=np.ones((4, 2)), B_r=2, B_c=2) | change
    with pytest.raises(error, match=words):
        FlashPlayer(**arguments)


def test_text_of_the_page_is_the_files():
    for text, names in (
        (FlashPlayer._esm, ("shared.js", "frames.js", "places.js", "player.js")),
        (FlashPlayer._css, ("shared.css", "player.css")),
    ):
        for name in names:
            assert (widget.FOLDER / name).read_text(encoding="utf-8") in str(text)
    assert "http" not in str(FlashPlayer._esm).replace("http://www.w3.org/2000/svg", "")
    assert "http" not in str(FlashPlayer._css)


def test_a_numpy_bool_is_a_bool():
    X = np.ones((4, 2))
    assert FlashPlayer(X, X, X, B_r=2, B_c=2, causal=np.True_).causal is True
