"""TilingLab shows the results of the closed forms, and its sentences are true for every block size."""

import base64

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import cost, tiled
from flashlib.pictures.number_text import number
from flashlib.widgets import TilingLab
from flashlib.widgets.tiling_lab.tile_costs import BLOCKS, FORMS, LARGEST, break_even

SETTINGS = [
    dict(),
    dict(N=1000, d=128, B_r=48, B_c=16, capacity=48, causal=True, order="fa1"),
    dict(N=65_536, d=256, B_r=4, B_c=256, causal=True),
    dict(N=128, d=256, B_r=1024, B_c=1024, dtype="float32", order="fa1"),
    dict(N=512, d=16, B_r=128, B_c=8, capacity=227, dtype="float64", causal=True),
    dict(N=1, d=1, B_r=4, B_c=4, capacity=1, dtype="bfloat16"),
]


@pytest.fixture(params=SETTINGS, ids=str)
def lab(request):
    return TilingLab(**request.param)


def sizes(lab):
    return (lab.N, lab.N, lab.d), {"dtype": lab.dtype, "causal": lab.causal}


def moved(lab, order, B_r, B_c):
    N, rest = sizes(lab)
    return FORMS[order](*N, B_r=B_r, B_c=B_c, **rest).total


def standard(lab):
    return cost.standard_traffic(*sizes(lab)[0], dtype=lab.dtype).total


def test_bytes_are_the_closed_forms(lab):
    N, rest = sizes(lab)
    tile = {"B_r": lab.B_r, "B_c": lab.B_c}
    expected = {
        "standard": cost.standard_traffic(*N, dtype=lab.dtype),
        "FA1": cost.fa1_traffic(*N, **tile, **rest),
        "FA2": cost.fa2_traffic(*N, **tile, **rest),
    }
    assert list(lab.result["traffic"]) == list(expected)
    for name, traffic in lab.result["traffic"].items():
        assert (traffic["read"], traffic["written"]) == (expected[name].read, expected[name].written)
        assert traffic["total"] == expected[name].total
        assert traffic["ratio"] == expected[name].total / expected["standard"].total
        size = {"MB": 1e6, "GB": 1e9}[traffic["text"]["unit"]]
        for kind in ("read", "written", "total"):
            assert traffic["text"][kind] == number(traffic[kind] / size)
    assert lab.result["flops"] == cost.flops(*N, causal=lab.causal)


def test_the_pieces_of_a_tile_are_what_it_holds(lab):
    sram = lab.result["sram"]
    assert list(sram["pieces"]) == ["Q_i", "K_j", "V_j", "O_acc", "S_ij", "m, l"]
    assert sum(sram["pieces"].values()) == sram["held"] == cost.sram_bytes(lab.B_r, lab.B_c, lab.d, lab.dtype)
    assert sram["room"] == 1024 * lab.capacity
    assert sram["fits"] == (sram["held"] <= sram["room"])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("N", "B_r", "B_c"), [(16, 4, 4), (37, 8, 5), (12, 5, 30), (9, 64, 4)])
def test_computed_tiles_are_the_steps(N, B_r, B_c, causal):
    grid = TilingLab(N=N, d=1, B_r=B_r, B_c=B_c, causal=causal).result["grid"]
    X = np.ones((N, 1))
    for order in FORMS:
        steps = list(tiled.steps(X, X, X, B_r=B_r, B_c=B_c, causal=causal, order=order))
        assert grid["computed"] == len(steps)
    computed = {(step.i, step.j) for step in steps}
    assert grid["tiles"] == grid["T_r"] * grid["T_c"]
    assert grid["tall"] == grid["wide"] == 1
    assert grid["whole"] == grid["some"] == [sum(i == k for k, _ in computed) for i in range(grid["T_r"])]
    assert grid["rows"] == [*(i * B_r for i in range(grid["T_r"])), N]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("N", "B_r", "B_c"), [(4096, 4, 4), (1000, 4, 7), (1000, 7, 4), (3001, 1000, 5)])
