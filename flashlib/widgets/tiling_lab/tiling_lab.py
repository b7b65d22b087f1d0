"""TilingLab: what a block size costs in bytes moved and in SRAM, with the numbers of `flashlib.cost`."""

from numbers import Integral

import traitlets

from flashlib import cost
from flashlib.inputs import check_causal
from flashlib.pictures.numbers import number
from flashlib.widgets.tiling_lab import figure
from flashlib.widgets.tiling_lab.numbers import BLOCKS, FORMS, GPUS, KB, LARGEST, compute, megabytes
from flashlib.widgets.widget import Widget, script, style

STOPS = {  # of the sliders
    "N": [2**p for p in range(7, 17)],
    "d": [2**p for p in range(4, 9)],
    "B_r": BLOCKS,
    "B_c": BLOCKS,
    "capacity": list(GPUS),
}
LIMITS = {"N": (1, 65_536), "d": (1, 256), "B_r": (4, LARGEST), "B_c": (4, LARGEST), "capacity": (1, 1024)}
CHOICES = {"dtype": list(cost.ITEMSIZE), "order": list(FORMS)}


class TilingLab(Widget):
    """Show one head's tiles, N_q = N_k = N, the bytes each algorithm moves, and what one tile holds on chip.

    capacity: KB of SRAM, of 1024 bytes. dtype: a name, as in `cost.ITEMSIZE`. order: "fa1" or "fa2", of the map
    over all block sizes. All can be set later, from Python or on the page; a value that is not accepted then
    changes nothing and is answered in `refused`. `result` holds all that is shown.
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

    def __init__(self, N=4096, d=64, B_r=64, B_c=64, capacity=99, dtype="float16", causal=False, order="fa2"):
        given = {"N": N, "d": d, "B_r": B_r, "B_c": B_c, "capacity": capacity}
        given |= {"dtype": dtype, "causal": causal, "order": order}
        try:
            self._given = {name: _checked(name, value) for name, value in given.items()}
        except (TypeError, ValueError) as error:
            super().__init__(problem=f"{error}.")
            return
        super().__init__(**self._given, result=self._computed(self._given))
        self.observe(self._compute, names=list(given))

    @traitlets.validate("N", "d", "B_r", "B_c", "capacity", "dtype", "causal", "order")
    def _accepted(self, proposal):
        name, value = proposal.trait.name, proposal.value
        if not self.result:  # under construction, and checked there
            return value
        try:
            value = _checked(name, value)
            self.refused = ""
        except (TypeError, ValueError) as error:
            self.refused = f"{error}. It stays {self.result[name]}."
            value = self.result[name]
        return value

    def _compute(self, change):
        setting = {name: getattr(self, name) for name in self._given}
        if setting != {name: self.result[name] for name in setting}:  # a message may change two at once
            self.result = self._computed(setting)

    def _computed(self, setting):
        stops = {name: sorted({*STOPS[name], self._given[name], setting[name]}) for name in STOPS}
        return {**setting, "stops": stops, **compute(**setting)}

    def figure(self):
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        setting = ", ".join(f"{name}={r[name]!r}" for name in self._given if name != "order")
        grid, sram = r["grid"], r["sram"]
        moved = ", ".join(f"{name} {megabytes(t['total'])}" for name, t in r["traffic"].items())
        fits = "fits" if sram["fits"] else "does not fit"
        tile = f"{grid['computed']} of {grid['T_r']} x {grid['T_c']} tiles, {number(sram['held'] / KB)} KB {fits}"
        return f"{setting}: {tile}, {moved}"


def _checked(name, value):
    """Return a setting as Python's own kind; raise TypeError or ValueError if it is not accepted."""
    if name == "causal":
        check_causal(value)
        return bool(value)
    if name in CHOICES:
        if not isinstance(value, str) or value not in CHOICES[name]:
            raise ValueError(f"{name} is {value!r}; pass one of {', '.join(map(repr, CHOICES[name]))}")
        return value
    low, high = LIMITS[name]
    accepted = f"pass a whole number from {low} to {high}, e.g. {name}={STOPS[name][2]}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} is {value!r}; {accepted}")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; {accepted}")
    return int(value)
