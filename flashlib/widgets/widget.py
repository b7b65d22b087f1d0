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
SHEETS = "palette", "look", "common"


def script(name: str) -> str:
    """Return the script of a widget: the text of a .js file of this folder, and of all that it imports."""
    words = json.dumps(texts.words(), ensure_ascii=False)
    return modules.join(FOLDER / name).replace("const WORDS = {};", f"const WORDS = {words};", 1)


def style(*names: str) -> str:
    """Return the text of the style sheets that the widgets share and of .css files of this folder."""
    sheets = *(f"shared/{name}.css" for name in SHEETS), *names
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in sheets)


IMPORT = (FOLDER / "import.js").read_text(encoding="utf-8")


class Widget(anywidget.AnyWidget):
    """A widget that shows what Python computed, or says in a sentence why there is nothing to show.

    A subclass sets `problem` where its arguments cannot be shown, in place of what it shows. It has `figure`, its
    `script` as `_esm` and its `style` as `_css`. A later request that cannot be met is answered in `refused`; what
    is shown then stays.
    """

    problem = traitlets.Unicode().tag(sync=True)  # a sentence in the widget's place, or ""
    refused = traitlets.Unicode().tag(sync=True)  # a sentence beside the controls, or ""
    script = traitlets.Unicode().tag(sync=True)  # what import.js imports
    asked = traitlets.Int().tag(sync=True)  # how often the page asked for another setting
    heard = traitlets.Int().tag(sync=True)  # the last of these that Python knows of, whatever came of it

    _ipython_display_ = None  # ipywidgets 7, as Colab has it, would show no picture, and cut what stands for it

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
        """Return a picture of the widget, with `png`, for viewers where nothing can play; None for none."""
        raise NotImplementedError

    def suspend(self) -> None:
        """Close the widget; when it is shown again, it opens again."""
        if self.comm is None:
            return
        self.close()
        self.layout.close()
        self.__dict__.pop("_repr_mimebundle_", None)  # None since it was closed, but for ipywidgets 7

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
