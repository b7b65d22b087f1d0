"""The chapters with code that runs on their page, and how many of their exercises can be solved there.

It is written here, as working it out takes a second: `test_live_chapters.py` does so, and compares.
"""

from flashlib.chapters import named
from tools import notebooks
from web.live import cells, parts

EXERCISES = {
    "start_here": 0,
    "softmax": 5,
    "attention": 3,
    "online_softmax": 8,
    "one_pass": 4,
    "tiling": 4,
    "triton_first_steps": 0,
    "triton_flash": 0,
    "counting_bytes": 6,
    "roofline": 1,
    "backward": 7,
    "one_query": 0,
    "real_models": 7,
    "speed": 0,
    "roles": 5,
    "eight_bits": 9,
    "claims": 0,
}
LIVE = [named(name) for name in EXERCISES]


def read(chapter):
    """Return the notebook of a chapter."""
    return notebooks.read(parts.ROOT / "notebooks" / f"{chapter.slug}.ipynb")


def says_what_is_here(cell):
    """Return whether a cell prints what a machine lacks, or how fast it is: others print something else."""
    return ".obstacles()" in cell.source or notebooks.KEPT_OUTPUT in notebooks.tags(cell)


def runs_in(nb):
    """Return the cells of a notebook that a reader can run on its page."""
    return cells.running(nb.cells, cells.of_chapter(nb.cells))
