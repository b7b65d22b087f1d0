"""What each chapter asks, a folder for each, named as `flashlib.chapters` names it:

exercises*.py   how the answers to its exercises are examined
mistakes.txt    the known mistakes: ids, sentences, and what makes them
questions.py    QUESTIONS, to be predicted before a cell is run
solutions.py    a solution of each exercise, as a learner would write it
"""

import importlib
from pathlib import Path

from flashlib.chapters import CHAPTERS

FOLDER = Path(__file__).parent


def files(pattern) -> list[Path]:
    """Return the files of that pattern in all folders, in the order of the chapters."""
    return [path for chapter in CHAPTERS for path in sorted((FOLDER / chapter.name).glob(pattern))]


def modules(pattern) -> list:
    """Import those files and return the modules."""
    return [importlib.import_module(f"{__name__}.{path.parent.name}.{path.stem}") for path in files(pattern)]


def slug_of(module) -> str:
    """Return the slug of the chapter that a module here, given by its name, belongs to."""
    name = module.removeprefix(f"{__name__}.").partition(".")[0]
    return next(chapter.slug for chapter in CHAPTERS if chapter.name == name)
