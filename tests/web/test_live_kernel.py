"""The kernel of a page, here in CPython: what it prints, shows and raises."""

import json
import sys
import types

import nbformat
import pytest

pytest.importorskip("anywidget")
traitlets = pytest.importorskip("traitlets")

from web.live import cells  # noqa: E402
from web.live.inside import kernel, no_input, stand_ins  # noqa: E402


class Counter(stand_ins.AnyWidget):
    """A widget that answers with twice the number it is asked for."""

    n = traitlets.Int().tag(sync=True)
    twice = traitlets.Bytes().tag(sync=True)
    script = traitlets.Unicode("none").tag(sync=True)

    def __init__(self):
        super().__init__()
        self.observe(lambda change: self.set_trait("twice", bytes([2 * change.new])), names="n")

    def __repr__(self):
        return f"Counter({self.n})"


@pytest.fixture
def page(monkeypatch):
    """A function that returns a page with cells of these texts; events are kept in `page.told`."""
    module = types.ModuleType("IPython.display")
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setitem(sys.modules, "counter_of_a_test", types.SimpleNamespace(Counter=Counter))

    def of(*sources, kernels=False):
        code = [nbformat.v4.new_code_cell(source, id=f"c{k}") for k, source in enumerate(sources)]
        told = []
        made = kernel.Page(json.dumps(cells.of_chapter(code, kernels)), lambda *event: told.append(event))
        made.told, made.sources = told, {cell.id: cell.source for cell in code}
        return made

    return of


def ask(page, do, **asked):
    answer, buffers = page.ask(json.dumps({"do": do, **asked}))
    return json.loads(answer), buffers


def run(page, cell, changed=()):
    return ask(page, "run", cell=cell, sources=page.sources, changed=changed)[0]


def test_a_cell_prints_and_shows_its_last_value(page):
    answer = run(page("import sys\nx = 5", "print('a', x)\nprint('b', file=sys.stderr)\nx * [0]"), "c1")
    assert answer["first"] == [{"cell": "c0", "raised": ""}] and answer["count"] == 2
    assert [(one["kind"], one["text"]) for one in answer["outputs"]] == [
        ("out", "a 5\n"),
        ("err", "b\n"),
        ("value", "[0, 0, 0, 0, 0]"),
    ]


@pytest.mark.parametrize("source", ["x = 1", "5;", "None", ""])
def test_a_cell_may_show_nothing(page, source):
    assert run(page(source or "# nothing"), "c0")["outputs"] == []


def test_an_error_is_reported_as_in_a_notebook(page):
    answer = run(page("def f(x):\n    return 1 / x", "y = 0\nf(y)"), "c1")
    (said,) = [one["text"] for one in answer["outputs"]]
    head, place, last = said.split("\n\n")
    assert head.splitlines()[1] == f"{'ZeroDivisionError':<42}Traceback (most recent call last)"
    assert head.splitlines()[2:] == ["Cell In[2], line 2", "      1 y = 0", "----> 2 f(y)"]
    assert place.splitlines() == ["Cell In[1], line 2, in f()", "      1 def f(x):", "----> 2     return 1 / x"]
    assert last == "ZeroDivisionError: division by zero"


KERNELS = """
import flashlib.kernels, torch, triton, triton.language as tl
@triton.jit
def numbers(n: tl.constexpr):
    return tl.arange(0, n)
@triton.jit
def kernel(X_ptr, n: tl.constexpr):
    tl.store(X_ptr + numbers(n), 0)
"""


def test_an_error_in_a_kernel_is_reported_without_those_that_triton_wraps_it_in(page):
    pytest.importorskip("triton")
    answer = run(page(KERNELS, "kernel[(1,)](torch.ones(3), 3)", kernels=True), "c1")
    (said,) = [one["text"] for one in answer["outputs"]]
    head, *places, last = said.split("\n\n")
    assert head.splitlines()[1] == f"{'ValueError':<42}Traceback (most recent call last)"
    assert "----> 1 kernel[(1,)]" in head
    assert [place.splitlines()[0] for place in places] == [
        "Cell In[1], line 8, in kernel()", "Cell In[1], line 5, in numbers()"
    ]  # fmt: skip
    assert last == "ValueError: arange's range must be a power of 2"


