"""Paths of SVG as numbers."""

import re

COMMAND = re.compile(r"([MmLlHhVvZz])([^MmLlHhVvZz]*)")


def boxes(path):
    """Return (left, top, right, bottom) of each part of a path, which begins with an M."""
    found, x, y = [], 0.0, 0.0
    for name, text in COMMAND.findall(path):
        given = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]
        x0, y0 = (x, y) if name.islower() else (0.0, 0.0)
        if name in "Hh":
            x = x0 + given[0]
        elif name in "Vv":
            y = y0 + given[0]
        elif name not in "Zz":
            x, y = x0 + given[0], y0 + given[1]
        if name == "M":
            found.append([x, y, x, y])
        box = found[-1]
        found[-1] = [min(box[0], x), min(box[1], y), max(box[2], x), max(box[3], y)]
    return found


def marked(widget):
    """Return the positions that are marked below the scrub bar of a widget."""
    path = widget.locator(".flash-marks path")
    return [int(x) for x in re.findall(r"M(\d+) 0V1", path.get_attribute("d") or "")] if path.count() else []
