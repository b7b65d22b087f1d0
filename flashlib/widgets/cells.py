"""Which cells of the notebook show which widgets, so that a widget that no cell shows any more can be closed."""

from typing import TYPE_CHECKING

from IPython import get_ipython

if TYPE_CHECKING:
    from ipywidgets import DOMWidget

_shown = {}  # by cell: its last execution, and the widgets that it created or showed


def keep(widget: "DOMWidget") -> None:
    """Note that the running cell creates or shows `widget`.

    The first widget of a run closes those of the cell's previous run (see `Widget.suspend`), unless another cell
    shows them. Otherwise a page and a saved notebook would hold one more widget for each run of a cell. Widgets of
    a cell that was deleted, or that no longer shows one, stay open: no code runs that could notice.
    """
    cell, execution = _running()
    if cell is None:
        return
    before, widgets = _shown.get(cell, (None, []))
    if before == execution:
        widgets.append(widget)
        return
    _shown[cell] = execution, [widget]
    kept = [one for _, ones in _shown.values() for one in ones]
    for one in widgets:
        if one not in kept:
            one.suspend()


def _running():
    """Return the running cell and the number of its execution, or (None, None).

    JupyterLab and VS Code say which cell they run; nbconvert, nbval and a terminal do not. Code called by a
    control on the page does not run in a cell.
    """
    message = getattr(get_ipython(), "get_parent", dict)()
    return message.get("metadata", {}).get("cellId"), message.get("header", {}).get("msg_id")
