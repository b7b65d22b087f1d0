"""What all widgets of the course have in common."""

import base64
from pathlib import Path

import anywidget
import traitlets

FOLDER = Path(__file__).parent
SCRIPTS = "elements", "numbers", "colours", "transport", "controls", "keys", "widget"
SHEETS = "palette", "look"


def script(*names):
    """Return the text of what the widgets share and of .js files of this folder: all a bundler would have to do."""
    return _join(*(f"shared/{name}.js" for name in SCRIPTS), *names)


def style(*names):
    """Return the same of style sheets."""
    return _join(*(f"shared/{name}.css" for name in SHEETS), *names)


def _join(*names):
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)


class Widget(anywidget.AnyWidget):
    """A widget that shows what Python computed, or says in a sentence why there is nothing to show.

    A subclass sets `problem` instead of what it shows where its arguments cannot be shown, and has `figure`.
    A later request that cannot be met is answered in `refused`; what is shown then stays.
    """

    problem = traitlets.Unicode().tag(sync=True)  # a sentence in the widget's place, or ""
    refused = traitlets.Unicode().tag(sync=True)  # a sentence beside the controls, or ""

    def figure(self):
        """Return a picture of the widget, a `figures.Picture`, for viewers where nothing can play."""
        raise NotImplementedError

    def _sizes(self) -> str:
        """Return the key numbers, for repr."""
        raise NotImplementedError

    def __repr__(self):
        return f"{type(self).__name__}({self.problem or self._sizes()})"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        data["text/plain"] = repr(self)
        if not self.problem:
            data["image/png"] = base64.b64encode(self.figure().png()).decode()
        return data, metadata
