"""What TilingLab shows: counts, bytes and sentences, all from the closed forms of `flashlib.cost`."""

from functools import lru_cache

import numpy as np

from flashlib import cost
from flashlib.pictures.number_text import number

KB = 1024  # bytes
BLOCKS = [2**p for p in range(2, 11)]  # the rows and the columns of the map
LARGEST = BLOCKS[-1]
FORMS = {"fa1": cost.fa1_traffic, "fa2": cost.fa2_traffic}
OWN = {"fa1": "B_c", "fa2": "B_r"}  # the block size that determines the bytes of an order
MAX_DRAWN = 64  # squares per side, in the picture of the tiles
# KB of shared memory, the most for one thread block. Source: NVIDIA, CUDA C++ Programming Guide, Technical
# Specifications per Compute Capability.
GPUS = {
    48: "any GPU, without asking for more",
    64: "T4, RTX 20",
    99: "RTX 30, RTX 40",
    163: "A100",
    227: "H100, H200, B200",
}


def compute(N: int, d: int, B_r: int, B_c: int, capacity: int, dtype: str, causal: bool, order: str) -> dict:
    """Return what the page shows, as numbers, lists and sentences."""
    result = {
        "grid": _grid(N, B_r, B_c, causal),
        "traffic": _traffic(N, d, B_r, B_c, dtype, causal),
        "flops": cost.flops(N, N, d, causal=causal),
        "sram": _sram(d, B_r, B_c, capacity, dtype),
        "map": _map(N, d, capacity, dtype, causal, order),
    }
    return result | {"words": _words(result, N, d, B_r, B_c, capacity, dtype, causal)}


