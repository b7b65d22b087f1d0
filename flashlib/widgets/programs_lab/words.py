"""The sentences of ProgramsLab."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from flashlib.language.phrases import and_list, by_number, counted
from flashlib.widgets.programs_lab.tensors import MASKED, OTHER, OUTSIDE, Tensor

MOST_RUNS, MOST_OFFSETS = 2, 4  # that are named


class AccessSummary(NamedTuple):
    """What the sentences need of an access: its offsets, what each of them is, and which element, if any.

    states: see `tensors.states`. found: the number of the element, or -1.
    """

    pointer: str
    kind: str
    offsets: list[int]
    states: list[int]
    found: list[int]

    @property
    def is_bad(self) -> bool:
        """Whether the program loads or stores what is not its own."""
        return max(self.states, default=MASKED) >= OUTSIDE

    @property
    def masks_only_what_is_missing(self) -> bool:
        """Whether no offset that the mask cuts off is that of an element."""
        return all(found < 0 for state, found in zip(self.states, self.found, strict=True) if state == MASKED)

    def those(self, *states: int) -> list[int]:
        """Return the offsets that are one of `states`, sorted."""
        return sorted({offset for offset, state in zip(self.offsets, self.states, strict=True) if state in states})


def grid(whole: Sequence[int]) -> str:
    """Return what a program is, and how many of them a grid has."""
    axes = [n for n in whole if n != 1]
    if 0 in axes:
        return "A program is one run of the kernel. The grid has no programs, so nothing runs."
    if len(axes) > 1:
        sizes = " × ".join(map(str, axes))
        return f"A program is one run of the kernel; the grid has {sizes} programs, which differ in their numbers."
    if not axes:
        return "A program is one run of the kernel; the grid has 1 program."
    return f"A program is one run of the kernel; the grid has {axes[0]} programs, which differ in their number."


def choosing(shown: int, whole: Sequence[int]) -> str:
    """Return how many programs of a grid there are to choose from."""
    if not shown:
        return "No program runs."
    if shown < math.prod(whole):
        one = f"1 of {math.prod(whole)} programs is shown."
        return by_number(shown, one, f"{shown} of {math.prod(whole)} programs are shown. Click one:")
    return by_number(shown, "1 program runs the code.", f"{shown} programs run the same code. Click one:")


def program(number: Sequence[int], axes: int, blocks: Sequence[AccessSummary]) -> str:
    """Return what a program loads and stores, and what its masks cut off; axes: of its number that are named."""
    name = f"Program {_numbered(number, axes)}"
    loads, stores = (_touched([one for one in blocks if one.kind == kind]) for kind in ("load", "store"))
    if loads and stores:
        said = f"{name} loads {loads}, and stores {stores}."
    elif loads:
        said = f"{name} loads {loads}, and stores nothing."
    else:
        said = f"{name} loads nothing, and stores {stores}." if stores else f"{name} loads and stores nothing."
    masked = _masked(blocks)
    return f"{said} {masked}" if masked else said


def name(number: Sequence[int], axes: int) -> str:
    """Return the name of a program within a sentence."""
    return f"program {_numbered(number, axes)}"


def _numbered(number, axes):
    return str(number[0]) if axes == 1 else f"({', '.join(map(str, number[:axes]))})"


def _touched(blocks):
    """Return the offsets of blocks that are not masked: "offsets 8 and 9 of x_ptr and y_ptr"."""
    of_pointer: dict = {}
    for one in blocks:
        offsets = (offset for offset, state in zip(one.offsets, one.states, strict=True) if state != MASKED)
        of_pointer.setdefault(one.pointer, set()).update(offsets)
    pointers: dict = {}
    for pointer, offsets in of_pointer.items():
        if offsets:
            pointers.setdefault(offsets_named(offsets), []).append(pointer)
    return and_list([f"{offsets} of {and_list(names)}" for offsets, names in pointers.items()])


def _masked(blocks):
    """Return what masks cut off, or ""."""
    cut = [offsets for one in blocks if (offsets := one.those(MASKED))]
    if not cut:
        return ""
    if cut.count(cut[0]) == len(cut) and len(_runs(cut[0])) <= MOST_RUNS:
        named = offsets_named(cut[0])
        if not all(one.masks_only_what_is_missing for one in blocks):
            return f"The mask cuts off {named}."
        one = f"The mask cuts off {named}, which does not exist."
        return by_number(len(cut[0]), one, f"The mask cuts off {named}, which do not exist.")
    counts = {(one.states.count(MASKED), len(one.states)) for one in blocks if MASKED in one.states}
    if len(counts) == 1:
        ((n, every),) = counts
        return by_number(n, f"The mask cuts off 1 of {every} places.", f"The mask cuts off {n} of {every} places.")
    n, every = sum(one.states.count(MASKED) for one in blocks), sum(len(one.states) for one in blocks)
    return f"Its masks cut off {n} of {every} places in all."


def offsets_named(offsets: Iterable[int]) -> str:
    """Return offsets as they are said: "offset 8", "offsets 8 and 9", "16 offsets in 4 runs"."""
    runs = _runs(sorted(offsets))
    count = sum(len(run) for run in runs)
    if count == 1:
        return f"offset {runs[0][0]}"
    if count <= MOST_OFFSETS and len(runs) > 1 or count == 2:
        return f"offsets {and_list([str(offset) for run in runs for offset in run])}"
    if len(runs) > MOST_RUNS:
        return f"{count} offsets in {len(runs)} runs"
    return f"offsets {and_list([_run_named(run) for run in runs])}"


def _run_named(run):
    return str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"


def _runs(offsets):
    """Return sorted offsets as ranges without gaps."""
    runs: list[range] = []
    for offset in offsets:
        if runs and runs[-1].stop == offset:
            runs[-1] = range(runs[-1].start, offset + 1)
        else:
            runs.append(range(offset, offset + 1))
    return runs


def fault(block: AccessSummary, tensor: Tensor) -> str:
    """Return what is wrong with an access: the pointer, its offsets, and how far out they are; or ""."""
    if not block.is_bad:
        return ""
    name, outside, others = block.pointer, block.those(OUTSIDE), block.those(OTHER)
    low, high = tensor.span
    said = []
    if past := [offset for offset in outside if offset >= high]:
        far, offsets = past[-1] - high + 1, offsets_named(past)
        one = f"Out of bounds: {offsets} of {name} is {far} past the end."
        said.append(by_number(len(past), one, f"Out of bounds: {offsets} of {name} are up to {far} past the end."))
    if before := [offset for offset in outside if offset < low]:
        far, offsets = low - before[0], offsets_named(before)
        one = f"Out of bounds: {offsets} of {name} is {far} before the start."
        several = f"Out of bounds: {offsets} of {name} are up to {far} before the start."
        said.append(by_number(len(before), one, several))
    if between := [offset for offset in outside if low <= offset < high]:
        offsets = offsets_named(between)
        one = f"Out of bounds: {offsets} lies between the elements of {name}."
        said.append(by_number(len(between), one, f"Out of bounds: {offsets} lie between the elements of {name}."))
    if others:
        offsets = offsets_named(others)
        one = f"Past an edge: {offsets} of {name} is an element of another row."
        said.append(by_number(len(others), one, f"Past an edge: {offsets} of {name} are elements of another row."))
    return " ".join(said + [_span(name, low, high)] * bool(outside))


def _span(name, low, high):
    """Return which offsets a tensor has."""
    if high - low > 1:
        return f"{name} has the offsets {low} to {high - 1}."
    return f"{name} has the offset {low} alone." if high > low else f"{name} has no elements."


def wrong(block: AccessSummary) -> str:
    """Return how many places of an access are out of bounds."""
    return f"✕ {sum(state >= OUTSIDE for state in block.states)} out of bounds"


def stored(name: str, never: int, twice: int, size: int) -> str:
    """Return how often all programs together store the elements of a tensor."""
    said = []
    if never:
        one = f"1 of {size} elements of {name} is stored by no program."
        said.append(by_number(never, one, f"{never} of {size} elements of {name} are stored by no program."))
    if twice:
        one = f"1 element of {name} is stored more than once."
        said.append(by_number(twice, one, f"{twice} elements of {name} are stored more than once."))
    return " ".join(said) or f"Together, the programs store each element of {name} once."


def true_places(name: str, true: int, size: int) -> str:
    """Return how many places of a mask are true."""
    return f"{name}: {true} of {size} are true"


def summary(programs: int, loaded: int, stored: int, masked: int, wrong: int) -> str:
    """Return how many places all programs together load, store, mask and have out of bounds."""
    done = f"{loaded} places loaded, {stored} stored, {masked} masked, {wrong or 'none'} out of bounds"
    return f"{counted(programs, 'program', 'programs')}, {done}"
