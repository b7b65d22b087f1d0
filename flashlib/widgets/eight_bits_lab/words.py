"""The sentences of EightBitsLab."""

import numpy as np

from flashlib.lowbit.sums import BITS, STEP
from flashlib.pictures.number_text import number
from flashlib.widgets.eight_bits_lab.problem import COLS, ROWS, SHARE, D

SUMS = {
    "13 bits": f"in {BITS} bits, {STEP} terms at a time",
    "two levels": f"of a tile in {BITS} bits, of tiles in fp32",
    "exact": "exact",
}
MEANS = {
    "none": "around 0",
    "channels": "with a separate mean for each channel of K and V",
    "positive": "with all of V larger than 0",
}


def percent(share: float) -> str:
    """Return a share as text with at most three digits, as the page writes it."""
    return f"{np.format_float_positional(float(f'{100 * share:.3g}'), trim='-')}%"


def inputs(setting: dict) -> str:
    """Return a sentence on Q, K and V."""
    size = setting["outliers"]
    large = f"outliers {size} times as large, one number in {SHARE}" if size > 1 else "no outliers"
    numbers = f"{MEANS[setting['mean']]}, {large}"
    if setting["sharpness"] > 1:
        numbers = f"{numbers}, Q times {setting['sharpness']}"
    return (
        f"{ROWS} queries and {setting['N']} keys of {D} channels, {COLS} channels of V: normal numbers {numbers}."
    )


def error(total: float, causes: list[dict]) -> str:
    """Return a sentence on the error of O and its largest cause."""
    if not total:
        return "O is exact."
    most = max(causes, key=lambda cause: cause["error"])
    sentence = f"O is off by {percent(total)}. Most comes from {most['name']}: alone {percent(most['error'])}"
    return f"{sentence}, {percent(most['part'])} of the sum of squares."


def together(total: float, causes: list[dict]) -> str:
    """Return a sentence on what independent errors would add up to."""
    root = sum(cause["error"] ** 2 for cause in causes) ** 0.5
    return (
        f"Independent errors add up in squares, here to {percent(root)}; all at once they make {percent(total)}."
    )


def how(setting: dict) -> list[str]:
    """Return for each cause a note on what is done, in the order of `rounded_attention.MATTERS`."""
    times, qk, pv = setting["p_times"], setting["qk"], setting["pv"]
    share = {"tensor": "one scale", "block": "a scale for 64 rows", "row": "a scale for each row"}[
        setting["scales"]
    ]
    of_V = "one scale" if setting["scales"] == "tensor" else "a scale for each channel"
    of_QK, of_V = (
        f"in {format}" if format == "fp16" else f"in {format}, {share}"
        for format, share in ((qk, share), (pv, of_V))
    )
    whole = "exact" if qk in ("int8", "fp16") else SUMS["exact" if setting["sums"] == "exact" else "13 bits"]
    return [
        f"{of_QK}, rotated" if setting["rotate"] else of_QK,
        whole,
        f"in {pv}, times {times}" if times > 1 else f"in {pv}",
        f"{of_V}, without its mean" if setting["v_minus_mean"] else of_V,
        "exact" if pv == "fp16" else SUMS[setting["sums"]],
        f"in {setting['o']}",
    ]


def rounding(one: dict) -> str:
    """Return a sentence on what rounding does to the numbers of a tensor."""
    off = f"in {one['format']}: off by {percent(one['error'])}"
    off = f"{off}, {percent(one['zeros'])} become 0" if one["zeros"] else off
    return f"{off}; the largest is {number(one['largest'])}"


def read(bytes_: dict) -> str:
    """Return a sentence on the bytes that are read of K and V."""
    before, numbers, scales = bytes_["before"], bytes_["now"], bytes_["scales"]
    sizes = f"K and V are {_size(before)} in 16 bits. Now they are {_size(numbers + scales)}"
    return f"{sizes}: {_size(numbers)}, and {_size(scales)} of scales, in fp32." if scales else f"{sizes}."


def _size(count):
    return f"{number(count / 1024)} KB" if count >= 1024 else f"{count} bytes"
