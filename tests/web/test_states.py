"""Which cells are run for a widget, and what the page gets."""

import json

import nbformat
import pytest

pytest.importorskip("anywidget")

from web import states
from web.live.inside import needs


def code(*sources, stored=()):
    cells = [nbformat.v4.new_code_cell(source, id=f"c{k}") for k, source in enumerate(sources)]
    cells[-1].outputs = [nbformat.v4.new_output("display_data", {"text/plain": words}) for words in stored]
    return cells


def needed(*sources):
    return needs.needed(needs.all_names(sources), len(sources) - 1)


@pytest.mark.parametrize(
    "sources, expected",
    [
        (("x = 1", "y = 2", "show(x)"), {0}),
        (("x = 1", "x = 2", "show(x)"), {1}),
        (("x = 1", "y = x", "show(y)"), {0, 1}),
        (("x = 1", "x += 1", "show(x)"), {0, 1}),
        (("def f():\n    return x", "x = 1", "show(f())"), {0, 1}),
        (("import numpy as np", "a = np.ones(3)", "b = np.ones(3)", "show(a)"), {0, 1}),
        (("x = []", "x.append(1)", "show(x)"), {0, 1}),
        (("x = {}", "x['a'] = 1", "show(x)"), {0, 1}),
        (("y = 0", "for y in (1, 2):\n    z = y", "show(z)"), {1}),
        (("x = 5", "[x for x in (1, 2)]", "show(x)"), {0}),
        (("m = 1", "for j in (1, 2):\n    m_old = m\n    m = m_old", "show(m)"), {0, 1}),
        (("rng = make()", "a = rng.normal()", "b = rng.normal()", "show(b)"), {0, 1, 2}),
    ],
)
def test_only_the_cells_that_make_a_widget_are_needed(sources, expected):
    assert needed(*sources) == expected


def test_the_page_gets_the_state_of_a_widget_without_its_scripts(tmp_path):
    cells = code("raise SystemExit", "from flashlib.widgets import MergeTree", "MergeTree(cuts=(2, 3))")
    cells[-1].outputs = [nbformat.v4.new_output("display_data", {"text/plain": words_of_tree()})]
    (told,) = states.of_chapter(cells, tmp_path).values()
    assert told["class"] == "MergeTree" and told["state"]["problem"] == ""
    assert not {"script", "_esm", "_css"} & told["state"].keys()
    json.dumps(told, allow_nan=False)


def words_of_tree():
    from flashlib.widgets import MergeTree

    return repr(MergeTree(cuts=(2, 3)))


def test_a_widget_that_differs_from_the_one_in_the_notebook_is_an_error(tmp_path):
    cells = code("from flashlib.widgets import MergeTree\nMergeTree(cuts=(2, 3))", stored=["MergeTree(another)"])
    with pytest.raises(ValueError, match=r"^cell c0 shows 'MergeTree\(.*run make notebooks$"):
        states.of_chapter(cells, tmp_path)


def test_a_cell_prints_nothing_and_runs_in_the_folder_of_the_notebooks(tmp_path, capsys):
    space = {}
    states.run("import os\nprint('loud')\nhere = os.getcwd()", space, tmp_path)
    assert capsys.readouterr().out == "" and space["here"] == str(tmp_path)


def test_gradients_that_a_chapter_turns_off_are_on_again_after_it(tmp_path):
    torch = pytest.importorskip("torch")
    cells = code("import torch\ntorch.set_grad_enabled(False)", "predict = lambda: torch", "predict()")
    states.of_chapter(cells, tmp_path)
    assert torch.is_grad_enabled()
