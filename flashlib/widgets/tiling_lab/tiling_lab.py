"""TilingLab: what a block size costs in bytes moved and in SRAM, with the formulas of `flashlib.cost`."""

import traitlets

from flashlib import cost
from flashlib.inputs import check_causal
from flashlib.pictures.canvas import Picture
from flashlib.pictures.number_text import number
from flashlib.widgets.lab import Lab
from flashlib.widgets.settings import one_of, whole
from flashlib.widgets.tiling_lab import figure
from flashlib.widgets.tiling_lab.tile_costs import BLOCKS, FORMS, GPUS, KB, LARGEST, compute, megabytes, tile_words
from flashlib.widgets.widget import script, style

STOPS = {  # of the sliders
    "N": [2**p for p in range(7, 17)],
    "d": [2**p for p in range(4, 9)],
    "B_r": BLOCKS,
    "B_c": BLOCKS,
    "capacity": list(GPUS),
}
LIMITS = {"N": (1, 65_536), "d": (1, 256), "B_r": (4, LARGEST), "B_c": (4, LARGEST), "capacity": (1, 1024)}
CHOICES = {"dtype": list(cost.ITEMSIZE), "order": list(FORMS)}
PANELS = "less", "all"
FIRST_LOOK = "N", "B_r", "B_c", "causal"  # the settings that it depends on


class TilingLab(Lab):
    """Show one head's tiles, N_q = N_k = N, the bytes each algorithm moves, and what one tile holds on chip.

    capacity: KB of SRAM, of 1024 bytes. dtype: a name, as in `cost.ITEMSIZE`. order: "fa1" or "fa2", of the map
    over all block sizes. All can be set later, from Python or on the page; a value that is not accepted then
    changes nothing, and `refused` says why. panels: "less" for a first look, which shows only the tiles, computed
    and skipped, without bytes and SRAM; it cannot be set later. `result` holds everything that is shown.
    """

    _esm = script("tiling_lab/tiling_lab.js")
    _css = style("tiling_lab/tiling_lab.css")

    N = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    B_r = traitlets.Int().tag(sync=True)
    B_c = traitlets.Int().tag(sync=True)
    capacity = traitlets.Int().tag(sync=True)
    dtype = traitlets.Unicode().tag(sync=True)
    causal = traitlets.Bool().tag(sync=True)
    order = traitlets.Unicode().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        N=4096,
        d=64,
        B_r=64,
        B_c=64,
        capacity=99,
        dtype="float16",
        causal=False,
        order="fa2",
        *,
        panels="all",
    ):
        setting = {"N": N, "d": d, "B_r": B_r, "B_c": B_c, "capacity": capacity}
        super().__init__(setting | {"dtype": dtype, "causal": causal, "order": order}, panels=panels)

    def _take(self, panels):
        self._panels = one_of("panels", panels, PANELS)

    def _checked(self, name, value):
        if name == "causal":
            check_causal(value)
            return bool(value)
        if name in CHOICES:
            return one_of(name, value, CHOICES[name])
        low, high = LIMITS[name]
        accepted = f"pass a whole number from {low} to {high}, e.g. {name}={STOPS[name][2]}"
        return whole(name, value, low, high, accepted)

    def _computed(self, setting):
        stops = {name: sorted({*STOPS[name], self._first[name], setting[name]}) for name in STOPS}
        result = {"setting": setting, **setting, "stops": stops, "panels": self._panels, **compute(**setting)}
        return result | _first_look(result) if self._panels == "less" else result

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        less, grid, sram = r["panels"] == "less", r["grid"], r["sram"]
        names = FIRST_LOOK if less else [name for name in self._setting if name != "order"]
        setting = ", ".join(f"{name}={r[name]!r}" for name in names)
        tiles = f"{setting}: {grid['computed']} of {grid['T_r']} x {grid['T_c']} tiles"
        if less:
            return tiles
        moved = ", ".join(f"{name} {megabytes(t['total'])}" for name, t in r["traffic"].items())
        fits = "fits" if sram["fits"] else "does not fit"
        return f"{tiles}, {number(sram['held'] / KB)} KB {fits}, {moved}"


def _first_look(result):
    """Return what a first look changes: blocks of at most N rows, and sentences on the tiles alone."""
    N, stops = result["N"], dict(result["stops"])
    for name in ("B_r", "B_c"):
        stops[name] = [B for B in stops[name] if B <= N or B == result[name]]
    return {"stops": stops, "words": tile_words(N, result["grid"], result["causal"])}
