"""The phases of a barrier as a strip, and which of its two waits lasts through each."""

from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import INK, NEGATIVE, ON_FILL, POSITIVE

PHASES = 4
LEFT, TOP = 82, 8  # pixels, beside and above the strip
WIDE, HIGH, LANE = 66, 34, 26  # of a phase, and of the lane of a wait
FILLS = POSITIVE, NEGATIVE  # of even phases and odd ones


def waits(parity: int, phase: int) -> bool:
    """Return whether a wait for a parity lasts while this phase is under way."""
    return phase % 2 == parity


def draw_phases() -> Picture:
    """Return a picture of a new barrier's first phases, with a lane for `Wait(b, 0)` and one for `Wait(b, 1)`."""
    words = "; ".join(
        f"phase {phase}: Wait(b, {phase % 2}) waits, Wait(b, {1 - phase % 2}) goes on" for phase in range(PHASES)
    )
    picture = Picture(LEFT + PHASES * WIDE + 4, TOP + HIGH + 2 * LANE + 8, words)
    picture.text(4, TOP + HIGH / 2, "under way", 12)
    for phase in range(PHASES):
        x = LEFT + phase * WIDE
        picture.box(x + 1, TOP, WIDE - 2, HIGH, fill=FILLS[phase % 2])
        picture.text(x + WIDE / 2, TOP + 11, f"phase {phase}", 12, ON_FILL, "m", "bold")
        picture.text(x + WIDE / 2, TOP + 25, f"parity {phase % 2}", 11, ON_FILL, "m")
    for parity in (0, 1):
        _draw_lane(picture, parity, TOP + HIGH + LANE * (parity + 0.5) + 4)
    return picture


def _draw_lane(picture, parity, y):
    """Draw a bar for each phase through which the wait lasts."""
    picture.text(4, y, f"Wait(b, {parity})", 12, face="code")
    for phase in range(PHASES):
        x = LEFT + phase * WIDE
        lasts = waits(parity, phase)
        if lasts:
            picture.box(x + 1, y - 9, WIDE - 2, 18, fill=FILLS[parity])
        picture.text(x + WIDE / 2, y, "waits" if lasts else "goes on", 11, ON_FILL if lasts else INK, "m")
