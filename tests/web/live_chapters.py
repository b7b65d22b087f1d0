"""The chapters with code that runs on their page, and how many of their exercises can be solved there.

It is written here, as working it out takes a second: `test_live_chapters.py` does so, and compares.
"""

from functools import cache

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
    "triton_first_steps": 7,
    "triton_flash": 5,
    "counting_bytes": 6,
    "roofline": 2,
    "backward": 7,
    "triton_backward": 5,
    "masks": 4,
    "scores": 6,
    "one_query": 5,
    "pages": 5,
    "rings": 8,
    "real_models": 7,
    "speed": 7,
    "roles": 5,
    "hopper": 1,
    "eight_bits": 11,
    "claims": 0,
    "hopper_backward": 0,
}
LIVE = [named(name) for name in EXERCISES]


def read(chapter):
    """Return the notebook of a chapter."""
    return notebooks.read(parts.ROOT / "notebooks" / f"{chapter.slug}.ipynb")


def says_what_is_here(cell):
    """Return whether a cell prints what depends on the machine."""
    return ".obstacles()" in cell.source or "nbval-ignore-output" in notebooks.tags(cell)


@cache
def told_of(chapter):
    """Return what the page of a chapter knows about its cells, and whether it has what kernels need."""
    return cells.of_page(chapter, read(chapter).cells, has_kernels=True)


def runs_in(chapter):
    """Return the cells of a chapter that a reader can run on its page."""
    return cells.running(read(chapter).cells, told_of(chapter)[0])


def compare(answer, cell):
    """Compare what a page's kernel answers for a cell with what the cell has stored."""
    assert not any(one["raised"] for one in answer["first"]), answer
    assert not [one["text"] for one in answer["outputs"] if one["kind"] == "raises"], cell.id
    printed = "".join(one["text"] for one in answer["outputs"] if one["kind"] == "out")
    stored = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
    if not says_what_is_here(cell):
        assert printed.strip() == stored.strip(), cell.id
