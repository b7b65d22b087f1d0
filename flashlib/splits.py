"""How many parts the keys of a sequence are split into, so that few queries occupy a GPU: a model of the time.

`flashlib.kernels.decode` takes the number of parts that costs least. Time is counted in tiles: the unit is what a
multiprocessor takes for a tile of K and one of V while all others read too. If all programs begin at once, the
time is that of the longest part, times the programs that share a multiprocessor. More programs begin as others
end, and one of them is the last. Each part costs a start, and leaves a State to merge. The constants were fitted
to the `sweep` of `flashlib.bench.decode`; tests/bench/test_decode.py says how near the best of it they come.
"""

START = 0.7  # until a program has its first tiles
TOGETHER = 2  # tiles that are on their way from the start: two take as long as one
ALONE = 0.02  # of the time: what a program does not read while it computes, where there is room for another
LATE = 0.3  # of a part: how much longer the last one takes, where programs begin whenever others have ended
RAGGED = 0.04  # of a part: the same where all fit, and sequences may have more parts than others
MERGE = 0.02  # for each State of a row
NUMBERS = 4096  # of O_acc, which a program of the merge loads at once


def places(B_R: int) -> int:
    """Return how many programs with tiles of B_R rows are to stand beside each other on a multiprocessor.

    With few rows a program waits for one step after the other, and leaves time for a second one.
    """
    return 2 if B_R == 16 else 1


def made(tiles: int, parts: int, B: int = 1) -> int:
    """Return how many parts each of B sequences of so many tiles has, if `parts` are asked for in all.

    Source: `_parts` of flashlib/kernels/decode_passes.py, for sequences of one length.
    """
    most = -(-B * tiles // parts)  # tiles of a part
    return -(-tiles // most)


def cost(
    n: int, tiles: int, heads: int, multiprocessors: int, *, places: int = 1, ragged: bool = False
) -> float:  # fmt: skip
    """Return the time of n parts for each sequence of so many tiles, in tiles.

    heads: how many programs there are for a part of each sequence: heads of K and V, times blocks of rows, times
    sequences. places: see `places`. ragged: sequences may be shorter, and of different lengths.
    """
    longest, programs = -(-tiles // n), n * heads
    beside = -(-programs // multiprocessors)  # on the multiprocessor that has most
    if beside > places:
        return (tiles * heads + START * programs) / multiprocessors + LATE * longest + MERGE * n
    reading = beside * max(longest, TOGETHER) * (1 + ALONE * (beside < places))
    return reading + START + MERGE * n + RAGGED * longest * ragged


def chosen(tiles: int, heads: int, multiprocessors: int, *, places: int = 1, ragged: bool = False) -> int:
    """Return how many parts a sequence of so many tiles is split into: the number that costs least, see `cost`."""
    numbers = {made(tiles, parts) for parts in range(1, tiles + 1)}
    return min(sorted(numbers), key=lambda n: cost(n, tiles, heads, multiprocessors, places=places, ragged=ragged))


def columns(rows: int, D_V: int, multiprocessors: int) -> int:
    """Return how many columns of O a program of the merge writes.

    Few rows are split, so that all multiprocessors merge.
    """
    cols = D_V
    while cols > 32 and 2 * rows * (D_V // cols) <= multiprocessors:
        cols //= 2
    return cols


def joined(cols: int) -> int:
    """Return how many States a program of the merge that writes so many columns joins at a time, at most."""
    return NUMBERS // cols
