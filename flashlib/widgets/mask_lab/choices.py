"""The settings of MaskLab, the accepted values of each, and the mask that they make up."""

import re
from typing import Any

import numpy as np

from flashlib import masks
from flashlib.masks import Mask
from flashlib.widgets.flash_player.tiled_widget import name_of
from flashlib.widgets.mask_lab import expression
from flashlib.widgets.settings import one_of, whole

LARGEST = 96  # rows and keys: more could not be distinguished
COUNTS = {  # name: the smallest and largest value, and whether None is accepted
    "left": (0, LARGEST, True),
    "right": (0, LARGEST, True),
    "n": (0, LARGEST, False),
    "block": (1, LARGEST, False),
    "share": (0, 100, False),
    "N_q": (1, LARGEST, False),
    "N_k": (1, LARGEST, False),
    "B_r": (1, LARGEST, False),
    "B_c": (1, LARGEST, False),
    "d": (1, 256, False),
}
KINDS = {  # name: its own settings
    "causal": (),
    "window": ("left", "right"),
    "prefix": ("n",),
    "documents": ("lengths",),
    "blocks": ("block", "share"),
    "line": ("line",),
    "given": (),
}
ALSO = "none", "causal", "window", "documents"
TEXTS = {"lengths": "20, 9, 27, 8", "line": "(r - c) % 3 == 0"}
SIZES = "N_q", "N_k", "B_r", "B_c", "d"
MOST_SHOWN = 8  # lengths in the code


def checked(name: str, value: Any) -> Any:
    """Return a setting as a built-in type; raise TypeError or ValueError if it is not accepted."""
    if name == "kind" and (not isinstance(value, str) or value not in KINDS):
        kinds = ", ".join(repr(kind) for kind in KINDS if kind != "given")
        raise ValueError(f"The kind of mask is {value!r:.60}; pass {kinds}, or one of flashlib.masks")
    if name == "also":
        return one_of(name, value, ALSO)
    if name in TEXTS and not isinstance(value, str):
        raise TypeError(f"{name} is {value!r:.60}; pass a text, such as {TEXTS[name]!r}")
    if name == "lengths":
        read_lengths(value)
    if name == "line":
        expression.read(value, 1, 1)
    if name not in COUNTS:
        return value
    low, high, optional = COUNTS[name]
    if value is None and optional:
        return None
    accepted = f"pass a whole number from {low} to {high}, or None for no bound" if optional else ""
    return whole(name, value, low, high, accepted)


def used(kind: str, also: str) -> list[str]:
    """Return the names of the settings that determine the mask."""
    return [*KINDS[kind], *(KINDS[also] if also not in ("none", kind) else ())]


def as_text(lengths: Any) -> Any:
    """Return lengths such as (20, 9) as they would be typed; anything else unchanged."""
    try:
        return lengths if isinstance(lengths, str) else ", ".join(map(str, lengths))
    except TypeError:
        return lengths


def read_lengths(text: str) -> list[int]:
    """Return the lengths of documents in a text; raise ValueError unless they are integers of at least 1."""
    words = re.split(r"[\s,]+", text.strip(" ,\t\n"))
    bad = [word for word in words if not re.fullmatch(r"0*[1-9][0-9]{0,3}", word)]
    if bad:
        raise ValueError(
            f"lengths: {bad[0]!r} is not a length; write whole numbers from 1 on, with commas or spaces between, "
            "e.g. 20, 9, 27"
        )
    return [int(word) for word in words]


def pack(lengths: list[int], N: int) -> list[int]:
    """Return the lengths that fill N tokens: what goes beyond is cut off, a remainder is one more document."""
    ends = np.minimum(np.cumsum(lengths), N)
    packed = np.diff(ends, prepend=0)
    return [int(length) for length in [*packed, N - ends[-1]] if length]


def table(block: int, share: int, N_q: int, N_k: int) -> np.ndarray:
    """Return a table of blocks with `share` percent of them seen: first the diagonal, then random ones."""
    T_r, T_c = -(-N_q // block), -(-N_k // block)
    order = np.random.default_rng(0).random((T_r, T_c))
    i = np.arange(T_r)
    j = (i * block + max(N_k - N_q, 0)) // block
    on = j < T_c
    order[i[on], j[on]] -= 1
    chosen = np.zeros(T_r * T_c, bool)
    chosen[np.argsort(order, axis=None, kind="stable")[: round(share * T_r * T_c / 100)]] = True
    return chosen.reshape(T_r, T_c)


def make(setting: dict, given: Mask | None = None) -> tuple[Any, str]:
    """Return the mask of a setting, and the code that makes it; `given` is the mask of kind "given"."""
    kind, also = setting["kind"], setting["also"]
    if kind == "given":
        mask, code = given, name_of(given)  # type: ignore[arg-type]
    else:
        mask, code = MADE[kind](setting)
    if also in ("none", kind):
        return mask, code
    second, second_code = MADE[also](setting)
    return mask & second, f"{code} & {second_code}"


def _causal(setting):
    return masks.causal(), "masks.causal()"


def _window(setting):
    left, right = setting["left"], setting["right"]
    return masks.window(left, right), f"masks.window({left}, {right})"


def _prefix(setting):
    return masks.prefix(setting["n"]), f"masks.prefix({setting['n']})"


def _documents(setting):
    packed = pack(read_lengths(setting["lengths"]), setting["N_k"])
    shown = str(packed) if len(packed) <= MOST_SHOWN else "lengths"
    ids = f"np.repeat(range({len(packed)}), {shown})"
    return masks.documents(np.repeat(range(len(packed)), packed)), f"masks.documents({ids})"


def _blocks(setting):
    block, share = setting["block"], setting["share"]
    seen = table(block, share, setting["N_q"], setting["N_k"])
    return masks.blocks(seen, block, block), f"masks.blocks(table, {block}, {block})"


def _line(setting):
    line = setting["line"], setting["N_q"], setting["N_k"]
    return masks.from_function(expression.read(*line)), (
        f"masks.from_function(lambda r, c: {expression.code(*line)})"
    )


MADE = {
    "causal": _causal,
    "window": _window,
    "prefix": _prefix,
    "documents": _documents,
    "blocks": _blocks,
    "line": _line,
}
