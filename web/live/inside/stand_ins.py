"""Stand-ins for packages that a page lacks: anywidget, IPython, matplotlib and Pillow.

Widgets play on the page, so only the traits of anywidget are needed. Pictures are not drawn: the page shows those
that the site has stored, and code that draws runs without drawing.
"""

import contextlib
import sys
import types
import uuid

import numpy as np
import traitlets

DRAWING = "matplotlib", "matplotlib.pyplot", "matplotlib.colors", "matplotlib.patches", "PIL"
PILLOW = "Image", "ImageChops", "ImageDraw", "ImageFont"
displayed = []  # what the running cell has displayed so far
heard = []  # called with a widget and {trait: value} when the page must know of a change


def install():
    """Make `import` find the stand-ins."""
    _module("anywidget", AnyWidget=AnyWidget)
    shown = _module("IPython.display", display=lambda *things: displayed.extend(things), HTML=Html)
    _module("IPython", get_ipython=lambda: None, display=shown)
    nothing = Nothing()
    for name in DRAWING:
        _module(name, __getattr__=lambda name: getattr(nothing, name))
    sys.modules["matplotlib"].__dict__.update(get_data_path=lambda: "", pyplot=sys.modules["matplotlib.pyplot"])
    sys.modules["matplotlib.pyplot"].__dict__.update(subplots=subplots, figure=figure, show=lambda: None)
    for name in PILLOW:
        _module(f"PIL.{name}", __getattr__=lambda name: getattr(nothing, name))


def _module(name, **names):
    module = types.ModuleType(name)
    module.__dict__.update(names)
    module.__path__ = []  # so that its submodules may be imported
    return sys.modules.setdefault(name, module)


class Html:
    """HTML that a cell displays."""

    def __init__(self, data):
        self.data = data

    def _repr_mimebundle_(self):
        return {"text/html": self.data, "text/plain": ""}


# ---- widgets


class _Layout:
    def open(self):
        pass

    close = open


class AnyWidget(traitlets.HasTraits):
    """The part of anywidget that flashlib uses. Changes are reported to `heard`."""

    def __init__(self, **state):
        self.model_id, self.comm, self.layout, self._held = uuid.uuid4().hex, True, _Layout(), None
        super().__init__(**state)
        self.observe(self._changed, names=list(self.traits(sync=True)))

    def _changed(self, change):
        sent = {change.name: self._sent(change.name)}
        if self._held is None:
            self._tell(sent)
        else:
            self._held |= sent

    def _tell(self, changes):
        for hear in heard:
            hear(self, changes)

    @contextlib.contextmanager
    def hold_sync(self):
        """Report all changes at once, at the end."""
        if self._held is not None:
            yield
            return
        self._held = {}
        try:
            yield
        finally:
            held, self._held = self._held, None
            if held:
                self._tell(held)

    def open(self):
        pass

    close = open

    def _sent(self, name):
        """Return a trait in the form in which the page gets it."""
        to_json = self.trait_metadata(name, "to_json", lambda value, _: value)
        return to_json(getattr(self, name), self)

    def state(self):
        """Return the state of the widget for the page, without its script, which the page has."""
        return {name: self._sent(name) for name in self.traits(sync=True) if name != "script"}

    def take(self, changes):
        """Set what the page asks for, in one message."""
        with self.hold_sync(), self.hold_trait_notifications():
            for name, value in changes.items():
                setattr(self, name, value)


# ---- pictures


class Drawn:
    """How many pictures the running cell would have drawn."""

    count = 0


def figure(*arguments, **options):  # noqa: ARG001
    Drawn.count += 1
    return Nothing()


def subplots(rows=1, columns=1, **options):  # noqa: ARG001
    """Return a figure and as many axes as there would be."""
    Drawn.count += 1
    axes = np.array([[Nothing() for _ in range(columns)] for _ in range(rows)], object).squeeze()
    return Nothing(), axes if axes.ndim else axes[()]


class Nothing:
    """An object that has any attribute, can be called with anything, and draws nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments, **options):  # noqa: ARG002
        return self

    def __iter__(self):
        return iter([self])  # `line, = ax.plot(...)`

    def __getitem__(self, key):  # noqa: ARG002
        return self

    def __setitem__(self, key, value):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __float__(self):
        return 0.0

    def __lt__(self, other):  # noqa: ARG002
        return False

    def __add__(self, other):  # noqa: ARG002
        return self

    __le__ = __gt__ = __ge__ = __lt__
    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __or__ = __ror__ = __add__
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __add__
    __int__ = __index__ = __round__ = lambda self, *digits: 0  # noqa: ARG005
    __neg__ = __enter__
