"""The sentences of MaskLab."""

from flashlib.language.phrases import and_list, by_number
from flashlib.pictures.number_text import number
from flashlib.widgets.mask_lab.tile_counts import ENTRY, HIDDEN, ITEM

MOST_NAMED = 6  # runs of keys


def summary(result: dict) -> str:
    """Return a sentence or two on what the mask leaves to compute."""
    tiles, scores = result["tiles"], result["scores"]
    if not tiles["computed"]:
        return "Every tile is hidden: nothing is computed, and O is 0."
    hidden, total, n = tiles["hidden"], tiles["all"], tiles["computed"]
    rest = "none is hidden"
    if hidden:
        one = "the other one is hidden and skipped"
        rest = by_number(hidden, one, f"the other {hidden} are hidden and skipped")
    on_tiles = by_number(
        n, f"1 of {total} tiles is computed; {rest}.", f"{n} of {total} tiles are computed; {rest}."
    )
    computed, seen = scores["computed"], scores["seen"]
    share = number(100 * seen / computed)
    one = f"Of the {computed} scores computed 1 is seen, {share}%."
    several = f"Of the {computed} scores computed {seen} are seen, {share}%."
    return f"{on_tiles} {by_number(seen, one, several)}"


def loop(result: dict) -> str:
    """Return sentences on how a loop over tiles finds those to compute."""
    if result["bounds"]:
        return (
            "Each row sees an interval of keys, and neither end falls from row to row. So a row block has a first "
            "and a last tile, found from the intervals: no table is needed."
        )
    table = (
        f"A kernel looks its tiles up in a table of {result['table']} bytes, {ENTRY} for each tile; "
        f"a mask of fp16 numbers, one for each score, would take {ITEM * result['scores']['all']}."
    )
    if result["interval"]:
        return f"Each row does see an interval here, but this mask gives no bounds. {table}"
    return f"Some row sees keys with gaps between them, or an end falls from one row to the next. {table}"


def rows(result: dict, N_q: int, N_k: int, B_r: int, B_c: int) -> list[str]:
    """Return, for each row, a sentence on what it sees and what its row block computes."""
    past, T_c = N_k - N_q, -(-N_k // B_c)
    blocks = [_block(i, kinds, T_c) for i, kinds in enumerate(result["kinds"])]
    sentences = []
    for row, runs in enumerate(result["runs"]):
        count = sum([end - start for start, end in runs])
        sees = f"Row {row} sees {count} of {N_k} keys"
        if past:
            sees = f"Row {row}, at position {number(row + past)}, sees {count} of {N_k} keys"
        sees = f"{sees}: {listed(runs)}." if runs else f"{sees}."
        sentences.append(f"{sees} {blocks[row // B_r]}")
    return sentences


def _block(i, kinds, T_c):
    """Return a sentence on what a row block computes."""
    tiles = _runs_of([kind != HIDDEN for kind in kinds])
    sentence = f"Its row block, i\u00a0=\u00a0{i}, computes {T_c - kinds.count(HIDDEN)} of {T_c} tiles"
    return f"{sentence}: j\u00a0=\u00a0{listed(tiles)}." if tiles else f"{sentence}."


def documents(lengths: list[int], N: int) -> str:
    """Return a sentence on what padding would cost for the documents of a pack of N tokens."""
    if len(lengths) == 1:
        return f"One document of {N} tokens."
    longest = max(lengths)
    return (
        f"{len(lengths)} documents in {N} tokens; padded to the longest, they would be "
        f"{len(lengths)} × {longest} = {len(lengths) * longest} tokens."
    )


def listed(runs: list[list[int]]) -> str:
    """Return runs of integers, [first, one after the last], as text."""
    parts = [part for start, end in runs[:MOST_NAMED] for part in _parts(start, end)][:MOST_NAMED]
    named = [f"{start} to {end - 1}" if end > start + 1 else str(start) for start, end in parts]
    if rest := sum([end - start for start, end in runs]) - sum([end - start for start, end in parts]):
        return f"{', '.join(named)} and {rest} more"
    return and_list(named)


def _parts(start, end):
    """Return a run as it is listed: a run of two numbers as both of them."""
    return [(start, start + 1), (start + 1, end)] if end == start + 2 else [(start, end)]


def _runs_of(flags):
    """Return the runs of true values in a list."""
    runs = []
    for k, flag in enumerate(flags):
        if flag and runs and runs[-1][1] == k:
            runs[-1][1] = k + 1
        elif flag:
            runs.append([k, k + 1])
    return runs
