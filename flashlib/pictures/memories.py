"""The memories of a GPU as a picture: HBM, SRAM and the registers, each drawn in proportion to its size."""

import textwrap
from math import sqrt

from flashlib.gpus import GB, GPUS, KB, MB, SRAM_BYTES
from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import HIGHLIGHT, INK, ON_FILL, READ, WRITTEN

LEVELS = "HBM", "SRAM", "registers"
SIDE = 236  # pixels, of HBM
HEIGHT = 130  # pixels, of SRAM and the registers of one multiprocessor
BYTES = 12  # in a pixel of these two
TOP = 114  # pixels, above them
METRE = 96 / 0.0254  # pixels, as a browser counts them
DRAWN = [name for name, gpu in GPUS.items() if gpu.maker == "NVIDIA"]  # AMD's registers are wider than the picture


def draw_memories(gpu: str = "H200", at: str | None = None) -> Picture:
    """Return a picture of the memories of a GPU of `DRAWN`; at: the one of `LEVELS` to highlight, or None.

    "HBM" is the large memory, even if it is GDDR6. Areas show bytes, at two scales: HBM beside all SRAM and
    registers of the chip, and those of one multiprocessor.
    """
    if gpu not in DRAWN:
        raise ValueError(f"gpu is {gpu!r}; accepted are {', '.join(DRAWN)}")
    if at not in (None, *LEVELS):
        raise ValueError(f"at is {at!r}; accepted are {', '.join(LEVELS)}")
    chip = GPUS[gpu]
    picture = Picture(930, 318, _words(chip))
    picture.shade(0, 0, 264, 318)
    picture.shade(354, 0, 576, 318)
    _draw_large(picture, chip, at)
    _draw_chip(picture, chip, at)
    return picture


def _words(gpu):
    return (
        f"{gpu.name}: {gpu.memory // GB} GB of {gpu.kind}, {gpu.bandwidth / 1e12:.4g} TB/s; {gpu.sms} "
        f"multiprocessors with {gpu.sram // KB} KB of SRAM and {gpu.registers // KB} KB of registers each, "
        f"{gpu.all_sram / MB:.0f} MB and {gpu.sms * gpu.registers / MB:.0f} MB in all"
    )


def _draw_large(picture, gpu, at):
    """Draw the large memory, and what moves between it and the chip."""
    picture.text(14, 20, gpu.kind, 14, face="bold")
    picture.text(250, 20, "large, off the chip", 11, align="r")
    ink = _draw_memory(picture, (14, 40, SIDE, SIDE), at == "HBM")
    picture.text(14 + SIDE / 2, 40 + SIDE / 2, f"{gpu.memory // GB} GB", 24, ink, "m")
    picture.text(14, 298, gpu.name, 11)
    _draw_arrow(picture, 272, 346, 142, READ)
    _draw_arrow(picture, 346, 272, 178, WRITTEN)
    picture.text(309, 160, f"{gpu.bandwidth / 1e12:.4g} TB/s", 12, align="m", face="bold")
    picture.text(309, 126, "read", 11, READ, "m")
    picture.text(309, 194, "written", 11, WRITTEN, "m")


def _draw_chip(picture, gpu, at):
    """Draw SRAM and the registers of the chip, to the scale of HBM, and those of one multiprocessor, enlarged."""
    picture.text(368, 20, f"The chip: {gpu.sms} multiprocessors", 14, face="bold")
    ends = []
    for left, name, size in ((368, "SRAM", gpu.sram), (614, "registers", gpu.registers)):
        width, small = size / BYTES / HEIGHT, SIDE * sqrt(gpu.sms * size / gpu.memory)
        middle = left + width / 2
        picture.box(middle - small / 2, 56 - small, small, small, fill=INK)
        picture.text(middle + 10, 54, f"all {name}: {gpu.sms * size / MB:.0f} MB", 11)
        for corner in (left, left + width):
            picture.line([(middle, 60), (corner, TOP - 2)], dash=(2, 3))
        ink = _draw_memory(picture, (left, TOP, width, HEIGHT), at == name)
        picture.text(middle, TOP + 54, name, 12, ink, "m", "bold")
        picture.text(middle, TOP + 78, f"{size // KB} KB", 13, ink, "m")
        ends.append(left + width)
    for k, line in enumerate(textwrap.wrap(f"one of {gpu.sms}, enlarged", 12)):
        picture.text(566, 82 + 15 * k, line, 11, align="m")
    _draw_speeds(picture, gpu, ends)
    metres = sqrt(gpu.memory / BYTES) / METRE
    picture.text(
        368, 266, f"At the scale of these boxes {gpu.kind} would be {metres:.0f} metres tall.", 13, face="bold"
    )
    picture.text(368, 285, f"Areas are bytes: the two small squares are drawn to the scale of {gpu.kind}.", 11)
    picture.text(368, 302, "SRAM is shared by the threads of a program; registers belong to one thread each.", 11)


def _draw_speeds(picture, gpu, ends):
    """Draw what moves between SRAM, the registers and the arithmetic; ends: the right edges of the boxes."""
    speeds = [f"{SRAM_BYTES} bytes", "a clock"], [f"{gpu.fp16 / 1e12:.0f}", "TFLOP/s"]
    if gpu.sram_bandwidth:
        speeds[0][:] = f"{gpu.sram_bandwidth / 1e12:.0f} TB/s", f"all {gpu.sms}"
    for start, end, (speed, unit) in zip(ends, (614, 876), speeds, strict=True):
        _draw_arrow(picture, start + 8, end - 8, TOP + 40, INK)
        _draw_arrow(picture, end - 8, start + 8, TOP + 92, INK)
        picture.text((start + end) / 2, TOP + 57, speed, 12, align="m", face="bold")
        picture.text((start + end) / 2, TOP + 75, unit, 11, align="m")
    picture.text(882, TOP + 66, "+ ×", 16, face="bold")


def _draw_memory(picture, place, is_marked):
    """Draw a memory; return the ink in which to write on it."""
    picture.box(*place, fill=HIGHLIGHT if is_marked else None, edge=INK, thick=4 if is_marked else 2)
    return ON_FILL if is_marked else INK


def _draw_arrow(picture, start, end, y, ink):
    back = 7 if start < end else -7
    picture.line([(start, y), (end - back, y)], ink, thick=2)
    picture.polygon([(end, y), (end - back, y - 5), (end - back, y + 5)], ink)
