"""The exercises of chapter 06."""

from flashlib.checks.exercise import exercise

CHAPTER = "06_tiling"


@exercise(chapter=CHAPTER, title="The loop with Q outside", minutes=20, difficulty="medium")
def fa2(answer):
    from flashlib.checks import loops  # here: it imports the widgets

    return loops.examine(answer, "fa2")


@exercise(chapter=CHAPTER, title="The loop with K and V outside", minutes=25, difficulty="hard")
def fa1(answer):
    from flashlib.checks import loops

    return loops.examine(answer, "fa1")
