"""Which cells of the notebook show which widgets, so that one that no cell shows any more can be closed."""

from IPython import get_ipython

_shown = {}  # by the cell: the execution of it that was last, and the widgets that it made or showed


def keep(widget):
    """Note that the cell that is running makes or shows `widget`.

    With the first of them, what the cell made or showed when it was run before is let go, see `Widget.rest`,
    unless another cell has it. Else a page and a saved notebook would hold a widget more for each run of a cell.
    What a cell showed that shows none any more, or is gone, is kept: nothing runs that could tell.
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
            one.rest()


def _running():
    """Return the cell that is running and which execution of it this is, or (None, None).

    JupyterLab and VS Code say which cell they run; nbconvert, nbval and a terminal do not. What a control calls on
    the page runs in no cell.
    """
    message = getattr(get_ipython(), "get_parent", dict)()
    return message.get("metadata", {}).get("cellId"), message.get("header", {}).get("msg_id")
