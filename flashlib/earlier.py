"""What the course was called before: its chapters in their first order, and exercises that went.

Learners have copies, notes and answers from before. The table of chapters in CHANGELOG.md is made from this one by
`tools.tables`.
"""

from typing import NamedTuple

from flashlib.chapters import NOTEBOOKS, Chapter, named
from flashlib.language.phrases import and_list


class EarlierChapter(NamedTuple):
    """A chapter as it was. now: the names of those that its cells are in today, the one to start with first."""

    slug: str
    title: str
    now: tuple[str, ...]

    @property
    def number(self) -> str:
        return self.slug[:2]

    @property
    def name(self) -> str:
        return self.slug[3:]

    @property
    def first(self) -> Chapter:
        """Today's chapter to start with."""
        return named(self.now[0])

    def chapters(self) -> list[Chapter]:
        """Return today's chapters, in their order."""
        return [c for c in NOTEBOOKS if c.name in self.now]


EARLIER_CHAPTERS = (
    EarlierChapter("00_start_here", "Start here", ("start_here", "glossary")),
    EarlierChapter("01_naive_softmax", "Naive softmax", ("softmax",)),
    EarlierChapter("02_safe_softmax", "Safe softmax", ("softmax", "online_softmax")),
    EarlierChapter("03_online_softmax", "Online softmax", ("online_softmax",)),
    EarlierChapter("04_attention", "Attention", ("attention",)),
    EarlierChapter("05_one_pass", "One pass", ("one_pass",)),
    EarlierChapter("06_tiling", "Tiling", ("tiling", "counting_bytes")),
    EarlierChapter("07_counting_bytes", "Counting bytes", ("counting_bytes", "roofline")),
    EarlierChapter("08_backward", "Backward", ("backward",)),
    EarlierChapter("09_triton_first_steps", "First steps in Triton", ("triton_first_steps",)),
    EarlierChapter("10_triton_flash", "FlashAttention in Triton", ("triton_flash",)),
    EarlierChapter("11_triton_backward", "The backward kernels", ("triton_backward",)),
    EarlierChapter("12_speed", "Speed", ("speed", "claims")),
    EarlierChapter("13_hopper", "Hopper", ("hopper", "roles", "speed", "hopper_backward", "claims")),
    EarlierChapter("14_variants", "Masks and variants", ("masks", "scores")),
    EarlierChapter("15_inference", "Inference", ("one_query", "pages")),
    EarlierChapter("16_rings", "Rings", ("rings",)),
    EarlierChapter("17_real_models", "Real models", ("real_models",)),
    EarlierChapter("18_eight_bits", "Eight bits", ("eight_bits",)),
)

GONE = {
    "row_max": "online_block",
    "own_heads": "cut_labels",
}  # {an exercise that went: the one that took its place}


def called(text: str) -> EarlierChapter | None:
    """Return the chapter that had this number, slug or name, or None."""
    return next((c for c in EARLIER_CHAPTERS if text in (c.number, c.slug, c.name)), None)


def renamed(text: str) -> str:
    """Return which chapter an earlier number, slug or name stands for now, as a sentence; "" if for the same."""
    was = called(text)
    if was is None or text in (was.first.number, was.first.slug, was.first.name):
        return ""
    if text != was.number:
        return f"{text} is {and_list(c.slug for c in was.chapters())} now."
    today = [f"Chapter {text} is {c.title} now; " for c in NOTEBOOKS if c.number == text]
    numbers = and_list(c.number or c.title for c in was.chapters())
    return f"{''.join(today)}{was.title}, which was {text}, is {numbers}."