def test_a_square_that_stands_for_many_tiles_shows_how_many_are_computed(N, B_r, B_c, causal):
    grid = TilingLab(N=N, B_r=B_r, B_c=B_c, causal=causal).result["grid"]
    tiles = cost.tiles_per_row_block(N, N, B_r=B_r, B_c=B_c, causal=causal)
    computed = np.arange(grid["T_c"]) < tiles[:, None]
    tall, wide = grid["tall"], grid["wide"]
    assert max(tall, wide) > 1
    squares = np.ix_(range(0, grid["T_r"], tall), range(0, grid["T_c"], wide))
    whole = np.array(
        [[computed[i : i + tall, j : j + wide].all() for j in squares[1][0]] for i in squares[0][:, 0]]
    )
    some = np.array(
        [[computed[i : i + tall, j : j + wide].any() for j in squares[1][0]] for i in squares[0][:, 0]]
    )
    assert max(whole.shape) <= 64
    columns = np.arange(whole.shape[1])
    assert np.array_equal(whole, columns < np.array(grid["whole"])[:, None])
    assert np.array_equal(some, columns < np.array(grid["some"])[:, None])
    assert (len(grid["rows"]), len(grid["cols"])) == (whole.shape[0] + 1, whole.shape[1] + 1)
    assert grid["rows"][-1] == grid["cols"][-1] == N
    assert grid["rows"][1] == min(tall * B_r, N) and grid["cols"][1] == min(wide * B_c, N)


def test_map(lab):
    m = lab.result["map"]
    assert m["blocks"] == BLOCKS == [4, 8, 16, 32, 64, 128, 256, 512, 1024]
    for B_r, ratios, fits in zip(BLOCKS, m["ratios"], m["fits"], strict=True):
        assert ratios == [moved(lab, lab.order, B_r, B_c) / standard(lab) for B_c in BLOCKS]
        held = [cost.sram_bytes(B_r, B_c, lab.d, lab.dtype) for B_c in BLOCKS]
        assert fits == [x <= 1024 * lab.capacity for x in held]


def test_the_best_tile_fits_and_none_that_fits_moves_less(lab):
    m = lab.result["map"]
    fitting = [
        moved(lab, lab.order, B_r, B_c)
        for B_r in BLOCKS
        for B_c in BLOCKS
        if cost.sram_bytes(B_r, B_c, lab.d, lab.dtype) <= 1024 * lab.capacity
    ]
    best = m["best"]
    assert best["total"] == min(fitting) == moved(lab, lab.order, best["B_r"], best["B_c"])
    assert m["fits"][BLOCKS.index(best["B_r"])][BLOCKS.index(best["B_c"])]
    assert m["words"].startswith(f"best that fits, {best['B_r']} × {best['B_c']}: ")


@pytest.mark.parametrize(
    ("capacity", "order", "tile"), [(99, "fa2", (128, 64)), (163, "fa2", (256, 32)), (99, "fa1", (16, 256))]
)
def test_best_tiles_of_the_exercise(capacity, order, tile):
    best = TilingLab(capacity=capacity, order=order).result["map"]["best"]
    assert (best["B_r"], best["B_c"]) == tile


def test_no_tile_fits():
    lab = TilingLab(d=256, capacity=5)
    assert lab.result["map"]["best"] is None
    assert lab.result["map"]["words"] == "No tile of this map fits into 5 KB."
    assert lab.figure().png().startswith(b"\x89PNG")


@pytest.mark.parametrize("order", ["fa1", "fa2"])
@pytest.mark.parametrize(
    ("N", "d", "other", "causal"),
    [
        *((4096, 64, 64, causal) for causal in (False, True)),
        *((128, 256, 32, causal) for causal in (False, True)),
        (256, 256, 16, True),  # FA2 goes up and down between 64 and 86
        (949, 247, 128, True),  # and here four times between 64 and 73
        (1000, 100, 7, True),
        (2000, 1, 4, False),
        (1, 1, 4, False),
    ],
)
def test_from_break_even_on_it_never_moves_more(order, N, d, other, causal):
    names = {"fa1": ("B_c", "B_r"), "fa2": ("B_r", "B_c")}[order]
    most = cost.standard_traffic(N, N, d, dtype="float16").total

    def more(B):
        tile = dict(zip(names, (B, other), strict=True))
        return FORMS[order](N, N, d, **tile, dtype="float16", causal=causal).total > most

    last = max((B for B in range(1, LARGEST + 1) if more(B)), default=0)
    assert break_even(order, other, N, d, "float16", causal) == (last + 1 if last < LARGEST else None)


