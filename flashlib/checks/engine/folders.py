"""The folders of the chapters, `checks/chapters/NAME`, with the names in `flashlib.chapters`."""

import importlib
from pathlib import Path
from types import ModuleType

from flashlib.chapters import NOTEBOOKS

CARD_QUESTIONS = "card_questions.txt"  # in each folder, written by tools/card_questions.py
PACKAGE = "flashlib.checks.chapters"
FOLDER = Path(__file__).parents[1] / "chapters"


def files(pattern: str) -> list[Path]:
    """Return the files that match the pattern in all folders, in the order of the chapters."""
    return [path for chapter in NOTEBOOKS for path in sorted((FOLDER / chapter.name).glob(pattern))]


def modules(pattern: str) -> list[ModuleType]:
    """Import these files and return the modules."""
    return [importlib.import_module(f"{PACKAGE}.{path.parent.name}.{path.stem}") for path in files(pattern)]


def slug_of(module: str) -> str:
    """Return the slug of the chapter whose folder contains a module; module: its full name."""
    name = module.removeprefix(f"{PACKAGE}.").partition(".")[0]
    return next(chapter.slug for chapter in NOTEBOOKS if chapter.name == name)
