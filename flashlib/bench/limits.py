"""Time six launches as they are and after the moves that limits call for: *Name the limit*, an exercise of Speed.

    python -m flashlib.bench.limits --out notebooks/data/h200_limits.json

Sizes, verification and rows as in `flashlib.bench.ladder`. A row has two fields more: `launch`, a letter, and
`limit`, which the row's options relieve, or None for the launch as it is. A and B have the move that their
launch calls for; the others have all moves of a single kernel that fit into shared memory.
"""

from collections.abc import Iterable
from typing import NamedTuple

from flashlib.bench import ladder
from flashlib.bench.common import harness, records

HBM, PROGRAMS, LOADS, SHARED, REGISTERS = LIMITS = "HBM", "programs", "loads", "shared memory", "registers"
ROOM = 227 * 1024  # bytes of shared memory, at most, for a program on a Hopper GPU


class TimedLaunch(NamedTuple):
    """A rung, its options at this d, and the moves, {limit: (rung, options)}. few: one sequence of 16 heads."""

    rung: str
    d: int
    options: dict
    moves: dict[str, tuple[str, dict]]
    few: bool = False


def _options(B_r: int, B_c: int, num_warps: int, num_stages: int) -> dict:
    return {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}


def _launch(rung: str, d: int, options: tuple[int, int, int, int]) -> TimedLaunch:
    """Return a launch in which a program has one row block, with the moves that fit into shared memory."""
    B_r, B_c, warps, stages = options
    moves = {
        LOADS: (B_r, B_c, warps, stages + 1),
        REGISTERS: (B_r, B_c, 2 * warps, stages),
        SHARED: (B_r, B_c, warps, stages - 1),
    }
    fitting = {limit: new for limit, new in moves.items() if _bytes(d, *new) <= ROOM}
    return TimedLaunch(
        rung, d, _options(*options), {limit: (rung, _options(*new)) for limit, new in fitting.items()}
    )


def _bytes(d: int, B_r: int, B_c: int, num_warps: int, num_stages: int) -> int:
    """Return the shared memory of a program: a tile of Q, and tiles of K and V for each stage, in 16 bits."""
    return (B_r + 2 * num_stages * B_c) * d * 2


SMALL = _options(64, 64, 4, 2)
LAUNCHES = {
    "A": TimedLaunch("r2_softmax", 128, {}, {HBM: ("r3_flash", ladder.SMALL)}),
    "B": TimedLaunch("without_parallel_rows", 128, SMALL, {PROGRAMS: ("r5_causal", SMALL)}, few=True),
    "C": _launch("r5_causal", 128, (64, 64, 4, 2)),
    "D": _launch("r5_causal", 64, (64, 128, 4, 4)),
    "E": _launch("r5_causal", 128, (128, 128, 4, 3)),
    "F": _launch("r8_descriptors", 128, (64, 128, 4, 2)),
}
RUNGS = {rung.name: rung for rung in (*ladder.RUNGS, *ladder.WITHOUT)}


def measure(ds: Iterable[int] = ladder.DS, notes: records.Notes | None = None) -> list[dict]:
    """Return a row for each launch with one of these d, followed by those of its moves."""
    rows = []
    for letter, launch in LAUNCHES.items():
        if launch.d in ds:
            rows += timed(letter, launch, problem(launch))
    return rows


def problem(launch: TimedLaunch) -> ladder.LadderProblem:
    B, H, N = (1, ladder.FEW_HEADS, ladder.TOKENS) if launch.few else (4, ladder.WIDTH // launch.d, ladder.N)
    return ladder.LadderProblem(B, H, N, launch.d, False)


def timed(letter: str, launch: TimedLaunch, of: ladder.LadderProblem) -> list[dict]:
    """Return the rows of a launch and of its moves."""
    rows = []
    tried: list = [(None, (launch.rung, launch.options)), *launch.moves.items()]
    for limit, (rung, options) in tried:
        row = {"launch": letter, "limit": limit} | ladder.time(RUNGS[rung], of, options, "limits")
        rows.append(row | {"best": limit is None})
        harness.say(f"{letter} {limit or 'as it is':15}{ladder.line(rows[-1])}")
    return rows


if __name__ == "__main__":
    ladder.main("limits", __doc__, measure)
