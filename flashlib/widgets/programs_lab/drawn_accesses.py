"""What ProgramsLab shows of the programs that ran: each access, place by place, and what they do together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flashlib.widgets.programs_lab import words
from flashlib.widgets.programs_lab.accesses import BlockAccess, ShownRun
from flashlib.widgets.programs_lab.tensors import (
    ELEMENT,
    MASKED,
    NOWHERE,
    Tensor,
    element_numbers,
    elements,
    is_meant,
    places,
    states,
)

MOST_IN_A_VALUE = 16  # numbers of a value that are written
MOST_RUNS = 1024  # of elements in memory; more could not be told apart


class AccessPlaces(NamedTuple):
    """All places of accesses, in a row: offsets, see `tensors.states`, elements, rows and columns."""

    offsets: np.ndarray
    states: np.ndarray
    found: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


def compute(run: ShownRun) -> dict:
    """Return what the page draws of a ShownRun, and the sentences on it."""
    accesses = [access for program in run.programs for access in program.accesses]
    numbers = [number for number, program in enumerate(run.programs) for _ in program.accesses]
    bounds = np.cumsum([0, *(access.offsets.size for access in accesses)]).tolist()
    names = list(run.tensors)
    tensors = [names.index(access.pointer) for access in accesses]
    at, bases = _placed(accesses, tensors, list(run.tensors.values()))
    blocks = _blocks(accesses, bounds, at)
    kinds = {access.line: access.kind for access in accesses}
    return {
        "programs": _programs(run, numbers, blocks),
        "tensors": _tensors(run, tensors, bounds, at, accesses),
        "accesses": [
            {
                **{"program": numbers[k], "line": access.line, "turn": access.turn, "kind": access.kind},
                **{"tensor": tensors[k], "base": bases[k], "start": bounds[k], "shape": list(access.shape)},
                "fault": words.fault(blocks[k], run.tensors[access.pointer]),
            }
            for k, access in enumerate(accesses)
        ],
        "values": [
            *(
                [number, line, turn, text]
                for number, program in enumerate(run.programs)
                for line, turn, name, value in program.values
                if (text := written(name, value))
            ),
            *(
                [number, access.line, access.turn, words.wrong(block)]
                for number, access, block in zip(numbers, accesses, blocks, strict=True)
                if block.is_bad
            ),
        ],
        "lines": [
            {"key": key, "number": line.number, "text": line.text, "kind": kinds.get(key, "")}
            for key, line in run.lines.items()
        ],
        "opens": opens(numbers, blocks),
        "launch": run.launch,
        "grid": {
            **{"whole": list(run.grid), "first": [0, 0, 0], "shown": list(run.shown)},
            **{"words": words.grid(run.grid), "choosing": words.choosing(len(run.programs), run.grid)},
        },
        "buffer": _packed(at),
    }


def _placed(accesses: list[BlockAccess], tensors: list[int], of: list[Tensor]) -> tuple[AccessPlaces, list[int]]:
    """Return the AccessPlaces of accesses, and for each the offset of the first element of its drawn matrix.

    tensors: which tensor of `of` each access goes to.
    """
    offsets = np.concatenate([np.zeros(0, int), *(access.offsets for access in accesses)])
    mask = np.concatenate([np.zeros(0, bool), *(access.mask for access in accesses)])
    of_place = np.repeat(np.array(tensors, int), [access.offsets.size for access in accesses])
    found, meant = np.zeros_like(offsets), np.ones_like(mask)
    for k, tensor in enumerate(of):
        found[of_place == k] = elements(tensor, offsets[of_place == k])
    if accesses and accesses[0].rows is not None:
        rows, columns = (np.concatenate([getattr(one, name) for one in accesses]) for name in ("rows", "columns"))
        for k, tensor in enumerate(of):
            meant[of_place == k] = is_meant(tensor, rows[of_place == k], columns[of_place == k])
        return AccessPlaces(offsets, states(found, mask, meant), found, rows, columns), [0] * len(accesses)
    parts = np.split(found, np.cumsum([access.offsets.size for access in accesses])[:-1])
    its = [
        places(of[k], access.offsets, part)
        for k, access, part in zip(tensors, accesses, parts[: len(accesses)], strict=True)
    ]
    rows, columns = (np.concatenate([np.zeros(0, int), *(one[n] for one in its)]) for n in (0, 1))
    return AccessPlaces(offsets, states(found, mask, meant), found, rows, columns), [base for _, _, base in its]


def _packed(at):
    """Return places as int32: offset, state, row and column of each; a larger offset is far out of bounds."""
    ends = np.iinfo(np.int32)
    return (
        np.stack([at.offsets, at.states, at.rows, at.columns], -1).clip(ends.min, ends.max).astype("<i4").tobytes()
    )


def _blocks(accesses, bounds, at):
    """Return each access as the sentences need it."""
    offsets, states, found = at.offsets.tolist(), at.states.tolist(), at.found.tolist()
    return [
        words.AccessSummary(access.pointer, access.kind, offsets[start:end], states[start:end], found[start:end])
        for access, start, end in zip(accesses, bounds[:-1], bounds[1:], strict=True)
    ]


def _programs(run, numbers, blocks):
    """Return what the page shows of each program itself."""
    its = [[] for _ in run.programs]
    for number, block in zip(numbers, blocks, strict=True):
        its[number].append(block)
    axes = max([axis + 1 for axis, n in enumerate(run.grid) if n > 1], default=1)
    return [
        {
            **{"number": list(program.number), "bad": any(block.is_bad for block in its[number])},
            "name": words.name(program.number, axes),
            "words": words.program(program.number, axes, its[number]),
        }
        for number, program in enumerate(run.programs)
    ]


def opens(numbers: Sequence[int], blocks: Sequence[words.AccessSummary]) -> int:
    """Return the number of the program that is shown at first: the first with a fault, else 0."""
    return next((number for number, block in zip(numbers, blocks, strict=True) if block.is_bad), 0)


def _tensors(run, tensors, bounds, at, accesses):
    """Return what the page shows of each tensor."""
    of_place = np.repeat(np.array(tensors, int), np.diff(bounds))
    is_stored = np.repeat(np.array([access.kind == "store" for access in accesses], bool), np.diff(bounds))
    sent = []
    for k, (name, tensor) in enumerate(run.tensors.items()):
        its = AccessPlaces(*(x[of_place == k] for x in at))
        said = (
            stored(name, tensor, its, is_stored[of_place == k]) if len(run.programs) == np.prod(run.grid) else ""
        )
        sent.append(_tensor(name, tensor, its) | {"stored": said})
    return sent


def _tensor(name: str, tensor: Tensor, at: AccessPlaces) -> dict:
    """Return what the page draws of a tensor: its elements, and how far around them some access has a place."""
    low, high = tensor.span
    touched = at.offsets[at.states != MASKED]
    rows, columns = (x[at.rows > NOWHERE] for x in (at.rows, at.columns))
    far = max(64, high - low)  # what is farther outside would leave no room for the elements
    return {
        **{"name": name, "shape": list(tensor.shape), "rows": tensor.rows, "columns": tensor.columns},
        **{"strides": list(tensor.strides), "span": [low, high], "holds": runs(tensor)},
        "reach": [
            max(int(touched.min(initial=low)), low - far),
            min(int(touched.max(initial=high - 1)) + 1, high + far),
        ],
        "around": [
            *(int(rows.min(initial=0)), int(rows.max(initial=tensor.rows - 1)) + 1),
            *(int(columns.min(initial=0)), int(columns.max(initial=tensor.columns - 1)) + 1),
        ],
    }


def runs(tensor: Tensor) -> list[list[int]]:
    """Return the runs of offsets that are elements, [first, the one after the last]; of many, the first ones."""
    edges = np.flatnonzero(np.diff(element_numbers(tensor) >= 0, prepend=False, append=False))
    return (edges.reshape(-1, 2)[:MOST_RUNS] + tensor.span[0]).tolist()


def stored(name: str, tensor: Tensor, at: AccessPlaces, is_stored: np.ndarray) -> str:
    """Return how often all programs together store the elements of a tensor, or "" if none does."""
    if not is_stored.any():
        return ""
    times = np.bincount(at.found[is_stored & (at.states != MASKED) & (at.found >= 0)], minlength=tensor.size)
    return words.stored(name, int((times == 0).sum()), int((times > 1).sum()), tensor.size)


def written(name: str, value: Any) -> str:
    """Return a value of a line as the page writes it next to the line, or "" for tiles and other numbers."""
    if isinstance(value, int):
        return f"{name} = {value}"
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "bi":
        return ""
    if value.ndim == 2 and value.dtype.kind == "b":
        return words.true_places(name, int(value.sum()), value.size)
    if value.ndim != 1:
        return ""
    numbers = value[:MOST_IN_A_VALUE].astype(int).tolist()
    return f"{name} = [{' '.join(map(str, numbers))}{' …' if len(value) > MOST_IN_A_VALUE else ''}]"


def summary(result: dict) -> str:
    """Return how many places all programs together load, store, mask and have out of bounds."""
    states = np.frombuffer(result["buffer"], "<i4").reshape(-1, 4)[:, 1]
    sizes = [int(np.prod(access["shape"])) for access in result["accesses"]]
    kinds = np.repeat(np.array([access["kind"] for access in result["accesses"]], str), sizes)
    loaded, stored = (int(((states == ELEMENT) & (kinds == kind)).sum()) for kind in ("load", "store"))
    masked, wrong = int((states == MASKED).sum()), int((states > ELEMENT).sum())
    return words.summary(len(result["programs"]), loaded, stored, masked, wrong)
