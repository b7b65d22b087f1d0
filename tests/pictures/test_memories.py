"""The picture of the memories has their true sizes."""

import io

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from PIL import Image

from flashlib.gpus import GB, GPUS, KB
from flashlib.pictures import memories
from flashlib.pictures.inks import HIGHLIGHT
from tests.pictures.places import Places


def highlighted(gpu, at):
    """Return how many pixels are behind the memory that is highlighted."""
    image = np.asarray(Image.open(io.BytesIO(memories.draw_memories(gpu, at).png())).convert("RGBA")).astype(int)
    rgb = [int(HIGHLIGHT[k : k + 2], 16) for k in (1, 3, 5)]
    rows, columns = np.nonzero(np.abs(image[..., :3] - rgb).max(axis=2) <= 3)
    edge = 5  # pixels that its edge covers
    return (np.ptp(rows) + edge) * (np.ptp(columns) + edge) if len(rows) else 0


@pytest.mark.parametrize("name", memories.DRAWN)
def test_areas_are_bytes(name):
    gpu = GPUS[name]
    assert highlighted(name, None) == 0
    areas = {at: highlighted(name, at) for at in memories.LEVELS}
    assert areas["registers"] / areas["SRAM"] == pytest.approx(gpu.registers / gpu.sram, rel=0.05)
    assert areas["SRAM"] == pytest.approx(gpu.sram / memories.BYTES, rel=0.05)
    assert areas["HBM"] == pytest.approx(memories.SIDE**2, rel=0.05)


@pytest.mark.parametrize("name", memories.DRAWN)
def test_the_small_squares_are_to_the_scale_of_the_large_memory(name, monkeypatch):
    gpu, drawn = GPUS[name], []

    def box(self, x, y, width, height, **options):
        if options.get("fill") == memories.INK:
            drawn.append(width * height)

    monkeypatch.setattr(memories.Picture, "box", box)
    memories.draw_memories(name)
    shares = [gpu.sms * size / gpu.memory for size in (gpu.sram, gpu.registers)]
    assert drawn == pytest.approx([share * memories.SIDE**2 for share in shares])


@pytest.mark.parametrize("name", memories.DRAWN)
def test_the_numbers_are_those_of_the_gpu(name):
    gpu, picture = GPUS[name], memories.draw_memories(name)
    for text in (f"{gpu.memory // GB} GB", f"{gpu.sram // KB} KB", f"{gpu.registers // KB} KB", gpu.kind, name):
        assert text in picture.texts
    assert f"all registers: {gpu.sms * gpu.registers / 2**20:.0f} MB" in picture.texts
    assert f"{gpu.sms} multiprocessors with {gpu.sram // KB} KB of SRAM" in repr(picture)


@pytest.mark.parametrize("at", [None, *memories.LEVELS])
@pytest.mark.parametrize("name", memories.DRAWN)
def test_words_are_in_the_picture_and_do_not_overlap(name, at, monkeypatch):
    places = Places(monkeypatch)
    memories.draw_memories(name, at)
    assert (places.outside(), places.overlapping()) == ([], [])


def test_the_h200_as_the_course_shows_it():
    texts = memories.draw_memories().texts
    assert {"141 GB", "4.8 TB/s", "33 TB/s", "989", "228 KB", "256 KB", "all SRAM: 29 MB"} <= set(texts)
    assert any("30 metres tall" in text for text in texts)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="gpu is 'H300'; accepted are T4, A100"):
        memories.draw_memories("H300")
    with pytest.raises(ValueError, match="gpu is 'MI300X'"):
        memories.draw_memories("MI300X")
    with pytest.raises(ValueError, match="at is 'L2'; accepted are HBM, SRAM, registers"):
        memories.draw_memories(at="L2")
