"""The numbers of exercises and of answers that test their checks, for README.md and CONTRIBUTING.md.

`tools.tables` writes them.
"""

import textwrap
from collections import Counter

from flashlib.checks import EXERCISES
from tests.checks import answers

WIDTH = 120  # characters in a line


def in_short() -> str:
    """Return the sentence of the README."""
    return _filled(f"The checks are tested too: {_counts()}.")


def in_full() -> str:
    """Return the paragraph of CONTRIBUTING.md, which also says how the wrong answers are made."""
    origins = Counter(answer.origin for answer in answers.wrong())
    return _filled(
        f"There are {_counts()}. Of the wrong ones, {origins['table']} are made from the tables of known mistakes "
        f"and {origins['terms']} from the same tables in kernels; {origins['edit']} are edits of a right answer, "
        f"and {origins['written']} are written out."
    )


def _counts():
    return (
        f"{len(EXERCISES)} exercises, {len(answers.wrong())} wrong answers, each rejected with its mistake named, "
        f"and {len(answers.right())} right answers in other styles, each accepted"
    )


def _filled(text):
    return textwrap.fill(text, WIDTH) + "\n"
