"""Each chapter for Google Colab: a notebook with a first cell that fetches the course.

Colab opens notebooks from a branch of a repository on GitHub, not from a site. So the build writes them next to
the pages, and the workflow pushes their folder as the branch `colab`, which has nothing else. They are the copies
that a learner gets in workspace/, without outputs. Nothing that Colab has is replaced: its torch and its
Triton fit its GPU.
"""

import copy
import re

from nbformat.v4 import new_code_cell

from tools import notebooks, workspace
from web import github

BRANCH = "colab"
BROWSER = "https://colab.research.google.com/github/"  # it asks for a repository, a branch and a notebook
LINK = re.compile(r"\]\((\.\./)?([\w./-]+)")  # of Markdown, to a file
NEEDED = ["anywidget", "cloudpickle"]  # packages that a machine with torch and Jupyter may lack
MODELS = ["transformers", "accelerate", "gguf"]  # for chapters that need the weights of a model

FIRST = """\
# @title Run this first: it fetches the course
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("flashlib") is None:  # else it ran already
    course = Path("course").resolve()
    if not course.exists():
        subprocess.run(["git", "clone", "-q", "--depth", "1", "{repository}", course], check=True)
    sys.path.insert(0, str(course))
    os.environ["PYTHONPATH"] = str(course)  # of the processes in which answers are checked
    os.chdir(course / "notebooks")  # where the recorded numbers are

# Only what is missing is installed: Colab's torch and Triton stay as they are.
missing = [name for name in {needed} if find_spec(name) is None]
if missing:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *missing], check=True)
{weights}
if "google.colab" in sys.modules:
    from google.colab import output

    output.enable_custom_widget_manager()"""
WEIGHTS = 'subprocess.run([sys.executable, "-m", "tools.models"], cwd="..", check=True)  # 93 MB, once\n'


def link(repository, slug):
    """Return the address that opens a chapter in Colab, "" for a repository that is not on GitHub."""
    owned = github.owned(repository)
    return f"{BROWSER}{owned}/blob/{BRANCH}/{slug}.ipynb" if owned else ""


def opening(text, repository, slug):
    """Return a text of a chapter with links to BROWSER leading to that chapter, if the repository is on GitHub."""
    return text.replace(f"]({BROWSER})", f"]({link(repository, slug) or BROWSER})")


def notebook(chapter, nb, repository):
    """Return a chapter's notebook for Colab."""
    made = workspace.without_outputs(copy.deepcopy(nb))
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda found: _linked(found, repository), cell.source)
        elif "folded" in notebooks.tags(cell):
            first, *rest = cell.source.splitlines()
            cell.source = "\n".join([f"# @title {first.lstrip('# ')}", *rest])
            cell.metadata["cellView"] = "form"
    first = new_code_cell(first_cell(chapter, repository), id="colab", metadata={"cellView": "form"})
    made.cells.insert(0, first)
    made.metadata["colab"] = {"name": f"{chapter.slug}.ipynb", "provenance": []}
    if "triton" in chapter.needs:
        made.metadata |= {"accelerator": "GPU"}
        made.metadata.colab["gpuType"] = "T4"
    return made


def first_cell(chapter, repository):
    """Return the code of the cell that fetches the course."""
    models = "weights" in chapter.needs
    needed = ", ".join(f'"{name}"' for name in NEEDED + MODELS * models)
    return FIRST.format(repository=f"{repository}.git", needed=f"({needed})", weights=WEIGHTS * models)


def _linked(found, repository):
    """Return the head of a link: to a chapter in Colab, to a file in the repository, or unchanged."""
    up, target = found.groups()
    if up:
        return f"]({repository}/blob/main/{target}"
    name, dot, ending = target.partition(".")
    return f"]({link(repository, name)}" if dot and ending == "ipynb" else found[0]


def write(folder, made, repository):
    """Write the notebooks of chapters, [(chapter, notebook)], for a repository on GitHub."""
    if not github.owned(repository):
        return
    folder.mkdir()
    for chapter, nb in made:
        text = notebooks.to_text(notebook(chapter, nb, repository))
        (folder / f"{chapter.slug}.ipynb").write_text(text, encoding="utf-8")
