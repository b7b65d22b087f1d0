"""The kernel of a page: it runs the cells of one chapter, and answers their widgets."""

import ast
import builtins
import contextlib
import importlib.util
import io
import json
import linecache
import os
import sys
import traceback
import types
from pprint import PrettyPrinter

from web.live.inside import failing, left_out, needs, no_input, stand_ins
from web.live.inside.order import Order

LONGEST = 100_000  # characters of a stream or a value to show
RAISES = "raises"  # the kind of output of a cell that did not finish


class Kernel:
    """Runs the cells of a chapter as a notebook does, and first the cells that a cell needs.

    cells: a dict for each code cell, in order, as `cells.py` writes it. tell: called with an event, (text in JSON,
    [bytes]).
    """

    def __init__(self, cells, tell):
        self.ids = [cell["id"] for cell in cells]
        self.missing = [cell["missing"] for cell in cells]
        self.lacks = [cell["lacks"] for cell in cells]
        self.order = Order(needs.Names(*map(set, cell["names"])) for cell in cells)
        self.imports = set().union(*(cell["imports"] for cell in cells))
        self.tell, self.count = tell, 0
        self.space = {"__name__": "__main__"}
        self.texts = {}  # {number: the text of the cell when it ran, or when its names were computed}
        self.files = {}  # {file of a cell's code: what it is called}
        self.shown = {}  # {number: the widgets that the cell shows}
        self.widgets = {}  # {id of a model: widget}
        stand_ins.heard[:] = [self._hear]

    def run(self, cell, sources, changed=(), ended=()):
        """Run a cell and those it needs; return its outputs, and the other cells that ran, with what they raised.

        sources: the text of each cell, by id. changed: the ids of those that a reader has changed. ended: where
        the check in the cell was ended from outside, the sentence on it and what was last announced.
        """
        number = self.ids.index(cell)
        if ended:
            from flashlib.learner import process

            process.was_ended(*ended)
        self._take_texts(sources, changed)
        first = []
        for k in self.order.before(number):
            raised = [one for one in self._run(k) if one["kind"] == RAISES]
            first.append({"cell": self.ids[k], "raised": raised[0]["text"] if raised else ""})
            if raised:
                return {"first": first, "outputs": [], "count": self.count}
        return {"first": first, "outputs": self._run(number), "count": self.count}

    def show(self, cell, sources, changed=()):
        """Return the id of the model of a cell's widget, and what `run` returns if the cell had not run."""
        number, run = self.ids.index(cell), {}
        if number not in self.shown:
            run = self.run(cell, sources, changed)
        shown = self.shown.get(number, ())
        return {"model": shown[-1].model_id if shown else "", **run}

    def take(self, model, changes):
        """Set what the page asks of a widget."""
        self.widgets[model].take(changes)

    def _take_texts(self, sources, changed):
        for number, cell in enumerate(self.ids):
            text = sources.get(cell)
            if text is None or text == self.texts.get(number):
                continue
            if number in self.texts or cell in changed:
                self._take_names(number, _names(text, self.imports))
                self.missing[number] = ""
            self.texts[number] = text

    def _take_names(self, number, names):
        """Take the Names of a changed cell, and forget what no cell defines any more: it would be found instead.

        None: the text is not Python. It still counts as the cell that defines what it defined before, so a cell
        that needs that runs it first, and reports the error.
        """
        before = self.order.names[number].given
        self.order.change(number, names or self.order.names[number])
        for name in before.difference(*(cell.given for cell in self.order.names)):
            self.space.pop(name, None)

    def _run(self, number):
        self.tell(json.dumps({"event": "cell", "cell": self.ids[number]}), [])
        for widget in self.shown.pop(number, ()):
            self.widgets.pop(widget.model_id, None)
        if self.missing[number]:
            return [{"kind": RAISES, "text": self.missing[number]}]
        self.count += 1
        outputs = self._outputs(number, _Outputs())
        self.shown[number] = [one["widget"] for one in outputs if one["kind"] == "widget"]
        self.widgets |= {widget.model_id: widget for widget in self.shown[number]}
        for one in outputs:
            if one["kind"] == "widget":
                widget = one.pop("widget")
                one.update(model=widget.model_id, **{"class": type(widget).__name__, "text": repr(widget)})
        if not outputs or outputs[-1]["kind"] != RAISES:
            self.order.ran(number)
        return outputs

    def _outputs(self, number, found):
        """Run a cell; return what it prints, shows and raises."""
        text = self.texts[number]
        file = f"<cell {self.count}>"
        self.files[file] = f"Cell In[{self.count}]"
        linecache.cache[file] = len(text), None, f"{text}\n".splitlines(keepends=True), file
        stand_ins.displayed[:], stand_ins.Drawn.count = [], 0
        vars(builtins).update(display=found.display, get_ipython=lambda: None)
        sys.modules["IPython.display"].display = found.display
        try:
            with (
                contextlib.redirect_stdout(_Stream(found, "out")),
                contextlib.redirect_stderr(_Stream(found, "err")),
                no_input.refused(),
            ):
                value = self._value(text, file, self.lacks[number])
                if value is not None and not isinstance(value, stand_ins.Nothing):
                    found.display(value)
        except BaseException as error:  # SystemExit too: a cell must not end the page's Python
            found.append({"kind": RAISES, "text": failing.words(error, self.files)})
        if stand_ins.Drawn.count:
            at = len(found) - (found[-1:] != [] and found[-1]["kind"] == RAISES)
            found.insert(at, {"kind": "picture", "count": stand_ins.Drawn.count})
        return list(found)

    def _value(self, text, file, lacks):
        """Run the text of a cell, without the imports that a page lacks; return the value of its last line."""
        tree = ast.parse(text, file)
        self.space.update(left_out.without(tree, lacks))
        ends = isinstance(tree.body[-1], ast.Expr) if tree.body else False
        quiet = text.rstrip().endswith(";")
        last = ast.Expression(tree.body.pop().value) if ends else None
        exec(compile(tree, file, "exec"), self.space)
        value = eval(compile(last, file, "eval"), self.space) if last else None
        return None if quiet else value

    def _hear(self, widget, changes):
        """Tell the page what changed in a widget that it shows."""
        if widget.model_id in self.widgets:
            event, buffers = packed({"event": "state", "model": widget.model_id, "changes": changes})
            self.tell(event, buffers)


