"""An exception as a notebook reports it: the lines of the cells that it went through, and its message."""

import linecache
import traceback

AROUND = 2  # lines before and after the one that raised
MOST = 8  # places that are shown
RULE = "-" * 75


def words(error, cells):
    """Return the text of an exception. cells: {file: what its cell is called}."""
    error, places = _of_kernel(error, cells)
    only = "".join(traceback.format_exception_only(error)).rstrip("\n")
    only = only.removeprefix(f"{type(error).__module__}.")
    for file, name in cells.items():
        only = only.replace(f'File "{file}"', name)
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


def _of_kernel(error, cells):
    """Return an exception and the places that it went through.

    Triton wraps what is raised in a kernel: return what it wraps, and of the places those in cells.
    """
    places, wrapped = [*traceback.walk_tb(error.__traceback__)], False
    while type(error).__module__.partition(".")[0] == "triton" and error.__cause__:
        error, wrapped = error.__cause__, True
        places += traceback.walk_tb(error.__traceback__)
    if wrapped:
        places = [place for place in places if place[0].f_code.co_filename in cells]
    return error, places


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
