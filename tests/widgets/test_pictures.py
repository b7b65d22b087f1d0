"""What represents a widget where nothing can play: a small picture on a transparent ground, and its words."""

import io

import pytest

pytest.importorskip("anywidget")

from PIL import Image

from flashlib.pictures import inks
from flashlib.pipeline import protocol
from flashlib.widgets import (
    BackwardPlayer,
    ComparePlayers,
    EightBitsLab,
    FlashPlayer,
    MaskLab,
    MergeTree,
    OnlineSoftmaxLab,
    OverflowLab,
    PagesLab,
    PipelinePlayer,
    ProgramsLab,
    RingPlayer,
    ServeLab,
    SplitLab,
    TilingLab,
    TripsPlayer,
)
from tests.pictures.places import Places

LARGE = {"N": 64, "d": 16, "B_r": 8, "B_c": 8, "causal": True}
WIDGETS = {
    "FlashPlayer": FlashPlayer,
    "FlashPlayer, large": lambda: FlashPlayer(**LARGE),
    "BackwardPlayer": BackwardPlayer,
    "BackwardPlayer, large": lambda: BackwardPlayer(**LARGE),
    "ComparePlayers": ComparePlayers,
    "EightBitsLab": EightBitsLab,
    "EightBitsLab, large": lambda: EightBitsLab(
        16_384, 100, mean="positive", qk="int8", scales="row", pv="fp16", rotate=True, v_minus_mean=True
    ),
    "MaskLab": lambda: MaskLab("documents", also="causal"),
    "MaskLab, large": lambda: MaskLab(line="(r & c) == c", N_q=95, N_k=96, B_r=3, B_c=7),
    "MergeTree": MergeTree,
    "OnlineSoftmaxLab": OnlineSoftmaxLab,
    "OnlineSoftmaxLab, never rescaled": lambda: OnlineSoftmaxLab(rescale=False),
    "OverflowLab": OverflowLab,
    "OverflowLab, large": lambda: OverflowLab(-17, offsets=range(-15, 1)),
    "PagesLab": PagesLab,
    "PagesLab, large": lambda: PagesLab("out of pages", page=16, n_pages=32),
    "PipelinePlayer": PipelinePlayer,
    "PipelinePlayer, side by side": lambda: PipelinePlayer(
        {"in turns": protocol.program([5]), "alike": protocol.program_alike([5])}
    ),
    "ProgramsLab": ProgramsLab,
    "ProgramsLab, large": lambda: ProgramsLab("tile", N=16, BLOCK=8, mask=False, transposed=True),
    "RingPlayer": RingPlayer,
    "RingPlayer, large": lambda: RingPlayer(8, 61, layout="striped", mask="window", token=1),
    "ServeLab": ServeLab,
    "ServeLab, large": lambda: ServeLab("too few pages", batch=1, chunk=2),
    "SplitLab": SplitLab,
    "SplitLab, large": lambda: SplitLab(65_536, 256, B=64, record=[(1, 30_000.0), (256, 29_000.0)]),
    "TilingLab": TilingLab,
    "TilingLab, causal": lambda: TilingLab(causal=True, capacity=48),
    "TilingLab, a first look": lambda: TilingLab(N=65_536, B_r=4, B_c=16, causal=True, panels="less"),
    "TripsPlayer": TripsPlayer,
    "TripsPlayer, large": lambda: TripsPlayer(48, 8),
}


@pytest.fixture(params=WIDGETS)
def widget(request):
    return WIDGETS[request.param]()


def test_a_picture_is_small_and_described_in_words(widget, monkeypatch):
    """All texts are inside the picture, and none overlaps another."""
    places = Places(monkeypatch)
    figure = widget.figure()
    assert places.words and places.corners
    assert (places.outside(), places.overlapping()) == ([], [])
    assert len(repr(figure)) > 40 and "\n" not in repr(figure)
    png = figure.png()
    assert len(png) < 60_000 and png == widget.figure().png()
    image = Image.open(io.BytesIO(png)).convert("RGBA")
    assert image.getchannel("A").getextrema() == (0, 255)
    assert image.width <= 930
    assert image.getpixel((0, image.height - 1))[3] <= round(255 * inks.SOFT)