class _Outputs(list):
    """The outputs of a cell so far."""

    def display(self, *things, **options):  # noqa: ARG002
        for thing in things:
            self.append(_shown(thing))

    def write(self, stream, text):
        if not self or self[-1]["kind"] != stream:
            self.append({"kind": stream, "text": ""})
        room = LONGEST - len(self[-1]["text"])
        self[-1]["text"] += text[: max(0, room)]


class _Stream(io.TextIOBase):
    def __init__(self, outputs, name):
        self.outputs, self.name = outputs, name

    def write(self, text):
        self.outputs.write(self.name, text)
        return len(text)


def _shown(thing):
    """Return the output for a value, chosen as in a notebook."""
    if isinstance(thing, stand_ins.AnyWidget):
        return {"kind": "widget", "widget": thing, "state": thing.state()}
    if hasattr(thing, "_repr_png_"):
        return {"kind": "picture", "count": 1, "text": repr(thing)}
    bundle = thing._repr_mimebundle_() if hasattr(thing, "_repr_mimebundle_") else {}
    made = bundle.get("text/html") or (thing._repr_html_() if hasattr(thing, "_repr_html_") else "")
    verdict = next((value for mime, value in bundle.items() if "verdict" in mime), None)
    text = bundle.get("text/plain") if bundle else _text(thing)
    found = {"kind": "value", "text": text[:LONGEST], "html": made}
    return found | ({"verdict": verdict} if verdict else {})


def _text(thing):
    """Return a value as a notebook prints it: long lists and dicts over several lines."""
    if isinstance(thing, dict | list | tuple | set) and len(repr(thing)) > 79:
        return PrettyPrinter(width=79, sort_dicts=False, compact=False).pformat(thing)
    return repr(thing)


def _names(text, imports):
    """Return the Names of a cell that a reader changed, None if it is not Python.

    imports: names that other cells import.
    """
    try:
        (names,) = needs.all_names([text], imports)
    except SyntaxError:
        return None
    return names


def packed(value):
    """Return (a value in JSON, the bytes in it, in order): each is replaced by {"buffer": its number}."""
    buffers = []

    def take(x):
        if not isinstance(x, bytes | bytearray | memoryview):
            raise TypeError(f"{type(x).__name__} cannot be sent to the page")
        buffers.append(bytes(x))
        return {"buffer": len(buffers) - 1}

    return json.dumps(value, default=take), buffers


# ---- called by the worker


class Page:
    """The kernel, which takes questions and gives answers in JSON."""

    def __init__(self, cells, tell):
        self.kernel = Kernel(json.loads(cells), tell)

    def ask(self, asked):
        """Return the answer to a question {"do": the name of a method of Kernel, ...}, (JSON, [bytes])."""
        asked = json.loads(asked)
        try:
            return packed(getattr(self.kernel, asked.pop("do"))(**asked))
        except Exception:
            return packed({"failed": traceback.format_exc()})


class _Later:
    """A loader that calls `then` after its module has run."""

    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.then()


def lazily(name, then=lambda: None):
    """Delay a module until something in it is used: it takes a second, and many cells do not need it."""
    spec = importlib.util.find_spec(name)
    spec.loader = importlib.util.LazyLoader(_Later(spec.loader, then))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)


def begin(cells, tell, watch=lambda kind, value: None):
    """Return the Page of a chapter. watch: called with (kind, value) while an answer is checked."""
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    import flashlib  # noqa: F401  whose folder `lazily` asks for

    def watched():
        from flashlib.learner import process

        process.watch(types.SimpleNamespace(send=lambda message: watch(*message)))

    sys.dont_write_bytecode = False  # each check loads flashlib afresh: from bytecode, in a fifth of the time
    stand_ins.install()
    lazily("flashlib.checks", watched)
    return Page(cells, tell)
