"""The functions with which kernels change scores, as masks name them, and their numbers on the device."""

from collections.abc import Iterable
from typing import NamedTuple

from flashlib import masks
from flashlib.kernels.masking import biases
from flashlib.kernels.masking.device_side import ScoreChange
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.kernels.masking.score_tests import device_function, device_lines, on_device


class ScoreChanges(NamedTuple):
    """The changes of scores in their order, their numbers, and their Lines, see `MaskArgs`."""

    functions: tuple[ScoreChange, ...]
    numbers: tuple
    lines: tuple


def score_changes(change: Iterable[masks.Mask], sizes: PassSizes) -> ScoreChanges:
    """Return the changes of masks, in their order; raise TypeError or ValueError if kernels lack one."""
    each = [_score_change(part, sizes) for part in change]
    return ScoreChanges(*zip(*each, strict=True)) if each else ScoreChanges((), (), ())


def _score_change(part, sizes):
    change = part.device_change(sizes.place, sizes.H)
    lines = device_lines(change.lines)
    if change.lookup is not None:
        return *biases.bias_change(change), lines
    functions = ScoreChange(device_function(change.score), device_function(change.slope))
    return functions, on_device(change.numbers, sizes.device), lines


def check_changes(change: Iterable[masks.Mask], place: masks.Place, H: int) -> None:
    """Raise TypeError or ValueError unless kernels can change scores of H heads as these masks do."""
    for part in change:
        part.device_change(place, H)
