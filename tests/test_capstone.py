"""A chapter with a capstone says how long that takes, and the rest takes no more than an evening or two."""

import copy
import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from flashlib.chapters import named  # noqa: E402
from tools import minutes, notebooks  # noqa: E402

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
MOST = 150  # minutes without the capstone and what is optional


def cells_for_hopper():
    """Return the chapter on a Hopper kernel, and where the text of each exercise in Gluon is, by name."""
    nb = notebooks.read(NOTEBOOKS / f"{named('hopper').slug}.ipynb")
    places = {tag.partition(":")[2]: n for n, cell in enumerate(nb.cells) for tag in notebooks.tags(cell)}
    return nb, {name: places[name] - 1 for name in ("gluon_producer", "consumer_step", "hopper_attention")}


def test_the_steps_to_a_hopper_kernel_take_most_of_the_time():
    nb, places = cells_for_hopper()
    assert "These three exercises take most of the time" in nb.cells[0].source
    labels = (
        re.findall(r"^\*(\d+) minutes · \w+\*$", nb.cells[at].source, re.MULTILINE) for at in places.values()
    )
    counted = minutes.EXERCISE_SHARE * sum(int(label) for (label,) in labels)
    assert minutes.of(nb).core / 2 < counted and minutes.of(nb).core - counted <= MOST


def test_each_step_to_a_hopper_kernel_ends_the_section_that_the_head_names():
    nb, places = cells_for_hopper()
    said = re.findall(r"section (\d+)", nb.cells[0].source)
    for number, (name, at) in zip(said, places.items(), strict=True):
        above = "\n".join(cell.source for cell in nb.cells[: at + 1] if cell.cell_type == "markdown")
        assert re.findall(r"^## (\d+)\.", above, re.MULTILINE)[-1] == number, name


def test_the_ladders_kernels_come_after_the_exercises_that_ask_for_them():
    nb, places = cells_for_hopper()
    for name, listing in (("gluon_producer", "r4_overlap.producer"), ("consumer_step", "r4_overlap.step")):
        (shown,) = [n for n, cell in enumerate(nb.cells) if f"{listing})" in cell.source]
        assert shown > places[name], name
    above = "\n".join(cell.source for cell in nb.cells[: places["hopper_attention"]])
    assert "warp_specialize([(attention" not in above and "contiguous()" not in above


def test_the_head_says_how_long_a_kernel_for_any_mask_takes():
    nb = notebooks.read(NOTEBOOKS / f"{named('scores').slug}.ipynb")
    told = re.search(r"a whole kernel, takes (\d+) to (\d+) of these minutes", nb.cells[0].source).groups()
    (text,) = [cell.source for cell in nb.cells if "exercise:variant" in notebooks.tags(cell)]
    (takes,) = re.findall(r"^\*(\d+) minutes · \w+\*$", text, re.MULTILINE)
    counted = minutes.EXERCISE_SHARE * int(takes)
    assert told == (f"{counted // minutes.STEP * minutes.STEP:.0f}", takes)
    assert minutes.of(nb).core - counted <= MOST


def cells_of_the_whole_kernel():
    """Return the chapter on FlashAttention in Triton, the place of the exercise, and where the one before ends."""
    nb = notebooks.read(NOTEBOOKS / f"{named('triton_flash').slug}.ipynb")
    places = {tag: n for n, cell in enumerate(nb.cells) for tag in notebooks.tags(cell)}
    return nb, places["exercise:attention"], places["stub:inner_loop"] + 1  # the check below the stub


def test_the_whole_kernel_takes_what_the_head_says_and_little_is_new_before_it():
    nb, at, before = cells_of_the_whole_kernel()
    (label,) = re.findall(r"^\*(\d+) minutes · \w+\*$", nb.cells[at].source, re.MULTILINE)
    told = re.search(r"takes (\d+) to (\d+) of these minutes", nb.cells[0].source).groups()
    assert told == (f"{int(label) * minutes.EXERCISE_SHARE:.0f}", label) and minutes.of(nb).core <= 130
    between = copy.copy(nb)
    between.cells = nb.cells[before + 1 : at]
    assert minutes.of(between).core <= 30


def test_the_finished_kernel_comes_after_the_exercise_and_is_folded():
    nb, at, _ = cells_of_the_whole_kernel()
    (finished,) = (n for n, cell in enumerate(nb.cells) if any("r3_flash" in tag for tag in notebooks.tags(cell)))
    assert finished > at and "folded" in notebooks.tags(nb.cells[finished])
    above = "\n".join(cell.source for cell in nb.cells[:at])
    given = [
        words
        for words in ("program_id", "for start in", "num_programs", "contiguous()", "[grid]")
        if words in above
    ]
    assert not given, "joining the pieces, the grid and the launch are what the exercise asks for"
