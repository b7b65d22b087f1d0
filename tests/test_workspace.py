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
    for name in ("00_start_here.ipynb", "05_tiling.ipynb", "data/gpu.json", ".ipynb_checkpoints/05.ipynb"):
        write(source / name, "original")
    return source, target


def files(folder):
    return {str(p.relative_to(folder)): read(p) for p in folder.rglob("*") if p.is_file()}


def test_copy_copies_chapters_and_data(folders):
    workspace.copy(*folders)
    assert set(files(folders[1])) == {"00_start_here.ipynb", "05_tiling.ipynb", "data/gpu.json"}


def test_copy_overwrites_nothing(folders):
    source, target = folders
    workspace.copy(source, target)
    for name in files(target):
        write(target / name, "mine")
    write(source / "07_triton_flash.ipynb", "original")
    assert workspace.copy(source, target) == [target / "07_triton_flash.ipynb"]
    assert files(target) == {name: "mine" for name in files(target)} | {"07_triton_flash.ipynb": "original"}
    assert workspace.copy(source, target) == []


def outputs(path):
    return [cell.outputs for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_copies_come_without_outputs(folders):
    source, target = folders
    stored = (source / "05_tiling.ipynb").read_text()
    workspace.copy(source, target)
    assert outputs(target / "05_tiling.ipynb") == [[]]
    assert (source / "05_tiling.ipynb").read_text() == stored


def test_kernel_chapters_keep_their_results_where_they_cannot_run(folders, monkeypatch):
    source, target = folders
    write(source / "07_triton_flash.ipynb", "original")
    monkeypatch.setitem(chapters.NEEDS, "triton", chapters.Need(lambda: False, "there is none"))
    workspace.copy(source, target)
    assert outputs(target / "07_triton_flash.ipynb") != [[]] and outputs(target / "05_tiling.ipynb") == [[]]


@pytest.mark.parametrize("chapter", ["5", "05", "05_tiling", "05_tiling.ipynb", "tiling"])
def test_fresh_sets_the_old_one_aside(folders, chapter):
    source, target = folders
    workspace.copy(source, target)
    write(target / "05_tiling.ipynb", "mine")
    new, old, _ = workspace.fresh(source, target, chapter)
    assert read(new) == "original" and new.name == "05_tiling.ipynb"
    assert read(old) == "mine" and old.name.startswith("05_tiling_2")


def test_fresh_many_times_in_one_second_loses_nothing(folders):
    source, target = folders
    workspace.copy(source, target)
    for n in range(5):
        write(target / "05_tiling.ipynb", f"mine {n}")
        workspace.fresh(source, target, "05")
    assert {f"mine {n}" for n in range(5)} < set(files(target).values())


def test_fresh_of_a_chapter_not_copied_yet(folders):
    new, old, _ = workspace.fresh(*folders, "05")
    assert read(new) == "original" and old is None


@pytest.mark.parametrize("chapter, said", [("", "No chapter was given"), ("99", "no chapter '99'")])
def test_unknown_chapters_are_named(folders, chapter, said):
    with pytest.raises(SystemExit) as error:
        workspace.fresh(*folders, chapter)
    assert said in str(error.value)
    assert "00_start_here, 05_tiling" in str(error.value)


def test_code_that_gives_an_exercise_away_is_folded_in_copies_alone(folders):
    source, target = folders
    cells = [v4.new_code_cell("a", metadata={"tags": ["mirrors:x", "folded"]}), v4.new_code_cell("b")]
    nbformat.write(v4.new_notebook(cells=cells), source / "02_attention.ipynb")
    workspace.copy(*folders)
    folded = [
        [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in nb.cells]
        for nb in (nbformat.read(folder / "02_attention.ipynb", as_version=4) for folder in (source, target))
    ]
    assert folded == [[False, False], [True, False]]


def test_a_copy_from_an_earlier_version_is_named_with_the_command_that_helps(folders):
    source, target = folders
    workspace.copy(source, target)
    assert workspace.outdated(source, target) == [] and workspace.advice([]) == ""
    write(source / "05_tiling.ipynb", "mended since")
    assert workspace.outdated(source, target) == ["05_tiling"]
    said = workspace.advice(["05_tiling"])
    assert "earlier version of the course: 05_tiling. What" in said and said.endswith(
        "make fresh CHAPTER=05_tiling"
    )
    workspace.fresh(source, target, "05")
    assert workspace.outdated(source, target) == []


def test_a_copy_that_does_not_say_what_it_was_made_from_is_named(folders):
    source, target = folders
    workspace.copy(source, target)
    write(target / "00_start_here.ipynb", "original")
    assert workspace.outdated(source, target) == ["00_start_here"]
    (target / "00_start_here.ipynb").write_text("not a notebook")
    assert workspace.outdated(source, target) == ["00_start_here"]
    assert "00_start_here, 05_tiling. What" in workspace.advice(["00_start_here", "05_tiling"])


def test_a_copy_is_not_outdated_by_what_a_learner_writes(folders):
    source, target = folders
    workspace.copy(source, target)
    nb = nbformat.read(target / "05_tiling.ipynb", as_version=4)
    nb.cells[0].source = "mine"
    nbformat.write(nb, target / "05_tiling.ipynb")
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
    write(folders[0] / "05_tiling.ipynb", "mended since")
    assert command("copy", "--workspace", mine).endswith(f"make fresh CHAPTER=05_tiling WORKSPACE={mine}\n")
    said = command("fresh", "05", "--workspace", mine)
    assert f"Your copy is now {mine}/05_tiling_2" in said and f"New: {mine}/05_tiling.ipynb" in said
    assert read(mine / "05_tiling.ipynb") == "mended since"


def notebook(path, *ids):
    """Write a notebook whose code cells have these ids."""
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell("1 + 1", id=one) for one in ids]), path)


