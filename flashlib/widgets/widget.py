"""What all widgets of the course have in common."""

import base64
import json
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from flashlib.language import texts
from flashlib.widgets import cells, modules

FOLDER = Path(__file__).parent
SHEETS = "palette", "look", "narrow", "grouped_rules"


def script(name: str) -> str:
    """Return the script of a widget: the text of a .js file in this folder and of everything that it imports."""
    words = json.dumps(texts.words(), ensure_ascii=False)
    return modules.join(FOLDER / name).replace("const WORDS = {};", f"const WORDS = {words};", 1)


def style(*names: str) -> str:
    """Return the text of the style sheets that all widgets share, and of the given .css files in this folder."""
    sheets = *(f"shared/{name}.css" for name in SHEETS), *names
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in sheets)


IMPORT = (FOLDER / "import.js").read_text(encoding="utf-8")


class Widget(anywidget.AnyWidget):
    """A widget that shows what Python computed, or says in a sentence why there is nothing to show.

    A subclass sets `problem`, and shows nothing else, if its arguments cannot be shown. It has `figure`, its
    `script` as `_esm` and its `style` as `_css`. If a later request cannot be met, `refused` says why, and what is
    shown stays.
    """

    problem = traitlets.Unicode().tag(sync=True)  # a sentence in place of the widget, or ""
    refused = traitlets.Unicode().tag(sync=True)  # a sentence next to the controls, or ""
    script = traitlets.Unicode().tag(sync=True)  # what import.js imports
    asked = traitlets.Int().tag(sync=True)  # how often the page requested a different setting
    heard = traitlets.Int().tag(sync=True)  # the last of these that Python handled, whatever the outcome

    _ipython_display_ = None  # ipywidgets 7, which Colab has, would show no picture and a truncated repr

    def __init__(self, **state):
        super().__init__(script=self._script, **state)
        self.observe(self._note, names="asked")
        cells.keep(self)

    def __init_subclass__(cls, **kwargs):
        if isinstance(cls.__dict__.get("_esm"), str):
            cls._script, cls._esm = cls._esm, IMPORT
        super().__init_subclass__(**kwargs)

    def _note(self, change):
        self.heard = change.new

    def figure(self) -> Any:
        """Return a picture of the widget, with `png`, for viewers in which nothing can play, or None."""
        raise NotImplementedError

    def suspend(self) -> None:
        """Close the widget; it reopens when it is shown again."""
        if self.comm is None:
            return
        self.close()
        self.layout.close()
        self.__dict__.pop("_repr_mimebundle_", None)  # None since it was closed, except with ipywidgets 7

    def _sizes(self) -> str:
        """Return the key numbers, for repr."""
        raise NotImplementedError

    def __repr__(self):
        return f"{type(self).__name__}({self.problem or self._sizes()})"

    def _repr_mimebundle_(self, **kwargs):
        self.layout.open()
        self.open()
        cells.keep(self)
        data, metadata = super()._repr_mimebundle_(**kwargs)
        data["text/plain"] = repr(self)
        if not self.problem and (picture := self.figure()):
            data["image/png"] = base64.b64encode(picture.png()).decode()
        return data, metadata
