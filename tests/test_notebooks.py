"""The stored notebooks, and the tool that stores them. nbval runs them: see the Makefile."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output  # noqa: E402

from flashlib.chapters import CHAPTERS, NOTEBOOKS  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402
from tools import minutes, notebooks  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PATHS = {
    path.relative_to(ROOT / "notebooks").with_suffix("").as_posix(): path
    for path in notebooks.find(ROOT / "notebooks")
}
MACHINE_PATH = re.compile(r"/(home|Users|root|tmp)/|[A-Za-z]:\\Users\\")


of_each = each_case(PATHS.values(), lambda path: path.stem)

# Outputs that may differ from run to run, with a pattern for their source: all others are compared.
DIFFERS = {
    "times": r"perf_counter|do_bench|flashlib\.bench\.cpu",
    "the machine": r"kernels\.INTERPRETED|platform\.python_version",
    "sliders, into which only a page puts their picture": r"\binteract\(",
    "roundings of fp16, in the order in which this CPU adds": r"\.half\(\)",
}


def code_cells(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code" and cell.source.strip()]


def test_there_are_notebooks():
    assert PATHS


@of_each
def test_every_cell_was_executed_in_order(path):
    """nbval compares nothing in a cell that was not executed."""
    counts = [cell.execution_count for cell in code_cells(notebooks.read(path))]
    assert counts == list(range(1, len(counts) + 1)), f"run: make notebooks CHAPTER={path.stem}"


@of_each
def test_stored_as_make_notebooks_stores_it(path):
    stored = notebooks.read(path)
    assert notebooks.to_text(notebooks.normalise(stored)) == path.read_text(encoding="utf-8")
    nbformat.validate(stored)


@of_each
def test_outputs_show_no_errors_and_nothing_of_a_machine(path):
    nb = notebooks.read(path)
    assert notebooks.problems(nb) == []
    for cell in code_cells(nb):
        for text in notebooks.texts(cell.outputs):
            assert not MACHINE_PATH.search(text), f"cell {cell.id}: {text}"


def test_each_chapter_leads_to_the_next():
    """At its end, or above "More (optional)"; the last one and the notebooks without a number lead nowhere."""
    following = {one.slug: f"Next: [{after.heading}]({after.slug}.ipynb)." for one, after in pairwise(CHAPTERS)}
    for one in NOTEBOOKS:
        texts = [cell.source for cell in notebooks.read(PATHS[one.slug]).cells]
        above = next((n for n, text in enumerate(texts) if text.startswith(minutes.MORE)), len(texts))
        found = [
            (n, line) for n, text in enumerate(texts) for line in text.splitlines() if line.startswith("Next: ")
        ]
        assert found == ([(above - 1, following[one.slug])] if one.slug in following else []), one.slug


@of_each
def test_every_source_has_a_link(path):
    """Each entry has one, and each title of a work, in italics, is a link."""
    text = "\n\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown")
    text = text.partition("## Sources\n")[2].partition("\n## ")[0]
    for entry in re.findall(r"^- .*(?:\n +.*)*", text, re.MULTILINE):
        assert re.search(r"\]\((https://|\.\./)", entry), entry
        titles = re.findall(r"(?<![\w*])\*[^*]+\*(?!\*)", entry)
        assert not [title for title in titles if f"[{title}](" not in entry], entry


@of_each
def test_size(path):
    assert path.stat().st_size < 1.5e6, "draw smaller or fewer pictures"


@of_each
def test_only_what_must_differ_is_not_compared(path):
    """Outputs that nbval does not compare go stale unnoticed, and then contradict the text and the cards."""
    cells = [cell for cell in code_cells(notebooks.read(path)) if notebooks.KEPT_OUTPUT in notebooks.tags(cell)]
    others = [cell.id for cell in cells if not any(re.search(asks, cell.source) for asks in DIFFERS.values())]
    assert not others, f"take the tag {notebooks.KEPT_OUTPUT} away, or split the cell: allowed are {list(DIFFERS)}"


def notebook(*outputs, tags=(), text="x"):
    metadata = {"tags": list(tags)}
    cell = new_code_cell(text, execution_count=1, outputs=list(outputs), id="one", metadata=metadata)
    return new_notebook(cells=[cell])


def printed(text):
    return new_output("stream", name="stdout", text=text)


def test_normalise_drops_everything_that_changes_from_run_to_run():
    view = {notebooks.WIDGET_VIEW: {"model_id": "5f"}, "text/plain": "Slider(3)"}
    only_view = {notebooks.WIDGET_VIEW: {"model_id": "6a"}}
    nb = notebook(new_output("display_data", data=view), new_output("display_data", data=only_view))
    nb.cells[0].metadata.execution = {"iopub.status.busy": "2026-01-01T00:00:00Z"}
    nb.metadata.update(widgets={"state": 1}, language_info={"version": "3.11.7"}, title="T")
    done = notebooks.normalise(nb)
    assert done.cells[0].outputs == [new_output("display_data", data={"text/plain": "Slider(3)"})]
    assert done.cells[0].metadata == {"tags": []}
    assert set(done.metadata) == {"kernelspec", "language_info", "title"}
    assert "version" not in done.metadata.language_info
    assert "execution" in nb.cells[0].metadata, "the argument is left as it was"
    assert notebooks.normalise(done) == done


def test_normalise_gives_the_same_ids_every_time():
    nb = new_notebook()
    nb.cells = [new_markdown_cell("a", id="keep"), new_markdown_cell("a", id="keep")]
    nb.cells += [new_code_cell("b"), new_code_cell("b")]
    for cell in nb.cells[2:]:
        del cell["id"]
    done = notebooks.normalise(nb)
    ids = [cell.id for cell in done.cells]
    assert ids[0] == "keep" and len(set(ids)) == 4
    assert ids == [cell.id for cell in notebooks.normalise(nb).cells]
    assert notebooks.normalise(done) == done
    nbformat.validate(done)


def test_only_tagged_cells_keep_their_output():
    before, after = printed("before"), printed("after")
    tagged, untagged = [notebooks.KEPT_OUTPUT], []
    for tags, old, kept in [(tagged, [before], before), (untagged, [before], after), (tagged, [], after)]:
        done = notebooks.normalise(notebook(after, tags=tags), previous=notebook(*old, tags=tags))
        assert done.cells[0].outputs == [kept]


def test_warnings_and_tracebacks_name_no_file_of_this_machine():
    traceback = [f"File {ROOT}/flashlib/types.py:9"]
    nb = notebook(
        new_output("stream", name="stderr", text="/tmp/ipykernel_12/345.py:1: RuntimeWarning: overflow"),
        new_output("error", ename="ValueError", evalue="no", traceback=traceback),
        tags=["raises-exception"],
    )
    warning, error = notebooks.normalise(nb).cells[0].outputs
    assert warning.text == "<cell>:1: RuntimeWarning: overflow"
    assert error.traceback == ["File flashlib/types.py:9"]


@pytest.mark.parametrize(
    "output, said",
    [
        (new_output("error", ename="ValueError", evalue="no", traceback=[]), "raised ValueError: no"),
        (printed(f"saved to {ROOT}/figure.png"), "path of this machine"),
        (printed(f"saved to {Path.home()}/figure.png"), "path of this machine"),
        (new_output("display_data", data={"text/html": f"<a href='{ROOT}'>"}), "path of this machine"),
        (new_output("execute_result", data={"text/plain": "<object at 0x7f12ab34cd56>"}), "memory address"),
    ],
)
def test_problems_are_named_with_their_cell(output, said):
    (problem,) = notebooks.problems(notebook(output))
    assert said in problem and "cell 0 (one)" in problem


def test_no_problems():
    assert not notebooks.problems(notebook(printed("O is (5, 4), 0x7f800000 is inf")))
    assert not notebooks.problems(notebook(new_output("display_data", data={"image/png": f"{ROOT}"})))


@pytest.mark.process
def test_run_stores_outputs_once_and_refuses_errors(tmp_path):
    path = tmp_path / "try.ipynb"
    path.write_text(notebooks.to_text(notebook(text="6 * 7")), encoding="utf-8")
    assert notebooks.run(path) == []
    stored = path.read_text(encoding="utf-8")
    assert '"42"' in stored
    assert notebooks.run(path) == []
    assert path.read_text(encoding="utf-8") == stored

    path.write_text(broken := notebooks.to_text(notebook(text="1 / 0")), encoding="utf-8")
    (problem,) = notebooks.run(path)
    assert "ZeroDivisionError" in problem
    assert path.read_text(encoding="utf-8") == broken


def test_a_notebook_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "NOTEBOOK_TIMEOUT", 0.1)
    path = tmp_path / "try.ipynb"
    path.write_text(notebooks.to_text(notebook(text="while True: pass")), encoding="utf-8")
    assert notebooks.run(path) == ["did not end within 0.1 s, twice"]


def test_a_file_that_is_not_a_notebook_is_named(tmp_path):
    for text, said in [("", "is not a notebook"), ('{"nbformat": 3, "worksheets": []}', "format 3")]:
        (tmp_path / "try.ipynb").write_text(text)
        (problem,) = notebooks.run(tmp_path / "try.ipynb")
        assert "try.ipynb" in problem and said in problem


def test_the_outcome_of_each_notebook_is_printed(monkeypatch, capsys):
    path = notebooks.ROOT / "notebooks" / "04_one_pass.ipynb"
    outcomes = [(path, 1.04, True, []), (path, 2.0, False, []), (path, 3.0, False, ["cell 2 raised"])]
    monkeypatch.setattr(notebooks, "make", lambda chapter, refresh: iter(outcomes))
    monkeypatch.setattr(notebooks, "chapters", lambda folder, chapter: [path])
    monkeypatch.setattr("sys.argv", ["notebooks"])
    with pytest.raises(SystemExit, match="1 failed: 04_one_pass.ipynb"):
        notebooks.main()
    said, wrong = capsys.readouterr()
    assert [line.partition(" s, ")[2] for line in said.splitlines()] == [
        "stored",
        "unchanged",
        "failed, left as it was",
    ]
    assert said.startswith("04_one_pass.ipynb 1.0 s") and wrong == "04_one_pass.ipynb: cell 2 raised\n"