def test_break_even_of_the_text():
    assert break_even("fa2", 64, 4096, 64, "float16", False) == 32
    assert break_even("fa1", 64, 4096, 64, "float16", False) == 50
    assert break_even("fa2", 64, 256, 256, "float16", False) == 86
    assert break_even("fa1", 64, 256, 256, "float16", False) == 256


def test_words(lab):
    words = lab.result["words"]
    assert len(words) == 3
    assert ("does not fit" in words[0]) == (not lab.result["sram"]["fits"])
    least = min(lab.result["traffic"].values(), key=lambda traffic: traffic["total"])
    assert f"moves least of the three: {least['text']['total']} {least['text']['unit']}." in words[0]
    for name, sentence in zip(("FA1", "FA2"), words[1:], strict=True):
        ratio = lab.result["traffic"][name]["ratio"]
        assert sentence.startswith(f"{name} moves ") and f" {number(ratio)} " in sentence
        assert ("moves more than standard attention" in sentence) == (ratio > 1)


def test_words_of_each_kind():
    words = TilingLab(B_r=16, B_c=16).result["words"]
    assert words == [
        "A tile of 16 × 16 holds 11.12 KB and fits into 99 KB. With it standard attention moves least "
        "of the three: 136.3 MB.",
        "FA1 moves more than standard attention, 3.089 times as much; from B_c = 50 on it does not.",
        "FA2 moves more than standard attention, 1.977 times as much; from B_r = 32 on it does not.",
    ]
    lab = TilingLab(N=128, d=256, B_r=128, B_c=64, causal=True)
    assert lab.result["words"][0].startswith("A tile of 128 × 64 holds 289 KB and does not fit into 99 KB: 190 KB")
    assert TilingLab(N=128, d=256).result["words"][1].endswith("times as much; it moves more at every B_c.")
    assert TilingLab(N=4096, d=1).result["words"][2].endswith("standard attention moves; never more.")
    assert "(B_c = 64)" in lab.result["words"][2]  # under a mask the other size matters


@pytest.mark.parametrize(
    "change",
    [
        dict(N=512),
        dict(d=128),
        dict(B_r=256),
        dict(B_c=4),
        dict(capacity=227),
        dict(dtype="float32"),
        dict(causal=True),
        dict(order="fa1"),
        dict(B_r=16, B_c=512),
    ],
    ids=str,
)
def test_changes_from_the_page(change):
    lab = TilingLab()
    seen = []
    lab.observe(lambda change: seen.append(change.new), names="result")
    lab.set_state(change)  # as a message from the page does
    assert len(seen) == 1
    expected = TilingLab(**change)
    assert lab.result == expected.result
    assert repr(lab) == repr(expected)


def test_a_given_size_stays_a_stop_of_the_slider():
    lab = TilingLab(N=1000)
    assert lab.result["stops"]["N"] == [128, 256, 512, 1000, *(2**p for p in range(10, 17))]
    lab.N = 4096
    assert 1000 in lab.result["stops"]["N"]
    lab.B_c = 50
    assert 50 in lab.result["stops"]["B_c"]
    lab.B_c = 64
    assert 50 not in lab.result["stops"]["B_c"]
    assert lab.result["stops"]["capacity"] == [48, 64, 99, 163, 227]


