"""The settings of EightBitsLab, the accepted values of each, and the Recipe that they make up."""

import math
from numbers import Real
from typing import Any

from flashlib import lowbit
from flashlib.lowbit import Recipe
from flashlib.widgets.settings import is_whole, one_of

STOPS = {  # of the sliders; nothing else is accepted
    "N": [256, 512, 1024, 2048, 4096, 8192, 16_384],
    "outliers": [1, 2, 5, 10, 20, 50, 100],
    "sharpness": [1, 2, 4, 8],
}
TIMES = [1, 256, 448]
WORDS = {
    "mean": ["none", "channels", "positive"],
    "qk": ["e4m3", "e5m2", "int8", "fp16"],
    "pv": ["e4m3", "e5m2", "fp16"],
    "o": ["bf16", "e4m3"],
    "scales": ["tensor", "block", "row"],
    "sums": ["13 bits", "two levels", "exact"],
}
SWITCHES = "power_of_two", "rotate", "k_minus_mean", "v_minus_mean", "l_rounded"
OF_THE_NUMBERS = "N", "outliers", "sharpness", "mean"
BLOCK = 64  # rows that share a scale
ACCEPTED = 'pass a list of (words, TFLOP/s), e.g. [("e4m3, two levels", 871.5)]'


def checked(name: str, value: Any) -> Any:
    """Return a setting as a built-in type; raise TypeError or ValueError if it is not accepted."""
    if name in WORDS:
        return one_of(name, value, WORDS[name])
    if name in SWITCHES:
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r:.60}; pass True or False")
        return value
    accepted = STOPS.get(name, TIMES)
    if not is_whole(value) or value not in accepted:
        raise ValueError(f"{name} is {value!r:.60}; pass {', '.join(map(str, accepted[:-1]))} or {accepted[-1]}")
    return int(value)


def recipe(setting: dict) -> Recipe:
    """Return what a setting rounds, and how.

    Sums of integers are exact, and so are those of 16-bit numbers, compared with the effect of rounding.
    """
    sums, fine = setting["sums"], setting["scales"] != "tensor"
    return Recipe(
        qk=setting["qk"],
        p=setting["pv"],
        v=setting["pv"],
        o=setting["o"],
        qk_share=setting["scales"],
        v_share="channel" if fine else "tensor",
        block=BLOCK,
        power_of_two=setting["power_of_two"],
        rotate=setting["rotate"],
        k_minus_mean=setting["k_minus_mean"],
        v_minus_mean=setting["v_minus_mean"],
        p_times=float(setting["p_times"]),
        l_from="rounded" if setting["l_rounded"] else "exact",
        s_sums="exact" if sums == "exact" or setting["qk"] in ("int8", "fp16") else "13 bits",
        o_sums="exact" if setting["pv"] == "fp16" else sums,
    )


def settings_of_recipe(recipe: Recipe) -> dict:
    """Return the settings of a Recipe, whose formats and sums must be among the choices."""
    return {
        **{"qk": recipe.qk, "pv": recipe.p, "o": recipe.o},
        **{"scales": "tensor" if recipe.qk_share == "head" else recipe.qk_share},
        **{name: getattr(recipe, name) for name in SWITCHES[:-1]},
        **{"p_times": int(recipe.p_times), "l_rounded": recipe.l_from == "rounded", "sums": recipe.o_sums},
    }


def record_name(setting: dict) -> str:
    """Return a record's name for these choices. P and V in e4m3 and O in bf16 are not mentioned in it."""
    others = ("P and V", setting["pv"], "e4m3"), ("O", setting["o"], "bf16")
    said = [f"{name} in {format}" for name, format, usual in others if format != usual]
    return ", ".join([setting["qk"], setting["sums"], *said])


PRESETS = {
    "plain": lowbit.PLAIN,
    "O in e4m3": lowbit.OUTPUT_TOO,
    "careful": lowbit.CAREFUL,
    "int8 for Q and K": lowbit.INT8,
}


def checked_record(record: Any) -> list[tuple[str, float]]:
    """Return measured speeds, empty for None. Raises TypeError or ValueError for anything else."""
    if record is None:
        return []
    if not isinstance(record, list | tuple):
        raise TypeError(f"record is {record!r:.60}; {ACCEPTED}")
    return [_speed(pair) for pair in record]


def _speed(pair):
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
        raise TypeError(f"record has {pair!r:.60} in it; {ACCEPTED}")
    name, speed = pair
    if isinstance(speed, bool) or not isinstance(speed, Real) or not 0 < speed < math.inf:  # type: ignore[operator]
        raise ValueError(f"record has a speed of {speed!r:.60} in it; {ACCEPTED}")
    return name, float(speed)
