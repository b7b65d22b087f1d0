"""References between chapters are by name, since their numbers change when one is inserted or moved."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from flashlib.chapters import NOTEBOOKS  # noqa: E402
from tools import chapter_heads  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = "flashlib", "tests", "tools", "web", "docs", "notebooks"
KINDS = {".py", ".js", ".ts", ".css", ".html", ".j2", ".md", ".txt", ".ipynb"}
EXCEPT = "CHANGELOG.md", "notebooks/data/shakespeare.txt"  # the first says what chapters were called
NUMBERED = re.compile(r"(?<!-)\bchapters?(?: up to| from)?[\s#*]+\d\d\b", re.IGNORECASE)
LINK = re.compile(r"\]\((?!http)[^)\s]*?([\w-]+)\.ipynb")
NAMES = {c.name for c in NOTEBOOKS}


def texts():
    """Yield pairs: where a text is, and the text; not those of solved notebooks, which are made from others."""
    paths = [*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.*"))]
    for path in sorted(path for path in paths if path.suffix in KINDS):
        where = path.relative_to(ROOT).as_posix()
        if where in EXCEPT or {"solutions", "__pycache__", ".ipynb_checkpoints"} & set(path.parts):
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".ipynb":
            yield where, text
        else:
            for cell in json.loads(text)["cells"]:
                yield f"{where}, cell {cell['id']}", "".join(cell["source"])


@pytest.fixture(scope="module")
def written():
    return list(texts())


def numbers(where, text):
    """Return where a text has numbers of chapters: the file, the line, and what is written there."""
    return [
        f"{where}, line {text.count(chr(10), 0, found.start()) + 1}: {' '.join(found[0].split())!r}"
        for found in NUMBERED.finditer(text)
    ]


def test_no_number_of_a_chapter_is_typed(written):
    found = [one for where, text in written for one in numbers(where, text)]
    assert not found, (
        "numbers of chapters change: write the title instead, in a notebook as in [Tiling](tiling.ipynb), "
        'in what a program prints as flashlib.chapters.named("tiling").title:\n' + "\n".join(found)
    )


def test_a_number_is_found_over_the_end_of_a_line():
    word = "chapter"
    assert numbers("a.py", f"\n# as in {word}\n# 05") == [f"a.py, line 2: '{word} # 05'"]
    assert len(numbers("a.md", f"{word.title()}s 10 and 11; not --{word} 05, CHAPTER=05, {word} 4 of 7")) == 1


def test_every_link_to_a_notebook_names_one(written):
    wrong = [
        f"{where}: no chapter is called {found[1]!r}: see `name` in flashlib/chapters.py"
        for where, text in written
        if not where.endswith((".py", ".js", ".ts"))  # they have patterns of links, and examples for tests
        for found in LINK.finditer(text)
        if re.sub(r"^\d\d_", "", found[1]) not in NAMES
    ]
    assert not wrong, "\n".join(wrong)


def test_every_link_in_a_notebook_is_to_the_file_of_the_registry(written):
    wrong = [where for where, text in written if ".ipynb, " in where and chapter_heads.linked(text) != text]
    assert not wrong, "run python -m tools.tables"
