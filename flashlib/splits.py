"""How many parts to split the keys of a sequence into, so that a few queries occupy a GPU: a model of the time.

`flashlib.kernels.decode` uses the number of parts with the lowest cost. Time is counted in tiles: the unit is the
time in which a multiprocessor processes a tile of K and one of V while all others read too. If all programs begin
at once, the time is that of the longest part, times the number of programs on a multiprocessor. Further programs
begin as others end, and one of them is the last. Each part costs a start, and leaves a State to merge. The
constants were fitted to the `sweep` of `flashlib.bench.decode`; tests/bench/test_decode.py checks how close to its
best times they come.
"""

import functools

START = 0.7  # until a program gets its first tiles
TOGETHER = 2  # tiles in flight from the start: two take as long as one
ALONE = 0.02  # fraction of the time in which a program computes and does not read, if there is room for another
LOOKING_UP = 0.2  # the same if each tile also waits for its pages, or for scales
LATE = 0.3  # of a part: how much longer the last program takes, if programs begin as others end
RAGGED = 0.04  # of a part: the same if all fit, and some sequences may have more parts than others
MERGE = 0.02  # for each State of a row
SECOND = 1.5  # the launch of the merge, which full caches need only if they have several parts
NUMBERS = 4096  # of O_acc, loaded at once by a program of the merge


def places(B_R: int) -> int:
    """Return how many programs with tiles of B_R rows should share a multiprocessor.

    With few rows a program mostly waits, and leaves time for a second one.
    """
    return 2 if B_R == 16 else 1


def actual_parts(tiles: int, parts: int, B: int = 1) -> int:
    """Return how many parts each of B sequences with this many tiles has, if `parts` are requested in all.

    Source: `_parts` of flashlib/kernels/decode_passes.py, for sequences of one length.
    """
    most = -(-B * tiles // parts)  # tiles of a part
    return -(-tiles // most)


def cost(
    n: int, tiles: int, heads: int, multiprocessors: int, *, places: int = 1, ragged: bool = False,
    looks_up: bool = False, full: bool = False,
) -> float:  # fmt: skip
    """Return the time, in tiles, of n parts for each sequence with this many tiles.

    heads: the number of programs for a part of every sequence: heads of K and V, times blocks of rows, times
    sequences. places: see `places`. ragged: sequences may be shorter, and of different lengths. looks_up: whether
    tiles have pages or scales. full: whether the kernel is told that no sequence is shorter.
    """
    longest, programs = -(-tiles // n), n * heads
    beside = -(-programs // multiprocessors)  # on the busiest multiprocessor
    merging = MERGE * n + SECOND * (full and n > 1)
    if beside > places:
        # programs of one length end together, a wave after the other
        reading = beside * longest if full else tiles * heads / multiprocessors + LATE * longest
        return reading + START * programs / multiprocessors + merging
    alone = LOOKING_UP if looks_up else ALONE
    reading = beside * max(longest, TOGETHER) * (1 + alone * (beside < places))
    return reading + START + merging + RAGGED * longest * (ragged and n > 1)


def chosen(
    tiles: int, heads: int, multiprocessors: int, *, places: int = 1, ragged: bool = False,
    looks_up: bool = False, full: bool = False,
) -> int:  # fmt: skip
    """Return how many parts to split a sequence with this many tiles into: the number with the lowest `cost`."""
    numbers = {actual_parts(tiles, parts) for parts in range(1, tiles + 1)}
    about = functools.partial(cost, places=places, ragged=ragged, looks_up=looks_up, full=full)
    return min(sorted(numbers), key=lambda n: about(n, tiles, heads, multiprocessors))


def columns(rows: int, D_V: int, multiprocessors: int) -> int:
    """Return how many columns of O a program of the merge writes: few rows are split over all multiprocessors."""
    cols = D_V
    while cols > 32 and 2 * rows * (D_V // cols) <= multiprocessors:
        cols //= 2
    return cols


def states_at_once(cols: int) -> int:
    """Return how many States, at most, a program of the merge reads at a time if it writes this many columns."""
    return NUMBERS // cols
