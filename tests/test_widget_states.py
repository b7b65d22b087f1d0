"""The states of widgets that are saved with a notebook."""

import json
from types import SimpleNamespace

import pytest

from tools.widget_states import STATE, VIEW, complete


def notebook(shown, states):
    """A notebook that shows widgets, and has states: {id: ids of the widgets that it contains}."""
    outputs = [{"data": {VIEW: {"model_id": id}, "text/plain": "Slider()"}} for id in shown]
    found = {id: {"state": {"layout": [f"IPY_MODEL_{part}" for part in parts]}} for id, parts in states.items()}
    return {
        "cells": [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": outputs}],
        "metadata": {"title": "T", "widgets": {STATE: {"state": found, "version_major": 2, "version_minor": 0}}},
    }


@pytest.fixture
def save(tmp_path):
    """Return a function that saves a notebook as the server does, and returns the widgets saved and shown."""

    def save(content):
        complete(
            model={"type": "notebook", "content": content},
            path="/small.ipynb",
            contents_manager=SimpleNamespace(root_dir=str(tmp_path)),
        )
        (tmp_path / "small.ipynb").write_text(json.dumps(content), encoding="utf-8")
        states = content["metadata"].get("widgets", {STATE: {"state": {}}})[STATE]["state"]
        assert content["metadata"]["title"] == "T"
        return sorted(states), [output["data"].get(VIEW) for output in content["cells"][1]["outputs"]]

    return save


def view(id):
    return {"model_id": id}


def test_a_widget_that_is_not_shown_is_not_saved(save):
    known = {"a": ["b"], "b": ["c"], "c": [], "old": ["d"], "d": []}
    assert save(notebook(["a"], known)) == (["a", "b", "c"], [view("a")])


def test_a_state_that_the_server_has_lost_is_kept(save):
    save(notebook(["a", "b"], {"a": ["c"], "b": [], "c": []}))
    assert save(notebook(["a", "b"], {})) == (["a", "b", "c"], [view("a"), view("b")])
    assert save(notebook(["a", "new"], {"new": []})) == (["a", "c", "new"], [view("a"), view("new")])


def test_a_widget_without_a_state_is_saved_as_its_other_outputs(save):
    assert save(notebook(["a", "b"], {"b": []})) == (["b"], [None, view("b")])


def test_a_notebook_without_widgets_is_saved_without_states(save):
    content = notebook([], {"old": []})
    assert save(content) == ([], [])
    assert "widgets" not in content["metadata"]


def test_a_broken_file_and_files_of_other_types_are_left_alone(save, tmp_path):
    (tmp_path / "small.ipynb").write_text("{", encoding="utf-8")
    assert save(notebook(["a"], {})) == ([], [None])
    model = {"type": "file", "content": "text"}
    complete(model=model, path="a.txt", contents_manager=SimpleNamespace(root_dir=str(tmp_path)))
    assert model == {"type": "file", "content": "text"}
