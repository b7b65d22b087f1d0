"""A sentence is shown to a learner who waits, only while they wait, and never to a tool."""

import contextlib
import threading
from types import SimpleNamespace

import pytest

IPython = pytest.importorskip("IPython")
pytest.importorskip("IPython.display")

from flashlib.checks.engine import waiting  # noqa: E402


@pytest.fixture
def shown(monkeypatch):
    """The texts on the page, of displays that can be updated; shown.came is set at the first."""
    texts, came = [], threading.Event()

    def display(data, raw, display_id):
        assert raw and display_id and data["text/plain"] in data["text/html"]
        texts.append(data["text/plain"])
        came.set()
        return SimpleNamespace(update=lambda data, raw: texts.pop() if raw and not data else texts.append(data))

    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    return SimpleNamespace(texts=texts, came=came)


@pytest.fixture
def in_notebook(monkeypatch):
    """Call it with whether the cell may ask for input, as one that a learner runs."""

    def run_by(learner):
        kernel = SimpleNamespace(get_parent=lambda channel: {"content": {"allow_stdin": learner}})
        monkeypatch.setattr(waiting, "_kernel", lambda: kernel)

    return run_by


@pytest.mark.parametrize("fails", [False, True])
def test_in_a_notebook_the_sentence_goes_at_the_end(fails, shown, in_notebook, capsys):
    in_notebook(learner=True)
    with pytest.raises(KeyboardInterrupt) if fails else contextlib.nullcontext():
        with waiting.told("Please wait."):
            assert shown.came.wait(10) and shown.texts == ["Please wait."]
            if fails:
                raise KeyboardInterrupt
    assert shown.texts == [] and capsys.readouterr() == ("", "")


def test_a_tool_that_executes_a_notebook_gets_no_sentence(shown, in_notebook):
    in_notebook(learner=False)
    threads = threading.active_count()
    with waiting.told("Please wait."):
        assert threading.active_count() == threads, "nothing can come later"
    assert not shown.came.is_set()


def test_elsewhere_it_is_one_line(monkeypatch, capsys):
    printed = threading.Event()
    of_waiting = waiting._printed
    monkeypatch.setattr(waiting, "_printed", lambda sentence: (of_waiting(sentence), printed.set())[0])
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    with waiting.told("Please wait."):
        assert printed.wait(10)
    assert capsys.readouterr() == ("", "Please wait.\n")


def test_who_waits_for_a_moment_sees_nothing(capsys):
    before = threading.active_count()
    with waiting.told("Please wait."):
        pass
    assert threading.active_count() == before, "nothing can come later"
    assert capsys.readouterr() == ("", "") and 1 < waiting.PATIENCE < 4