BAD = [
    (dict(N=0), "N is 0; pass a whole number from 1 to 65536, e.g. N=512."),
    (dict(N=65_537), "N is 65537; pass a whole number from 1 to 65536"),
    (dict(N=True), "N is True; pass a whole number"),
    (dict(d=257), "d is 257; pass a whole number from 1 to 256, e.g. d=64."),
    (dict(B_r=2.5), "B_r is 2.5; pass a whole number from 4 to 1024"),
    (dict(B_c="64"), "B_c is '64'; pass a whole number"),
    (dict(B_c=2), "B_c is 2; pass a whole number from 4 to 1024"),
    (dict(capacity=-1), "capacity is -1; pass a whole number from 1 to 1024, e.g. capacity=99."),
    (dict(dtype="int8"), "dtype is 'int8'; pass one of 'float16', 'bfloat16', 'float32', 'float64'."),
    (dict(dtype=np.zeros(2)), "dtype is array([0., 0.]); pass one of"),
    (dict(causal=1), "causal is 1; pass True or False."),
    (dict(order="fa3"), "order is 'fa3'; pass one of 'fa1', 'fa2'."),
    (dict(panels="few"), "panels is 'few'; pass one of 'less', 'all'."),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=str)
def test_a_sentence_says_what_cannot_be_shown(change, words):
    lab = TilingLab(**change)
    assert lab.problem.startswith(words)
    assert lab.problem.endswith(".")
    assert repr(lab) == f"TilingLab({lab.problem})"
    assert "image/png" not in lab._repr_mimebundle_()[0]


@pytest.mark.parametrize(
    "change",
    [dict(N=0), dict(d=1000), dict(B_r=3), dict(capacity=0), dict(dtype="int8"), dict(order="fa3")],
    ids=str,
)
@pytest.mark.parametrize("from_page", [True, False])
def test_a_later_request_that_is_refused_changes_nothing(change, from_page):
    lab = TilingLab(B_r=128)
    before = lab.result
    ((name, value),) = change.items()
    if from_page:
        lab.set_state(change)
    else:
        setattr(lab, name, value)
    assert lab.refused.startswith(f"{name} is {value!r}; pass")
    assert lab.refused.endswith(f"It stays {before[name]!r}.")
    assert lab.result is before
    assert getattr(lab, name) == before[name]
    lab.B_c = 128
    assert lab.refused == ""
    assert lab.result["B_c"] == 128


def test_an_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="block"):
        TilingLab(block=4)


def test_integers_of_numpy_are_accepted():
    lab = TilingLab(N=np.int64(512), B_r=np.int32(16), causal=np.True_)
    assert repr(lab) == repr(TilingLab(N=512, B_r=16, causal=True))


def test_repr():
    assert repr(TilingLab()) == (
        "TilingLab(N=4096, d=64, B_r=64, B_c=64, capacity=99, dtype='float16', causal=False: "
        "4096 of 64 x 64 tiles, 56.50 KB fits, standard 136.3 MB, FA1 106.5 MB, FA2 68.17 MB)"
    )
    assert "2080 of 64 x 64 tiles, 56.50 KB does not fit" in repr(TilingLab(capacity=48, causal=True))


def test_a_first_look_is_on_tiles_alone():
    lab, whole = (TilingLab(N=64, B_r=16, B_c=16, causal=True, panels=panels) for panels in ("less", "all"))
    assert repr(lab) == "TilingLab(N=64, B_r=16, B_c=16, causal=True: 10 of 4 x 4 tiles)"
    assert lab.result["grid"] == whole.result["grid"]
    assert lab.result["stops"] == whole.result["stops"] | {name: [4, 8, 16, 32, 64] for name in ("B_r", "B_c")}
    assert lab.result["words"] == [
        "The causal mask hides 49.22% of the scores.",
        "Only tiles without any visible score are skipped: 6 of 16, or 37.50%.",
    ]
    lab.causal = False
    assert lab.result["words"] == ["Without a mask every score is seen.", "So every tile is computed: 16 of 16."]


def test_a_first_look_takes_a_block_of_more_than_N_rows_if_asked():
    lab = TilingLab(N=64, B_r=128, panels="less")
    assert lab.result["stops"]["B_r"] == [4, 8, 16, 32, 64, 128] and lab.result["grid"]["T_r"] == 1
    lab.B_r = 32
    assert lab.result["stops"]["B_r"] == [4, 8, 16, 32, 64]


def test_picture_for_viewers_without_a_kernel(lab):
    data = lab._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(lab)
    png = base64.b64decode(data["image/png"])
    assert png.startswith(b"\x89PNG")
    assert len(png) < 60_000
    assert png == lab.figure().png()
