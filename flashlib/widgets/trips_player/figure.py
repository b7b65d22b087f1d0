"""TripsPlayer as a static picture: each trip as long as the bytes that it moves, on one scale."""

from flashlib.language.phrases import and_list
from flashlib.pictures.canvas import Picture, length
from flashlib.pictures.inks import READ, WRITTEN
from flashlib.widgets.trips_player.trips import Trip

LEFT, WIDE, HIGH = 14, 902, 18  # pixels: where the bars begin, how long the longest is, and how high they are
NAMES = {"standard": "Standard attention", "flash": "FlashAttention"}


def draw(sides: dict[str, list[Trip]], N: int, d: int) -> Picture:
    """Return a picture of the trips of both sides, {name: trips}, for Q, K and V of shape (N, d)."""
    moved = {name: sum(trip.nbytes for trip in trips) for name, trips in sides.items()}
    words = f"N = {N}, d = {d}: standard attention moves {moved['standard']:,} B, "
    words += f"FlashAttention {moved['flash']:,} B."
    picture = Picture(930, 158, words)
    picture.shade(0, 0, 930, 72)
    picture.shade(0, 78, 930, 80)
    scale = WIDE / max(moved.values())
    for y, (name, trips) in zip((18, 96), sides.items(), strict=True):
        head = f"{NAMES[name]}: {moved[name]:,} B in {len(trips)} trips"
        picture.text(LEFT, y, head, 13, face="bold")
        x = LEFT
        for trip in trips:
            wide = trip.nbytes * scale
            picture.box(x, y + 14, max(wide - 1, 1), HIGH, fill=READ if trip.loads else WRITTEN)
            label = f"{and_list(move.name for move in trip.moves)} {'in' if trip.loads else 'out'}"
            if name == "standard" and length(label, 11) < wide - 4:
                picture.text(x + wide / 2, y + 14 + HIGH + 10, label, 11, align="m")
            x += wide
    picture.box(LEFT, 140, 11, 9, fill=READ)
    picture.text(LEFT + 16, 144, "loaded: HBM to chip", 11)
    picture.box(LEFT + 180, 140, 11, 9, fill=WRITTEN)
    picture.text(LEFT + 196, 144, "stored: chip to HBM", 11)
    return picture
