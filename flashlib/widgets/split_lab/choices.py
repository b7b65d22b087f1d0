"""The settings of SplitLab, and the accepted values of each."""

import math
from numbers import Real

from flashlib import gpus
from flashlib.widgets.settings import one_of, whole
from flashlib.widgets.split_lab import model

COUNTS = {  # name: the smallest and largest value
    "N_k": (1, 65_536),
    "parts": (1, model.MOST_PARTS),
    "B": (1, 64),
    "H_k": (1, 64),
    "group": (1, 64),
    "d": (16, 128),
}
# `decode` has different tiles on older GPUs, without bf16. The model's constants were measured on NVIDIA's.
GPUS = [name for name, gpu in gpus.GPUS.items() if gpu.bf16 and gpu.maker == "NVIDIA"]
CHOICES = {"order": ["row", "tree"], "gpu": GPUS}
STOPS = {  # of the sliders
    "N_k": [100, 256, 512, 1000, 2048, 4096, 8192, 10_000, 16_384, 32_768, 65_536],
    "parts": [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256],
    "B": [1, 2, 4, 8, 16, 32, 64],
    "H_k": [1, 2, 4, 8, 16, 32, 64],
    "group": [1, 2, 4, 8, 16, 32, 64],
    "d": [16, 32, 64, 128],
}


def stops(tiles: int) -> dict[str, list[int]]:
    """Return the stops of the sliders; those of parts end at the most that this many tiles allow."""
    most = min(tiles, model.MOST_PARTS)
    return STOPS | {"parts": sorted({*(n for n in STOPS["parts"] if n <= most), most})}


def checked(name: str, value: object) -> object:
    """Return a setting as a built-in type; raise TypeError or ValueError if it is not accepted."""
    return one_of(name, value, CHOICES[name]) if name in CHOICES else whole(name, value, *COUNTS[name])


def checked_record(record: object) -> list[list[float]]:
    """Return measured times as [parts, microseconds]; raise TypeError or ValueError unless they are such pairs."""
    accepted = "pass a list of (parts, microseconds), e.g. [(1, 64.5), (8, 12.3)]"
    if record is None:
        return []
    if not isinstance(record, list | tuple):
        raise TypeError(f"record is {record!r:.60}; {accepted}")
    for pair in record:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(f"record has {pair!r:.60} in it; {accepted}")
        time = pair[1]
        if isinstance(time, bool) or not isinstance(time, Real) or not 0 < time < math.inf:  # type: ignore[operator]
            raise ValueError(f"record has a time of {time!r:.60} in it; {accepted}")
    most = COUNTS["parts"][1]
    return [[whole("a number of parts in record", parts, 1, most), float(time)] for parts, time in record]
