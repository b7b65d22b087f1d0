"""The notebooks for Colab: what their first cell does, and where their links lead."""

import ast
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbconvert")

from flashlib.chapters import NOTEBOOKS, named
from tools import notebooks
from web import build, colab, github

GITHUB = "https://github.com/Owner/Name"
ONE, TILING = named("one_pass"), named("tiling")
NOT_INSTALLED = """
import os, sys
sys.path[:] = [path for path in sys.path if not os.path.exists(os.path.join(path, "flashlib"))]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
"""
SAY = "print(Path.cwd(), flashlib.__file__, Path('data/one.json').exists())"


def markdown(text):
    return nbformat.v4.new_markdown_cell(text)


def made(*cells, one=ONE):
    return colab.notebook(one, nbformat.v4.new_notebook(cells=list(cells)), GITHUB)


def test_addresses_are_those_of_a_repository_on_github():
    assert github.pages(GITHUB) == "https://owner.github.io/Name/"
    assert colab.link(GITHUB, ONE.slug).endswith(f"/github/Owner/Name/blob/colab/{ONE.slug}.ipynb")
    for elsewhere in ("", "https://example.org/Owner/Name", "https://github.com/Owner", f"{GITHUB}/tree/main"):
        assert github.owned(elsewhere) == github.pages(elsewhere) == colab.link(elsewhere, ONE.slug) == ""


def test_links_lead_to_colab_and_to_the_repository_and_others_are_unchanged():
    slug = TILING.slug
    text = f"[a]({slug}.ipynb) [b]({slug}.ipynb#Loops) [c](../docs/kernels.md) [d](https://a.b/c.ipynb) [e](#f)"
    found = made(markdown(text)).cells[1].source
    there = colab.link(GITHUB, slug)
    assert found == (
        f"[a]({there}) [b]({there}#Loops) [c]({GITHUB}/blob/main/docs/kernels.md) [d](https://a.b/c.ipynb) [e](#f)"
    )


@pytest.mark.parametrize("repository", ["", "https://example.org/Owner/Name", GITHUB])
def test_a_link_to_colab_opens_its_own_chapter_where_the_repository_is_known(repository):
    there = colab.link(repository, ONE.slug)
    text = colab.opening(f"[a]({colab.BROWSER}) [b]({colab.BROWSER}x/y) [c](d)", repository, ONE.slug)
    assert text == f"[a]({there or colab.BROWSER}) [b]({colab.BROWSER}x/y) [c](d)"
    assert made(markdown(text)).cells[1].source == text, "in Colab too"


def test_code_that_is_folded_is_a_form_and_no_output_answers_a_question():
    cell = nbformat.v4.new_code_cell("# Three of them.\nprint(1)", metadata={"tags": ["folded"]})
    cell.outputs = [nbformat.v4.new_output("stream", text="1\n")]
    (_, shown) = made(cell).cells
    assert shown.source == "# @title Three of them.\nprint(1)" and shown.metadata.cellView == "form"
    assert shown.outputs == [] and cell.outputs


@pytest.mark.parametrize("one", NOTEBOOKS, ids=lambda one: one.name)
def test_every_chapter_is_a_valid_notebook(one):
    nb = colab.notebook(one, notebooks.read(build.NOTEBOOKS / f"{one.slug}.ipynb"), GITHUB)
    nbformat.validate(nb)
    ast.parse(nb.cells[0].source)
    assert not any("](../" in cell.source for cell in nb.cells if cell.cell_type == "markdown")
    assert ("tools.models" in nb.cells[0].source) == ("weights" in one.needs)
    assert (nb.metadata.get("accelerator") == "GPU") == ("triton" in one.needs)


def test_a_site_has_them_only_if_colab_can_open_them(tmp_path):
    nb = notebooks.read(build.NOTEBOOKS / f"{ONE.slug}.ipynb")
    colab.write(tmp_path / "none", [(ONE, nb)], "https://example.org/Owner/Name")
    colab.write(tmp_path / "colab", [(ONE, nb)], GITHUB)
    assert [path.name for path in tmp_path.rglob("*.ipynb")] == [f"{ONE.slug}.ipynb"]


@pytest.mark.process
def test_the_first_cell_fetches_the_course_and_can_be_run_again(tmp_path):
    """With git, from a repository in place of the published one; nothing is installed."""
    source = tmp_path / "published"
    for name in ("flashlib/__init__.py", "notebooks/data/one.json"):
        (source / name).parent.mkdir(parents=True)
        (source / name).write_text("")
    for command in ("init -q -b main", "add .", "-c user.name=a -c user.email=b commit -qm c"):
        subprocess.run(["git", *command.split()], cwd=source, check=True)
    (tmp_path / "course.git").symlink_to(source)
    cell = colab.first_cell(ONE, f"file://{tmp_path}/course")
    (tmp_path / "content").mkdir()
    code = "\n".join([NOT_INSTALLED, cell, cell, "import flashlib", SAY])
    run = [sys.executable, "-I", "-c", code]
    done = subprocess.run(run, cwd=tmp_path / "content", capture_output=True, text=True)
    course = tmp_path / "content" / "course"
    assert done.stdout.split() == [str(course / "notebooks"), str(course / "flashlib/__init__.py"), "True"], done
    assert Path(course / ".git").exists()
