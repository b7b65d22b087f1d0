import pytest

from tools import workspace


@pytest.fixture
def folders(tmp_path):
    source, target = tmp_path / "notebooks", tmp_path / "workspace"
    (source / "data").mkdir(parents=True)
    (source / ".ipynb_checkpoints").mkdir()
    for name in ("00_start_here.ipynb", "05_one_pass.ipynb", "data/gpu.json", ".ipynb_checkpoints/05.ipynb"):
        (source / name).write_text("original")
    return source, target


def files(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_copy_brings_chapters_and_data(folders):
    workspace.copy(*folders)
    assert set(files(folders[1])) == {"00_start_here.ipynb", "05_one_pass.ipynb", "data/gpu.json"}


def test_copy_overwrites_nothing(folders):
    source, target = folders
    workspace.copy(source, target)
    for name in files(target):
        (target / name).write_text("mine")
    (source / "06_tiling.ipynb").write_text("original")
    assert workspace.copy(source, target) == [target / "06_tiling.ipynb"]
    assert files(target) == {name: "mine" for name in files(target)} | {"06_tiling.ipynb": "original"}
    assert workspace.copy(source, target) == []


@pytest.mark.parametrize("chapter", ["5", "05", "05_one_pass", "05_one_pass.ipynb"])
def test_fresh_sets_the_old_one_aside(folders, chapter):
    source, target = folders
    workspace.copy(source, target)
    (target / "05_one_pass.ipynb").write_text("mine")
    new, old = workspace.fresh(source, target, chapter)
    assert new.read_text() == "original" and new.name == "05_one_pass.ipynb"
    assert old.read_text() == "mine" and old.name.startswith("05_one_pass_2")


def test_fresh_many_times_in_one_second_loses_nothing(folders):
    source, target = folders
    workspace.copy(source, target)
    for n in range(5):
        (target / "05_one_pass.ipynb").write_text(f"mine {n}")
        workspace.fresh(source, target, "05")
    assert {f"mine {n}" for n in range(5)} < set(files(target).values())


def test_fresh_of_a_chapter_not_copied_yet(folders):
    new, old = workspace.fresh(*folders, "05")
    assert new.read_text() == "original" and old is None


@pytest.mark.parametrize("chapter, said", [("", "No chapter was given"), ("99", "no chapter '99'")])
def test_unknown_chapters_are_named(folders, chapter, said):
    with pytest.raises(SystemExit) as error:
        workspace.fresh(*folders, chapter)
    assert said in str(error.value)
    assert "00_start_here, 05_one_pass" in str(error.value)
