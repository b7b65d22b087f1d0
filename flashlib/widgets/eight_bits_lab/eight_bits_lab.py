"""EightBitsLab: attention with eight-bit numbers, the errors of S, P and O, and where they come from."""

import traitlets

from flashlib import lowbit
from flashlib.lowbit import Recipe
from flashlib.pictures.canvas import Picture
from flashlib.widgets.eight_bits_lab import choices, figure, rounded_attention, words
from flashlib.widgets.eight_bits_lab.problem import COLS, ROWS
from flashlib.widgets.lab import Lab
from flashlib.widgets.widget import script, style


class EightBitsLab(Lab):
    """Show what eight bits do to attention: numbers on their grid, a score, a sum, and O's error by cause.

    N: keys. outliers: how many times as large one number in 1000 is. sharpness: the factor of Q. mean: "none",
    "channels" (each channel of K and V has its own mean) or "positive" (V is). These determine Q, K and V.
    qk, pv, o: formats of Q and K, of P and V, of O. scales: what shares one, "tensor", "block" (of 64 rows) or
    "row"; V has one in all, or with the finer choices one for each channel. power_of_two: scales are powers of
    two. p_times: the factor of P before it is rounded. rotate: Q and K are rotated. k_minus_mean, v_minus_mean:
    the means are subtracted from K and V. l_rounded: l sums P after rounding. sums: "13 bits", as on Hopper, "two
    levels" or "exact". `recipe` is the `flashlib.lowbit.Recipe`; `choices` lists the accepted values.
    record: measured speeds, a list of (name, TFLOP/s); that of the current choices is marked, see `record_name`.
    All but record can be set later, from Python or on the page; a value that is not accepted then changes nothing,
    and `refused` says why. `result` holds everything that is shown.
    """

    _esm = script("eight_bits_lab/eight_bits_lab.js")
    _css = style("eight_bits_lab/eight_bits_lab.css")

    N = traitlets.Int().tag(sync=True)
    outliers = traitlets.Int().tag(sync=True)
    sharpness = traitlets.Int().tag(sync=True)
    mean = traitlets.Unicode().tag(sync=True)
    qk = traitlets.Unicode().tag(sync=True)
    pv = traitlets.Unicode().tag(sync=True)
    o = traitlets.Unicode().tag(sync=True)
    scales = traitlets.Unicode().tag(sync=True)
    power_of_two = traitlets.Bool().tag(sync=True)
    p_times = traitlets.Int().tag(sync=True)
    l_rounded = traitlets.Bool().tag(sync=True)
    rotate = traitlets.Bool().tag(sync=True)
    k_minus_mean = traitlets.Bool().tag(sync=True)
    v_minus_mean = traitlets.Bool().tag(sync=True)
    sums = traitlets.Unicode().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        N=1024,
        outliers=10,
        *,
        sharpness=1,
        mean="none",
        qk="e4m3",
        pv="e4m3",
        o="bf16",
        scales="tensor",
        power_of_two=False,
        p_times=256,
        l_rounded=False,
        rotate=False,
        k_minus_mean=False,
        v_minus_mean=False,
        sums="13 bits",
        record=None,
    ):
        setting = {"N": N, "outliers": outliers, "sharpness": sharpness, "mean": mean}
        setting |= {"qk": qk, "pv": pv, "o": o, "scales": scales, "power_of_two": power_of_two}
        setting |= {"p_times": p_times, "l_rounded": l_rounded, "rotate": rotate}
        setting |= {"k_minus_mean": k_minus_mean, "v_minus_mean": v_minus_mean, "sums": sums}
        super().__init__(setting, record=record)

    def _take(self, record):
        self._record = choices.checked_record(record)

    _checked = staticmethod(choices.checked)

    @property
    def recipe(self) -> Recipe:
        """What is rounded, and how."""
        return choices.recipe(self.result["setting"])

    def _computed(self, setting):
        of, recipe = tuple(setting[name] for name in choices.OF_THE_NUMBERS), choices.recipe(setting)
        exact = rounded_attention.exact_attention(of, recipe.k_minus_mean)
        now = rounded_attention.attention(of, recipe)
        causes = rounded_attention.causes(of, recipe)
        total = lowbit.error(now.O, exact.O)
        bytes_ = rounded_attention.bytes_read(of, recipe)
        return {
            "setting": setting,
            **{"rows": ROWS, "cols": COLS, "shown": rounded_attention.SHOWN, "points": len(now.keys)},
            "step": lowbit.sums.STEP,
            "opens": rounded_attention.opening_place(exact, now),
            "stops": choices.STOPS,
            "presets": {name: choices.settings_of_recipe(recipe) for name, recipe in choices.PRESETS.items()},
            "total": total,
            "causes": [cause | {"how": how} for cause, how in zip(causes, words.how(setting), strict=True)],
            "rounding": [one | {"words": words.rounding(one)} for one in rounded_attention.rounding(of, recipe)],
            "grids": {name: rounded_attention.grid(setting[name]) for name in ("qk", "pv")},
            "octaves": rounded_attention.OCTAVES,
            "bytes": bytes_,
            "record": self._record,
            "way": choices.record_name(setting),
            "words": [words.inputs(setting), words.error(total, causes), words.together(total, causes)],
            "read": words.read(bytes_),
            "buffer": rounded_attention.pack(exact, now),
        }

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        setting = ", ".join(f"{name}={value!r}" for name, value in r["setting"].items())
        alone = ", ".join(f"{cause['name']} {words.percent(cause['error'])}" for cause in r["causes"])
        return f"{setting}: O is off by {words.percent(r['total'])}; alone {alone}"