@pytest.fixture
def renumbered(folders, command):
    """Return a workspace with copies from before, of chapters whose cells are in the course's of today.

    Those of Tiling are in two chapters, and Online softmax has the same number.
    """
    source, target = folders
    notebook(source / "03_online_softmax.ipynb", "c")
    notebook(source / "04_one_pass.ipynb", "p", "q")
    notebook(source / "05_tiling.ipynb", "t", "u", "v")
    notebook(source / "08_counting_bytes.ipynb", "b", "w", "x")
    (target / "data").mkdir(parents=True)
    notebook(target / "03_online_softmax.ipynb", "c")
    notebook(target / "05_one_pass.ipynb", "p", "q", "of-mine")
    notebook(target / "06_tiling.ipynb", "t", "u", "v", "w", "x")
    notebook(target / "07_notes.ipynb", "of-mine")
    write(target / "data/gpu.json", "from before")
    return target


def test_copies_with_an_earlier_number_are_said_and_stay(renumbered, command):
    before = files(renumbered)
    said = command("copy")
    assert "  05_one_pass.ipynb: that chapter is 04_one_pass.ipynb now\n" in said
    assert "  06_tiling.ipynb: its cells are in 05_tiling.ipynb and 08_counting_bytes.ipynb now\n" in said
    assert (
        "07_notes" not in said and "make before\n" in said and "version of the course: 03_online_softmax." in said
    )
    assert {name: text for name, text in files(renumbered).items() if name in before and "data" not in name} == {
        name: text for name, text in before.items() if "data" not in name
    }
    assert {"04_one_pass.ipynb", "05_tiling.ipynb", "08_counting_bytes.ipynb"} < files(renumbered).keys()


def test_data_of_before_are_set_aside_for_todays(renumbered, command):
    said = command("copy")
    (kept,) = (path for path in (renumbered / "data").iterdir() if path.name != "gpu.json")
    assert read(renumbered / "data/gpu.json") == "original" and read(kept) == "from before"
    assert f"workspace/data/{kept.name}\n" in said
    command("copy")
    assert len(list((renumbered / "data").iterdir())) == 2


def test_earlier_copies_are_moved_if_asked_and_nothing_is_lost(renumbered, command):
    mine = {path.name: path.read_bytes() for path in renumbered.glob("*.ipynb")}
    (renumbered / "before").mkdir()
    write(renumbered / "before/05_one_pass.ipynb", "moved long ago")
    said = command("before")
    before = {path.name: path.read_bytes() for path in (renumbered / "before").glob("*.ipynb")}
    (dated,) = (name for name in before if name.startswith("05_one_pass_2"))
    assert before[dated] == mine["05_one_pass.ipynb"] and f"Your copy is now workspace/before/{dated}\n" in said
    assert read(renumbered / "before/05_one_pass.ipynb") == "moved long ago"
    for name in ("03_online_softmax.ipynb", "06_tiling.ipynb"):
        assert before[name] == mine[name]
    assert read(renumbered / "before/data/gpu.json") == "original", "its cells read it from there"
    assert {path.name for path in renumbered.glob("*.ipynb")} == {
        *(path.name for path in (renumbered.parent / "notebooks").glob("*.ipynb")), "07_notes.ipynb",
    }  # fmt: skip
    assert "earlier version" not in command("copy")
    assert command("before").startswith("No copy in workspace/ is from an earlier version")


def test_fresh_says_what_an_earlier_number_or_name_is_now(renumbered, command):
    said = "Chapter {0} is Tiling now; One pass, which was {0}, is 04.\nNew: "
    assert command("fresh", "5").startswith(said.format("05"))
    said = command("fresh", "05_one_pass")
    assert said.startswith("05_one_pass is 04_one_pass now.\n") and "New: workspace/04_one_pass.ipynb" in said
    assert command("fresh", "3").startswith("Your copy is now"), "it has the same number"
    assert (renumbered / "05_one_pass.ipynb").exists()


@pytest.mark.parametrize("words", ["lab", "before", "fresh CHAPTER=05"])
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
    ask = {"lab": ("copy",), "before": ("before",)}.get(words, ("fresh", "05"))
    said = command(*ask, "--workspace", place)
    assert said.startswith(f"Your copies of the chapters cannot be written to {place} (")
    assert said.endswith(f"for example make {words} WORKSPACE=~/flashattention") and said.count("\n") == 0


def refuse(source, target):
    raise PermissionError(13, "Permission denied", str(target))


def test_a_chapter_that_cannot_be_read_is_not_the_fault_of_the_workspace(folders, command, monkeypatch):
    monkeypatch.setattr(workspace.shutil, "copyfile", lambda source, target: refuse(target, source))
    with pytest.raises(PermissionError, match="notebooks/data/gpu.json"):
        command("copy")
