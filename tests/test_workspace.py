import sys

import pytest

from flashlib import chapters

nbformat = pytest.importorskip("nbformat")
v4, workspace = nbformat.v4, pytest.importorskip("tools.workspace")


def write(path, text):
    """Write a file that contains `text`; a notebook has it in its first cell, above an executed one."""
    if path.suffix != ".ipynb":
        path.write_text(text)
        return
    output = v4.new_output("execute_result", {"text/plain": "2"}, execution_count=1)
    executed = v4.new_code_cell("1 + 1", execution_count=1, outputs=[output])
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell(text), executed]), path)


def read(path):
    """Return the text that write() wrote."""
    return nbformat.read(path, as_version=4).cells[0].source if path.suffix == ".ipynb" else path.read_text()


@pytest.fixture
def folders(tmp_path):
    source, target = tmp_path / "notebooks", tmp_path / "workspace"
    (source / "data").mkdir(parents=True)
    (source / ".ipynb_checkpoints").mkdir()
    for name in ("00_start_here.ipynb", "05_one_pass.ipynb", "data/gpu.json", ".ipynb_checkpoints/05.ipynb"):
        write(source / name, "original")
    return source, target


def files(folder):
    return {str(p.relative_to(folder)): read(p) for p in folder.rglob("*") if p.is_file()}


def test_copy_copies_chapters_and_data(folders):
    workspace.copy(*folders)
    assert set(files(folders[1])) == {"00_start_here.ipynb", "05_one_pass.ipynb", "data/gpu.json"}


def test_copy_overwrites_nothing(folders):
    source, target = folders
    workspace.copy(source, target)
    for name in files(target):
        write(target / name, "mine")
    write(source / "06_tiling.ipynb", "original")
    assert workspace.copy(source, target) == [target / "06_tiling.ipynb"]
    assert files(target) == {name: "mine" for name in files(target)} | {"06_tiling.ipynb": "original"}
    assert workspace.copy(source, target) == []


def outputs(path):
    return [cell.outputs for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_copies_come_without_outputs(folders):
    source, target = folders
    stored = (source / "05_one_pass.ipynb").read_text()
    workspace.copy(source, target)
    assert outputs(target / "05_one_pass.ipynb") == [[]]
    assert (source / "05_one_pass.ipynb").read_text() == stored


def test_kernel_chapters_keep_their_results_where_they_cannot_run(folders, monkeypatch):
    source, target = folders
    write(source / "10_triton_flash.ipynb", "original")
    monkeypatch.setitem(chapters.NEEDS, "triton", chapters.Need(lambda: False, "there is none"))
    workspace.copy(source, target)
    assert outputs(target / "10_triton_flash.ipynb") != [[]] and outputs(target / "05_one_pass.ipynb") == [[]]


@pytest.mark.parametrize("chapter", ["5", "05", "05_one_pass", "05_one_pass.ipynb"])
def test_fresh_sets_the_old_one_aside(folders, chapter):
    source, target = folders
    workspace.copy(source, target)
    write(target / "05_one_pass.ipynb", "mine")
    new, old = workspace.fresh(source, target, chapter)
    assert read(new) == "original" and new.name == "05_one_pass.ipynb"
    assert read(old) == "mine" and old.name.startswith("05_one_pass_2")


def test_fresh_many_times_in_one_second_loses_nothing(folders):
    source, target = folders
    workspace.copy(source, target)
    for n in range(5):
        write(target / "05_one_pass.ipynb", f"mine {n}")
        workspace.fresh(source, target, "05")
    assert {f"mine {n}" for n in range(5)} < set(files(target).values())


def test_fresh_of_a_chapter_not_copied_yet(folders):
    new, old = workspace.fresh(*folders, "05")
    assert read(new) == "original" and old is None


@pytest.mark.parametrize("chapter, said", [("", "No chapter was given"), ("99", "no chapter '99'")])
def test_unknown_chapters_are_named(folders, chapter, said):
    with pytest.raises(SystemExit) as error:
        workspace.fresh(*folders, chapter)
    assert said in str(error.value)
    assert "00_start_here, 05_one_pass" in str(error.value)


def test_code_that_gives_an_exercise_away_is_folded_in_copies_alone(folders):
    source, target = folders
    cells = [v4.new_code_cell("a", metadata={"tags": ["mirrors:x", "folded"]}), v4.new_code_cell("b")]
    nbformat.write(v4.new_notebook(cells=cells), source / "02_safe_softmax.ipynb")
    workspace.copy(*folders)
    folded = [
        [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in nb.cells]
        for nb in (nbformat.read(folder / "02_safe_softmax.ipynb", as_version=4) for folder in (source, target))
    ]
    assert folded == [[False, False], [True, False]]


def test_a_copy_from_an_earlier_version_is_named_with_the_command_that_helps(folders):
    source, target = folders
    workspace.copy(source, target)
    assert workspace.outdated(source, target) == [] and workspace.advice([]) == ""
    write(source / "05_one_pass.ipynb", "mended since")
    assert workspace.outdated(source, target) == ["05_one_pass"]
    said = workspace.advice(["05_one_pass"])
    assert "earlier version of the course: 05_one_pass. What" in said and said.endswith("make fresh CHAPTER=05")
    workspace.fresh(source, target, "05")
    assert workspace.outdated(source, target) == []


def test_a_copy_that_does_not_say_what_it_was_made_from_is_named(folders):
    source, target = folders
    workspace.copy(source, target)
    write(target / "00_start_here.ipynb", "original")
    assert workspace.outdated(source, target) == ["00_start_here"]
    (target / "00_start_here.ipynb").write_text("not a notebook")
    assert workspace.outdated(source, target) == ["00_start_here"]
    assert "00_start_here, 05_one_pass. What" in workspace.advice(["00_start_here", "05_one_pass"])


def test_a_copy_is_not_outdated_by_what_a_learner_writes(folders):
    source, target = folders
    workspace.copy(source, target)
    nb = nbformat.read(target / "05_one_pass.ipynb", as_version=4)
    nb.cells[0].source = "mine"
    nbformat.write(nb, target / "05_one_pass.ipynb")
    write(target / "mine.ipynb", "a notebook of my own")
    assert workspace.outdated(source, target) == []


def test_fresh_copies_the_current_data_and_keeps_the_old(folders):
    source, target = folders
    workspace.copy(source, target)
    write(source / "data/gpu.json", "recorded anew")
    workspace.copy(source, target)
    assert read(target / "data/gpu.json") == "original"
    workspace.fresh(source, target, "05")
    assert read(target / "data/gpu.json") == "recorded anew"
    (kept,) = (path for path in (target / "data").iterdir() if path.name != "gpu.json")
    assert read(kept) == "original"


def test_fresh_leaves_data_that_are_todays_alone(folders):
    source, target = folders
    workspace.copy(source, target)
    before = files(target / "data")
    workspace.fresh(source, target, "05")
    assert files(target / "data") == before


@pytest.fixture
def command(folders, monkeypatch, capsys):
    """Run workspace.py with these arguments on the folders; return its output, or the message of its exit."""
    monkeypatch.setattr(workspace, "ROOT", folders[0].parent)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["workspace.py", *map(str, words)])
        try:
            workspace.main()
        except SystemExit as error:
            return str(error.code)
        return capsys.readouterr().out

    return run


