"""An exception as a notebook reports it: the lines of the cells that it went through, and its message."""

import linecache
import traceback

AROUND = 2  # lines before and after the one that raised
MOST = 8  # places that are shown
RULE = "-" * 75


def words(error, cells):
    """Return the text of an exception. cells: {file: what its cell is called}."""
    only = "".join(traceback.format_exception_only(error)).rstrip("\n")
    for file, name in cells.items():
        only = only.replace(f'File "{file}"', name)
    places = [*traceback.walk_tb(error.__traceback__)]
    while places and places[0][0].f_code.co_filename not in cells:  # the code that runs cells
        places.pop(0)
    if not places:  # the text of the cell is not Python
        return only
    shown = [_place(frame, line, cells) for frame, line in places]
    if len(shown) > MOST:
        left = len(shown) - MOST
        shown[MOST // 2 : -(MOST // 2)] = [f"... {left} more places ..."]
    head = f"{type(error).__name__:<42}Traceback (most recent call last)"
    return "\n\n".join(["\n".join([RULE, head, shown[0]]), *shown[1:], only])


def _place(frame, line, cells):
    """Return a place in a traceback, with the lines around it."""
    code = frame.f_code
    file, name = code.co_filename, code.co_name
    inside = "" if name == "<module>" else f", in {name}()"
    where = f"{cells[file]}, line {line}{inside}" if file in cells else f"File {file}:{line}{inside}"
    lines = linecache.getlines(file)
    shown = range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1)
    around = [f"{'----> ' if n == line else '      '}{n} {lines[n - 1].rstrip()}" for n in shown]
    return "\n".join([where, *around])
