"""The states of widgets in a notebook saved by JupyterLab.

JupyterLab saves the widgets whose Python objects exist, shown or not. After a restart, or when a notebook is
reopened, there are none, and saving would leave errors in their place. It would also keep widgets that a new run
of a cell has replaced.
"""

import json
import re
from pathlib import Path

VIEW, STATE = (f"application/vnd.jupyter.widget-{kind}+json" for kind in ("view", "state"))
REFERENCE = re.compile(r'"IPY_MODEL_(\w+)"')  # in the state of a widget: a widget that it contains


def complete(model, path, contents_manager, **_):
    """Save the notebook with the state of each widget that it shows, and of no other.

    A hook of the contents manager. A state that JupyterLab no longer has is taken from the old file; of a widget
    that is not there either, only the picture is saved.
    """
    notebook = model.get("content")
    if model.get("type") != "notebook" or not notebook:
        return
    views = list(_views(notebook))
    ids = {data[VIEW].get("model_id") for data in views}
    states = _states(notebook)
    if ids - states.keys():
        states = _saved(Path(contents_manager.root_dir, path.strip("/"))) | states
    needed = _needed(ids, states)
    for data in views:
        if data[VIEW].get("model_id") not in needed and len(data) > 1:
            del data[VIEW]
    notebook["metadata"].pop("widgets", None)
    if needed:
        notebook["metadata"]["widgets"] = {STATE: {"state": needed, "version_major": 2, "version_minor": 0}}


def _views(notebook):
    """Yield the data of each output that shows a widget."""
    for cell in notebook.get("cells", []):
        for output in cell.get("outputs", []):
            if VIEW in output.get("data", {}):
                yield output["data"]


def _states(notebook):
    """Return the states in a notebook, {id of the widget: state}."""
    return notebook.get("metadata", {}).get("widgets", {}).get(STATE, {}).get("state", {})


def _saved(path):
    """Return the states in the file at `path`, which may be new or broken."""
    try:
        return _states(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _needed(ids, states):
    """Return the states of these widgets and of all widgets that they contain."""
    needed, ids = {}, list(ids)
    while ids:
        if (widget := ids.pop()) in states and widget not in needed:
            needed[widget] = states[widget]
            ids += REFERENCE.findall(json.dumps(states[widget]["state"]))
    return dict(sorted(needed.items()))