@pytest.mark.parametrize("source", ["raise SystemExit", "raise KeyboardInterrupt", "def f(:", "f = 1 +"])
def test_nothing_ends_the_kernel(page, source):
    made = page("x = 1", "x")
    made.sources["c0"] = source
    answer = run(made, "c0", ["c0"])
    assert [one["kind"] for one in answer["outputs"]] == ["raises"]
    said = answer["outputs"][0]["text"]
    if not source.startswith("raise"):
        assert said.startswith("  Cell In[1], line 1\n") and "\nSyntaxError: " in said
    made.sources["c0"] = "x = 7"
    assert run(made, "c1", ["c0"])["outputs"][0]["text"] == "7"


def test_a_cell_above_that_fails_is_named(page):
    answer = run(page("x = 1 / 0", "x"), "c1")
    assert answer["outputs"] == [] and "ZeroDivisionError" in answer["first"][0]["raised"]


@pytest.mark.parametrize("source", ["def f(: return 2", "def f() return 2", "def f():\n    return (2"])
@pytest.mark.parametrize("ran", [False, True], ids=["never ran", "ran before"])
def test_an_answer_that_is_not_python_is_not_judged_by_what_it_was_before(page, ran, source):
    made = page("def f(): return 1", "f()")
    if ran:
        run(made, "c1")
    made.sources["c0"] = source
    answer = run(made, "c1", ["c0"])
    assert answer["outputs"] == [] and "SyntaxError" in answer["first"][0]["raised"]
    made.sources["c0"] = "def f(): return 2"
    assert run(made, "c1", ["c0"])["outputs"][0]["text"] == "2"


@pytest.mark.parametrize("source", ["def g(): return 2", ""])
def test_a_name_that_is_gone_is_not_what_it_was_before(page, source):
    made = page("def f(): return 1", "f()")
    run(made, "c1")
    made.sources["c0"] = source
    (said,) = run(made, "c1", ["c0"])["outputs"]
    assert said["kind"] == "raises" and said["text"].endswith("NameError: name 'f' is not defined")


def test_a_cell_that_needs_something_a_page_lacks_says_so(page):
    made = page("import torch", "torch.ones(3)")
    told = {cell["id"]: cell["missing"] for cell in cells.of_chapter(
        [nbformat.v4.new_code_cell(text, id=id) for id, text in made.sources.items()]
    )}  # fmt: skip
    assert set(told.values()) == {"This cell needs torch, which does not run in a page."}
    assert run(made, "c1")["first"][0]["raised"] == told["c0"]


def test_a_cell_runs_without_the_imports_that_a_page_lacks(page):
    made = page(
        "import torch, math\nfrom flashlib import softmax, torch_ref",
        "math.pi",
        "torch.ones(3)",
        "def f():\n    torch_ref",
    )
    (imports, pi, ones, f) = cells.of_chapter(
        [nbformat.v4.new_code_cell(text, id=id) for id, text in made.sources.items()]
    )
    assert [*imports["lacks"]] == ["torch", "torch_ref"] and not imports["missing"] and not pi["missing"]
    assert ones["missing"] == f["missing"] == "This cell needs torch, which does not run in a page."
    assert run(made, "c1")["outputs"][0]["text"].startswith("3.14")
    made.sources["c1"] = "torch.ones(3)"
    said = run(made, "c1", ["c1"])["outputs"][0]["text"]
    assert said.endswith(
        "ImportError: torch is not on this page. This cell needs torch, which does not run in a page."
    )


@pytest.mark.parametrize(
    "source, lacking",
    [
        ("torch.ones(3).softmax(dim=-1)", ""),
        ("X = torch.ones(3, requires_grad=True)", "gradients"),
        ("loss.backward()", "gradients"),
        ("tiled.backward(1)", ""),
        ("torch.compile(f)", "torch.compile"),
        ("import torch.nn as nn\nnn.Linear(3, 3)", "layers of torch.nn, which the stand-in"),
        ("from triton.experimental import gluon", "Gluon"),
        ("bench.mine(f)", "Triton's compiler, which runs in JupyterLab or Colab, not in a page"),
        ("from flashlib.kernels.compiler import compiled", "Triton's compiler"),
        ("from flashlib.kernels import softmax", ""),
    ],
)
def test_a_page_with_kernels_has_triton_and_a_part_of_torch(source, lacking):
    pytest.importorskip("triton")
    found = cells.missing_of(source, kernels=True, aliases={"torch": "torch", "tiled": "flashlib.tiled"})
    assert found.startswith(f"This cell needs {lacking}") if lacking else not found


