"""How many parts the keys of a sequence are split into, so that few queries occupy a GPU: a model of the time.

`flashlib.kernels.decode` takes the number of parts that costs least. Time is counted in tiles: the unit is what a
multiprocessor takes for a tile of K and one of V while all others read too. With one program on each of them, or
less, the time is that of the longest part. More programs share what can be read, and one of them is the last. Each
part costs a start, and leaves a State to merge. The constants were fitted to times of the sizes of
`flashlib.bench.decode`, on an H100; its `sweep` measures such times.
"""

START = 1.0  # until a program has its first tile
ALONE = 0.02  # of the time: what a program does not read while it computes, where there is room for another
LATE = 0.3  # of a part: how much longer the last one takes, where programs begin whenever others have ended
MERGE = 0.02  # for each State of a row


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


def cost(n: int, tiles: int, heads: int, multiprocessors: int, *, places: int = 1) -> float:
    """Return the time of n parts for each sequence of so many tiles, in tiles.

    heads: how many programs there are for a part of each sequence: heads of K and V, times blocks of rows, times
    sequences. places: how many programs stand beside each other on a multiprocessor and share what it reads.
    """
    longest, programs = -(-tiles // n), n * heads
    beside = -(-programs // multiprocessors)  # on the multiprocessor that has most
    if beside <= places:
        return beside * longest * (1 + ALONE * (beside < places)) + START + MERGE * n
    return (tiles * heads + START * programs) / multiprocessors + LATE * longest + MERGE * n


def chosen(tiles: int, heads: int, multiprocessors: int, *, places: int = 1, ragged: bool = False) -> int:
    """Return how many parts a sequence of so many tiles is split into: the number that costs least.

    ragged: sequences may be shorter, and of different lengths. If parts are as long as most sequences, then the
    last ones of the longest sequence begin late and take long; with two at least they are shorter.
    """
    least = min(2, tiles) if ragged else 1
    numbers = {made(tiles, parts) for parts in range(least, tiles + 1)}
    return min(sorted(numbers), key=lambda n: cost(n, tiles, heads, multiprocessors, places=places))
