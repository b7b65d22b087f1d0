"""What is in the folders of the chapters, `checks/chapters/NAME`, named as `flashlib.chapters` names them."""

import importlib
from pathlib import Path
from types import ModuleType

from flashlib.chapters import CHAPTERS

ASKED = "asked.txt"  # what the cards of a chapter ask: tools/card_questions.py writes it
PACKAGE = "flashlib.checks.chapters"
FOLDER = Path(__file__).parents[1] / "chapters"


def files(pattern: str) -> list[Path]:
    """Return the files of that pattern in all folders, in the order of the chapters."""
    return [path for chapter in CHAPTERS for path in sorted((FOLDER / chapter.name).glob(pattern))]


def modules(pattern: str) -> list[ModuleType]:
    """Import those files and return the modules."""
    return [importlib.import_module(f"{PACKAGE}.{path.parent.name}.{path.stem}") for path in files(pattern)]


def slug_of(module: str) -> str:
    """Return the slug of the chapter that a module in a folder, given by its name, belongs to."""
    name = module.removeprefix(f"{PACKAGE}.").partition(".")[0]
    return next(chapter.slug for chapter in CHAPTERS if chapter.name == name)
