"""Recorded settings: if the sliders of a FlashPlayer have few settings, the page has Python's answer to each.

All settings together have few different numbers, so these are stored once, and each setting has indices into them.
"""

import base64
import hashlib
import json
import zlib
from itertools import product
from typing import NamedTuple

import numpy as np

MOST = 256  # settings
NAMES = ("B_r", "B_c", "causal", "order")
ORDERS = ("fa2", "fa1")


class Record(NamedTuple):
    """The recorded settings of a player. name: of the file, made from its content; text: the script."""

    name: str
    text: str


def of(player):
    """Return the Record of a player, or None if the page could ask for more, or for a different kind of answer."""
    frames = getattr(player, "frames", {})
    if not {*NAMES} <= {*frames.get("controls", ())} or frames["learner"]:
        return None
    choices = _choices(frames)
    if np.prod([len(one) for one in choices]) > MOST:
        return None
    answers = {
        json.dumps(setting, separators=(",", ":")): _answer(player, setting) for setting in product(*choices)
    }
    numbers = np.concatenate([np.frombuffer(frames["buffer"], "<u8") for frames in answers.values()])
    different, places = np.unique(numbers, return_inverse=True)
    if len(different) > 2**16:
        return None
    words = [[key, alone(frames), len(frames["buffer"]) // 8] for key, frames in answers.items()]
    parts = {
        "words": _packed(json.dumps(words, separators=(",", ":")).encode()),
        "numbers": _packed(different.tobytes()),
        "places": _packed(places.astype("<u2").tobytes()),
    }
    text = json.dumps(parts)
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return Record(name, f'flashSite.recorded["{name}"] = {text};\n')


def _choices(frames):
    """Return the values that each of NAMES can have on the page."""
    blocks = [range(low, high + 1) for low, high in (frames["ranges"][name] for name in ("B_r", "B_c"))]
    return [*blocks, (False, True), ORDERS]


def _answer(player, setting):
    with player.hold_trait_notifications():
        for name, value in zip(NAMES, setting, strict=True):
            setattr(player, name, value)
    return dict(player.frames)


def alone(frames):
    """Return frames without their numbers, and with only those controls that are recorded."""
    return {name: value for name, value in frames.items() if name != "buffer"} | {"controls": [*NAMES]}


def _packed(content):
    return base64.b64encode(zlib.compress(content, 9)).decode()
