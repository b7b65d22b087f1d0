"""RingPlayer as a static picture, drawn from its `result`: the scores by rank and hop, and all ranks over time."""

from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import INK, ON_FILL, READ, WRONG, ZERO
from flashlib.widgets.ring_player import words

# Of the ranks, in order; as in ring_player.css.
FILLS = "#76aee8", "#ea9a57", "#c3a6dc", "#7fcbb4", "#d9c65a", "#ef9ab5", "#b9a58f", "#a9d46b"
LEFT, TOP, SIDE = 14, 40, 256  # pixels, of the scores
LABEL, WIDE, HIGH, COPY = 352, 480, 14, 6  # pixels: left end and width of the lanes; height of a bar and of a copy
ROW = HIGH + COPY + 8


def draw(result: dict) -> Picture:
    """Return a Picture of the result of a RingPlayer."""
    P = result["setting"]["ranks"]
    sentences = [*result["words"], *(result["fault"] or {"said": []})["said"]]
    high = max(TOP + SIDE + 14, TOP + P * ROW + 74)
    picture = Picture(930, high, " ".join(sentences))
    picture.shade(0, 0, 284, high)
    picture.shade(288, 0, 642, high)
    picture.text(LEFT, 20, "S by rank and hop", 13, face="bold")
    _draw_scores(picture, result)
    picture.text(
        300, 20, f"{P} ranks, {result['setting']['N']} tokens, {result['setting']['cut']}", 13, face="bold"
    )
    _draw_lanes(picture, result)
    y = TOP + P * ROW + 26
    for said in sentences[:1] + sentences[3:4]:
        picture.text(300, y, said[:100], 12, WRONG if result["fault"] else INK)
        y += 18
    picture.text(300, y, words.totals(result["compare"]), 12)
    return picture


def shade(r: int, hop: int, P: int) -> str:
    """Return the fill of a rank's scores in a hop: later hops are paler."""
    share = 1 - 0.6 * hop / max(P - 1, 1)
    fill, white = (bytes.fromhex(colour[1:]) for colour in (FILLS[r], ZERO))
    return "#" + bytes(round(share * a + (1 - share) * b) for a, b in zip(fill, white, strict=True)).hex()


def _draw_scores(picture, result):
    """Draw the seen scores, each run of keys of one rank as a box."""
    N, P = result["setting"]["N"], result["setting"]["ranks"]
    of = {token: r for r, own in enumerate(result["tokens"]) for token in own}
    cell = SIDE / N
    for row, runs in enumerate(result["seen"]):
        for first, end in runs:
            while first < end:
                stop = next((c for c in range(first, end) if of[c] != of[first]), end)
                fill = shade(of[row], (of[row] - of[first]) % P, P)
                picture.box(LEFT + cell * first, TOP + cell * row, cell * (stop - first), cell, fill=fill)
                first = stop
    picture.box(LEFT - 1, TOP - 1, SIDE + 2, SIDE + 2, edge=INK, dotted=True)


def _draw_lanes(picture, result):
    """Draw what each rank computes, with its hop, and below it the copies that it receives."""
    scale, P = WIDE / (result["end"] or 1), result["setting"]["ranks"]
    for r, own in enumerate(result["computes"]):
        y = TOP + r * ROW
        picture.text(300, y + HIGH / 2, f"rank {r}", 11)
        picture.line([(LABEL, y + HIGH - 1), (LABEL + WIDE, y + HIGH - 1)], dash=(2, 3))
        for _, hop, start, stop, _ in own:
            wide = scale * (min(stop, result["end"]) - start)
            picture.box(LABEL + scale * start, y, wide - 1, HIGH, fill=shade(r, hop, P))
            if wide > 12:
                picture.text(LABEL + scale * start + wide / 2, y + HIGH / 2, str(hop), 9, ON_FILL, "m")
        for _, to, _, start, stop, _ in result["copies"]:
            if to == r:
                wide = scale * (min(stop, result["end"]) - start)
                picture.box(LABEL + scale * start, y + HIGH + 1, wide, COPY, edge=READ)
        idle = sum(stop - start for start, stop, _ in result["idle"][r])
        picture.text(LABEL + WIDE + 8, y + HIGH / 2, f"idle {idle:.3g}", 11)
    y = TOP + P * ROW + 4
    for k in range(5):
        picture.text(LABEL + WIDE * k / 4, y, f"{result['end'] * k / 4:.3g}", 10, align="lmmmr"[k])
