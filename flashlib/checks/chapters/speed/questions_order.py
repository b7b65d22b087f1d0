"""The questions on which row block is worked on when."""

from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS

SMS = GPUS["H200"].sms


def _until_done(blocks, sms=2):
    """Return when all blocks are done, if each free multiprocessor takes the next block."""
    ends = [0] * sms
    for tiles in blocks:
        ends[ends.index(min(ends))] += tiles
    return max(ends)


QUESTIONS = [
    Question(
        "hopper_order",
        lambda: {"shortest": _until_done([1, 2, 3, 4, 5]), "longest": _until_done([5, 4, 3, 2, 1])},
        "shortest first, one multiprocessor gets 1, 3 and 5 and needs 9; the other has 2 and 4, and waits for "
        "the last 3. Longest first, they get 5 and 2, and 4, 3 and 1: 7 and 8. What comes last is short, so "
        "little is waited for.",
        hint="Whenever a multiprocessor is free it takes the next in the list. Draw a time line for each of the "
        "two.",
        wrong={
            ("shortest", 7.5): "blocks are not divided",
            (
                "shortest",
                8,
            ): "the blocks go 1 and 2, 3 to the first at 1, 4 to the second at 2, 5 to the first at 4",
            ("shortest", 6): "that is the one that is done first: the other gets 1, 3 and 5",
            ("shortest", 15): "two multiprocessors work at the same time",
            ("longest", 7.5): "blocks are not divided",
            ("longest", 7): "that is the one that is done first: the other gets 4, 3 and 1",
            ("longest", 9): "5 and 4, then 3 to the second at 4, 2 to the first at 5, 1 to either at 7",
            ("longest", 15): "two multiprocessors work at the same time",
        },
        labels={"shortest": "shortest first", "longest": "longest first"},
    ),
    Question(
        "hopper_waves",
        lambda: 100 * 300 / (-(-300 // SMS) * SMS),
        "132 programs run, then 132, then the last 36, for which all others wait: 300 of 3 * 132 = 396 places "
        "are 75.8 %.",
        hint="How many rounds of 132 are needed, and how many places do these rounds have?",
        wrong={
            27.27: "those are the 36 programs of the last wave: the two waves before it are full",
            113.6: "three waves are needed, since 2 * 132 programs are 264",
            66.67: "in the last wave 36 multiprocessors work",
            0.7576: "that is the share itself: give it in percent",
            132.0: "300 programs for 396 places: it is the other way round",
            24.24: "that is the part that does not work",
        },
        tolerance=0.02,
        unit="%",
    ),
]