@pytest.mark.parametrize(
    "source, expected",
    [
        ("import numpy as np", ""),
        ("from flashlib import tiled, masks", ""),
        ("from flashlib import torch_ref", "torch"),
        ("from flashlib.chunked import attention", "torch"),
        ("from flashlib.bench.common import harness", "torch"),
        ("import subprocess", "another process"),
        ("from ipywidgets import interact", "ipywidgets"),
    ],
)
def test_imports_show_what_a_page_lacks(source, expected):
    found = cells.missing_of(source)
    assert found.startswith(f"This cell needs {expected}") if expected else not found


def test_a_widget_is_shown_asked_and_answers_at_once(page):
    made = page("from counter_of_a_test import Counter", "Counter()")
    found, _ = ask(made, "show", cell="c1", sources=made.sources)
    (shown,) = found["outputs"]
    assert (shown["kind"], shown["class"], shown["text"]) == ("widget", "Counter", "Counter(0)")
    assert shown["model"] == found["model"] and shown["state"] == {"n": 0, "twice": {"buffer": 0}}
    assert ask(made, "show", cell="c1", sources=made.sources)[0] == {"model": found["model"]}
    made.told.clear()
    assert ask(made, "take", model=found["model"], changes={"n": 4}) == (None, [])
    ((event, buffers),) = made.told
    assert json.loads(event)["changes"] == {"n": 4, "twice": {"buffer": 0}} and buffers == [b"\x08"]


def test_a_mistake_of_the_kernel_is_reported(page):
    assert "ValueError" in ask(page("x = 1"), "run", cell="none", sources={})[0]["failed"]


def test_a_trait_is_sent_as_its_serialiser_returns_it():
    class Packed(stand_ins.AnyWidget):
        runs = traitlets.List().tag(sync=True, to_json=lambda value, _: bytes(value))

    told, widget = [], Packed()
    stand_ins.heard.append(lambda _, changes: told.append(changes))
    widget.runs = [1, 2]
    stand_ins.heard.pop()
    assert told == [{"runs": b"\1\2"}] and widget.state() == {"runs": b"\1\2"}


def test_code_that_draws_runs_without_drawing():
    nothing = stand_ins.Nothing()
    (line,) = nothing.plot([1, 2], "o-", color="red")
    nothing.spines[:].set_visible(False)
    nothing[0] = 1
    with nothing.hold() as held:
        assert float(held + 3 * line - 1) == 0 and round(line, 2) == 0 and not line > 2
    _, axes = stand_ins.subplots(2, 3)
    assert axes.shape == (2, 3) and isinstance(stand_ins.subplots()[1], stand_ins.Nothing)


WAITS = {
    "input": "x = input('your age? ')",
    "input without words": "input()",
    "getpass": "import getpass\ngetpass.getpass()",
    "getpass by name": "from getpass import getpass\ngetpass('token: ', stream=None)",
    "all of stdin": "import sys\nsys.stdin.read()",
    "a line of stdin": "import sys\nsys.stdin.readline()",
    "lines of stdin": "import sys\nfor line in sys.stdin: print(line)",
    "a list of lines": "import sys\nsys.stdin.readlines()",
    "fileinput": "import fileinput\nlist(fileinput.input(files=('-',)))",
    "breakpoint": "breakpoint()",
    "breakpoint in a function": "def f(x):\n    breakpoint()\n    return x\nf(3)",
    "pdb": "import pdb\npdb.set_trace()\nx = 1",
    "pdb afterwards": "import pdb\ntry: 1 / 0\nexcept Exception as e: pdb.post_mortem(e.__traceback__)",
    "a console": "import code\ncode.interact()",
}


@pytest.mark.parametrize("way", WAITS)
def test_code_that_waits_for_input_is_told_what_to_do_instead(page, way):
    import builtins
    import getpass

    before = builtins.input, getpass.getpass, sys.stdin, sys.breakpointhook
    made = page("x = 1", "x + 1")
    made.sources["c0"] = WAITS[way]
    outputs = run(made, "c0", ["c0"])["outputs"]
    assert outputs[-1]["kind"] == "raises"
    assert outputs[-1]["text"].splitlines()[-1] == f"StdinNotImplementedError: {no_input.SENTENCE}"
    assert "write the value into the code" in no_input.SENTENCE and "print" in no_input.SENTENCE
    assert (builtins.input, getpass.getpass, sys.stdin, sys.breakpointhook) == before
    made.sources["c0"] = "x = 6"
    assert run(made, "c1", ["c0"])["outputs"][0]["text"] == "7"