def test_a_workspace_is_where_it_is_named(folders, command, tmp_path):
    assert command("copy") == "Copied 3 files to workspace/\n" and files(tmp_path / "workspace")
    mine = tmp_path / "home" / "my work"
    assert command("copy", "--workspace", f"{mine}/") == f"Copied 3 files to {mine}/\n"
    write(folders[0] / "05_one_pass.ipynb", "mended since")
    assert command("copy", "--workspace", mine).endswith(f"make fresh CHAPTER=05 WORKSPACE={mine}\n")
    said = command("fresh", "05", "--workspace", mine)
    assert f"Your copy is now {mine}/05_one_pass_2" in said and f"New: {mine}/05_one_pass.ipynb" in said
    assert read(mine / "05_one_pass.ipynb") == "mended since"


@pytest.mark.parametrize("words", ["lab", "fresh CHAPTER=05"])
@pytest.mark.parametrize(
    "why", ["no folder can be made", "its files are another user's", "nothing is left to copy"]
)
def test_a_workspace_that_cannot_be_written_is_named_with_a_way_out(
    folders, command, tmp_path, monkeypatch, why, words
):
    place = tmp_path / "workspace"
    if why == "no folder can be made":
        (tmp_path / "file").touch()
        place = tmp_path / "file" / "workspace"
    elif why == "nothing is left to copy":
        workspace.copy(*folders)
        monkeypatch.setattr(workspace.os, "access", lambda path, _: path != place)
    else:
        (place / "data").mkdir(parents=True)
        monkeypatch.setattr(workspace.shutil, "copyfile", refuse)
    ask = ("copy",) if words == "lab" else ("fresh", "05")
    said = command(*ask, "--workspace", place)
    assert said.startswith(f"Your copies of the chapters cannot be written to {place} (")
    assert said.endswith(f"for example make {words} WORKSPACE=~/flashattention") and said.count("\n") == 0


def refuse(source, target):
    raise PermissionError(13, "Permission denied", str(target))


def test_a_chapter_that_cannot_be_read_is_not_the_fault_of_the_workspace(folders, command, monkeypatch):
    monkeypatch.setattr(workspace.shutil, "copyfile", lambda source, target: refuse(target, source))
    with pytest.raises(PermissionError, match="notebooks/data/gpu.json"):
        command("copy")
