"""What all widgets do in Python: handle requests of the page, and close when no cell shows them any more."""

import pytest

pytest.importorskip("anywidget")

import ipywidgets
from IPython.core.formatters import DisplayFormatter

from flashlib.widgets import MergeTree, OverflowLab, cells


@pytest.fixture
def notebook(monkeypatch):
    """A function that sets the running cell, each time with a new execution of it; None: it is unknown."""
    message = {}

    class Shell:
        def get_parent(self):
            return message

    def run(cell):
        run.count = getattr(run, "count", 0) + 1
        message.clear()
        message["header"] = {"msg_id": str(run.count)}
        message["metadata"] = {} if cell is None else {"cellId": cell}

    monkeypatch.setattr(cells, "get_ipython", Shell)
    monkeypatch.setattr(cells, "_shown", {})
    return run


def show(widget):
    """Show a widget like the last line of a cell; return it."""
    data, _ = widget._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    return widget


def is_open(widget):
    return (widget.comm is not None, widget.layout.comm is not None)


OPEN, CLOSED = (True, True), (False, False)


def test_a_cell_run_again_closes_what_it_showed(notebook):
    notebook("a")
    before = show(OverflowLab())
    notebook("a")
    after = show(OverflowLab())
    assert (is_open(before), is_open(after)) == (CLOSED, OPEN)


def test_a_cell_may_show_two(notebook):
    notebook("a")
    before = [show(OverflowLab()), OverflowLab(), show(MergeTree())]
    assert list(map(is_open, before)) == 3 * [OPEN]
    notebook("a")
    after = [show(OverflowLab()), OverflowLab(), show(MergeTree())]
    assert [*map(is_open, before), *map(is_open, after)] == 3 * [CLOSED] + 3 * [OPEN]


def test_what_another_cell_shows_stays_open(notebook):
    notebook("a")
    before = show(OverflowLab())
    notebook("b")
    show(before)
    notebook("a")
    after = show(OverflowLab())
    assert (is_open(before), is_open(after)) == (OPEN, OPEN)
    notebook("b")
    show(after)
    assert (is_open(before), is_open(after)) == (CLOSED, OPEN)


def test_a_cell_run_again_may_only_show(notebook):
    notebook("a")
    widget = OverflowLab()
    for _ in range(3):
        notebook("b")
        show(widget)
        assert is_open(widget) == OPEN
    notebook("a")
    show(widget)
    assert is_open(widget) == OPEN


def test_a_closed_widget_that_is_shown_opens_again_as_it_was(notebook):
    notebook("a")
    widget = show(OverflowLab(x=12))
    notebook("a")
    show(OverflowLab())
    assert is_open(widget) == CLOSED
    widget.x = 13
    notebook("b")
    show(widget)
    assert is_open(widget) == OPEN
    assert widget.x == 13
    notebook("a")
    assert is_open(show(OverflowLab())) == is_open(widget) == OPEN


def test_what_was_closed_by_hand_stays_closed(notebook):
    notebook("a")
    widget = show(OverflowLab())
    widget.close()
    notebook("a")
    show(OverflowLab())
    assert widget._repr_mimebundle_ is None


def test_nothing_is_closed_if_the_running_cell_is_unknown(notebook, monkeypatch):
    notebook(None)
    widgets = [show(OverflowLab()), show(OverflowLab())]
    monkeypatch.setattr(cells, "get_ipython", lambda: None)
    widgets.append(show(OverflowLab()))
    assert list(map(is_open, widgets)) == 3 * [OPEN]


@pytest.mark.parametrize("asked", [{"x": 9.0}, {"x": float("nan")}, {}])
def test_the_page_learns_that_python_heard_whatever_the_outcome(asked):
    widget = OverflowLab()
    sent = []
    widget.observe(lambda change: sent.append(change.name), names=["result", "heard"])
    widget.set_state({**asked, "asked": 1})
    assert widget.heard == 1
    assert sent[-1] == "heard"


def test_ipywidgets_7_shows_the_picture_and_the_whole_text(monkeypatch):
    """IPython looks for `_ipython_display_` first; that of ipywidgets 7 has no picture and truncates the text."""
    monkeypatch.setattr(ipywidgets.Widget, "_ipython_display_", lambda self: None, raising=False)
    widget = OverflowLab()
    data, _ = DisplayFormatter().format(widget)
    assert data["text/plain"] == repr(widget) and data["image/png"]


def test_a_widget_is_suspended_even_if_closing_leaves_its_bundle(monkeypatch):
    """As in ipywidgets 7, which closes `_ipython_display_` instead."""
    widget = OverflowLab()
    monkeypatch.setattr(ipywidgets.Widget, "close", lambda self: vars(self).pop("_repr_mimebundle_", None))
    widget.suspend()
