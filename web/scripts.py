"""The scripts and style sheets of the widgets, as files that all pages share.

A page opened as a file may load scripts, but not modules. So the script of a class, which Python has joined
from its modules, is wrapped in a function that hands over what it exports.
"""

import importlib

from flashlib import widgets
from flashlib.widgets.widget import style

ELSEWHERE = {
    "CompilerLab": "flashlib.widgets.compiler_lab",
    "PredictionCard": "flashlib.widgets.prediction_card.prediction_card",
}
EXPORT = "\nexport default "
SHARED = "widgets.css"


def classes():
    """Return {name: class} of all widgets."""
    found = {name: getattr(widgets, name) for name in widgets.__all__}
    return found | {name: getattr(importlib.import_module(place), name) for name, place in ELSEWHERE.items()}


def files():
    """Return {name of a file: its text}."""
    shared, found = style(), {SHARED: style()}
    for name, one in classes().items():
        found[f"{name}.css"] = one._css.removeprefix(shared).lstrip()
        found[f"{name}.js"] = classic(name, one._script)
    return found


def classic(name, module):
    """Return a script that does what a module without imports does, and stores its export under this name."""
    if module.count(EXPORT) != 1:
        raise ValueError(f"the script of {name} must have exactly one export default, which a page takes")
    text = "\n".join(line for line in module.replace(EXPORT, "\nreturn ").splitlines() if not is_comment(line))
    return f'"use strict";\nflashSite.widgets.{name} = (() => {{\n{text}\n}})();\n'


def is_comment(line):
    """Return whether a line is only a comment, which a page does not need."""
    return line.lstrip().startswith("// ")