def _grid(N, B_r, B_c, causal):
    """Count the tiles, and group them into at most MAX_DRAWN squares per side.

    In each row of squares, those before `whole` are computed entirely and those before `some` partly; the rest is
    skipped. `rows` and `cols` are the edges of the squares in rows and columns of S.
    """
    tiles = cost.tiles_per_row_block(N, N, B_r=B_r, B_c=B_c, causal=causal)
    T_r, T_c = len(tiles), -(-N // B_c)
    tall, wide = -(-T_r // MAX_DRAWN), -(-T_c // MAX_DRAWN)
    cols = -(-T_c // wide)
    fewest, most = tiles[::tall], np.append(tiles[tall - 1 :: tall], tiles[-1])[: -(-T_r // tall)]
    return {
        "T_r": T_r,
        "T_c": T_c,
        "tiles": T_r * T_c,
        "computed": int(tiles.sum()),
        "tall": tall,
        "wide": wide,
        "whole": np.where(fewest == T_c, cols, fewest // wide).tolist(),
        "some": (-(-most // wide)).tolist(),
        "rows": [*range(0, N, tall * B_r), N],
        "cols": [*range(0, N, wide * B_c), N],
    }


def _traffic(N, d, B_r, B_c, dtype, causal):
    moved = {"standard": cost.standard_traffic(N, N, d, dtype=dtype)}
    for name, form in FORMS.items():
        moved[name.upper()] = form(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype, causal=causal)
    standard = moved["standard"].total
    result = {}
    for name, t in moved.items():
        counts = {"read": t.read, "written": t.written, "total": t.total}
        size, unit = _unit(t.total)
        text = {kind: number(count / size) for kind, count in counts.items()} | {"unit": unit}
        result[name] = {**counts, "ratio": t.total / standard, "text": text}
    return result


def _unit(count):
    return (1e9, "GB") if count >= 1e10 else (1e6, "MB")


def megabytes(count: int) -> str:
    """Return a count of bytes in MB (10^6 bytes), or in GB if there are many, to four digits."""
    size, unit = _unit(count)
    return f"{number(count / size)} {unit}"


def _sram(d, B_r, B_c, capacity, dtype):
    size = cost.ITEMSIZE[dtype]
    acc = max(4, size)  # bytes of an accumulated number
    pieces = {"Q_i": B_r * d * size, "K_j": B_c * d * size, "V_j": B_c * d * size}
    pieces |= {"O_acc": B_r * d * acc, "S_ij": B_r * B_c * acc, "m, l": 2 * B_r * acc}
    held = cost.sram_bytes(B_r, B_c, d, dtype)
    room = capacity * KB
    text = {"held": number(held / KB), "excess": number(max(0, held - room) / KB)}
    gpus = GPUS.get(capacity, "")
    return {"pieces": pieces, "held": held, "room": room, "fits": held <= room, "text": text, "gpus": gpus}


@lru_cache(256)
def _totals(N, d, dtype, causal, order):
    """Return the bytes that an order moves for each B_r of the map, and within it each B_c."""
    form = FORMS[order]
    return [
        [form(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype, causal=causal).total for B_c in BLOCKS] for B_r in BLOCKS
    ]


def _map(N, d, capacity, dtype, causal, order):
    totals = _totals(N, d, dtype, causal, order)
    standard = cost.standard_traffic(N, N, d, dtype=dtype).total
    held = [[cost.sram_bytes(B_r, B_c, d, dtype) for B_c in BLOCKS] for B_r in BLOCKS]
    fits = [[bytes_ <= capacity * KB for bytes_ in row] for row in held]
    own, other = (0, 1) if OWN[order] == "B_r" else (1, 0)
    best = min(  # on a tie, the one with the fewest steps
        ((totals[r][c], -(r, c)[other], (r, c)[own], r, c) for r in range(9) for c in range(9) if fits[r][c]),
        default=None,
    )
    return {
        "blocks": BLOCKS,
        "ratios": [[total / standard for total in row] for row in totals],
        "fits": fits,
        "best": best and {"B_r": BLOCKS[best[3]], "B_c": BLOCKS[best[4]], "total": best[0]},
        "words": _best_words(best, capacity),
    }


def _best_words(best, capacity):
    if best is None:
        return f"No tile of this map fits into {capacity} KB."
    total, _, _, r, c = best
    return f"best that fits, {BLOCKS[r]} × {BLOCKS[c]}: {megabytes(total)}"


@lru_cache(1024)
def break_even(order: str, other: int, N: int, d: int, dtype: str, causal: bool) -> int | None:
    """Return the smallest block size from which on, up to LARGEST, an order moves no more than standard attention.

    The block size is B_r for "fa2", B_c for "fa1"; `other` is the other one. None if there is no such size.
    """
    own = OWN[order]
    high = LARGEST
    standard = cost.standard_traffic(N, N, d, dtype=dtype).total

    def more(B):
        blocks = {own: B, "B_r" if own == "B_c" else "B_c": other}
        return FORMS[order](N, N, d, **blocks, dtype=dtype, causal=causal).total > standard

    if more(high):
        return None
    B = high
    while B > 1 and not more(B // 2):
        B //= 2
    # From 2 B on, no size moves more than B. In between, under a mask, FA2's bytes go up and down a little.
    return next((b for b in range(min(2 * B, high), 0, -1) if more(b)), 0) + 1


def tile_words(N: int, grid: dict, causal: bool) -> list[str]:
    """Return two sentences on which tiles are computed, and why."""
    tiles, skipped = grid["tiles"], grid["tiles"] - grid["computed"]
    if not causal:
        return ["Without a mask every score is seen.", f"So every tile is computed: {tiles} of {tiles}."]
    share = f"{skipped} of {tiles}, or {number(100 * skipped / tiles)}%"
    return [
        f"The causal mask hides {number(50 * (N - 1) / N)}% of the scores.",
        f"Only tiles without any visible score are skipped: {share}.",
    ]


def _words(result, N, d, B_r, B_c, capacity, dtype, causal):
    """Return three sentences: on what fits and moves least, on FA1 and on FA2."""
    sram, traffic = result["sram"], result["traffic"]
    held, excess = sram["text"]["held"], sram["text"]["excess"]
    fits = f"fits into {capacity} KB" if sram["fits"] else f"does not fit into {capacity} KB: {excess} KB too much"
    least = min(traffic, key=lambda name: traffic[name]["total"])
    least_words = f"With it {'standard attention' if least == 'standard' else least} moves least of the three"
    words = [
        f"A tile of {B_r} × {B_c} holds {held} KB and {fits}. {least_words}: {megabytes(traffic[least]['total'])}."
    ]
    for order, own in OWN.items():
        other_name, other = ("B_r", B_r) if own == "B_c" else ("B_c", B_c)
        # Without a mask the other size does not matter; a large one leaves few blocks to count.
        start = break_even(order, other if causal else LARGEST, N, d, dtype, causal)
        where = f"({other_name} = {other})" if causal else ""
        words.append(_order_words(order.upper(), own, traffic[order.upper()]["ratio"], start, where))
    return words


def _order_words(name, own, ratio, start, where):
    if ratio <= 1:
        said = f"{name} moves {number(ratio)} of what standard attention moves"
        if start <= 1:
            return f"{said}; never more."
        said = f"{said}; from {own} = {start} on it never moves more"
    else:
        said = f"{name} moves more than standard attention, {number(ratio)} times as much"
        said = (
            f"{said}; it moves more at every {own}"
            if start is None
            else f"{said}; from {own} = {start} on it does not"
        )
    return f"{said} {where}." if where else f"{said}."
