"""How wide a widget may have to be, how high it then is at most, and what is out of its place in it."""

from tests.browser.probes import MISPLACED

WIDTHS = 390, 700, 930, 1366  # px: a phone, a tablet, JupyterLab on a laptop with its side bar, and without
LAPTOP = 930  # px wide
HIGH = 640  # px: with more, what a control changes would not be on the screen with it, of 1366 x 768
HIGHER = {"RingPlayer"}  # has more to show: at the top is what most controls change

# Go to where so much of it is played; false if nothing plays, and there is one view.
PLAYED = """(root, part) => {
    const { transport } = root.flashWidget;
    transport?.seek(Math.round(part * transport.last));
    return Boolean(transport);
}"""


def misplaced(widget):
    """Return what is out of its place in a widget, as it stands and, if it plays, at two moments: sentences."""
    found = [f"as it stands: {one}" for one in widget.evaluate(MISPLACED)]
    before = widget.evaluate("root => root.flashWidget.transport?.position")
    for part in (0.3, 1):
        if not widget.evaluate(PLAYED, part):
            return found
        found += [f"after {part:.0%}: {one}" for one in widget.evaluate(MISPLACED)]
    widget.evaluate("(root, position) => root.flashWidget.transport.seek(position)", before)
    return found
