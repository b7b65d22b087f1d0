"""Start an exercise in a chapter that exists: python -m tools.new_exercise 03 lse_step

Writes a small exercise that works, under the name you give, into every file that an exercise needs. Replace it
with your own: a TODO marks each place to fill in, and a test fails while one is left. CONTRIBUTING.md describes
the files.
"""

import argparse
import builtins
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from nbformat.v4 import new_code_cell, new_markdown_cell

from flashlib import checks
from flashlib.chapters import Chapter
from flashlib.checks.engine.prediction import questions
from flashlib.checks.mistakes import chapter_of
from tools import exercise_template as template
from tools import notebooks

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 25  # characters of a name: the longest lines of the template have room for it

NEXT = """\
python -m flashlib.checks.mistakes NUMBER
python -m pytest -q tests/checks/test_answers.py -k NAME
python -m tools.tables
make notebooks CHAPTER=NUMBER
make notebooks CHAPTER=00
python -m pytest -q tests/checks/test_exercises.py tests/checks/test_mistakes.py tests/checks/test_gaps.py
python -m pytest -q tests/test_notebooks.py tests/test_readme.py
make check
"""


class Part(NamedTuple):
    """A part of an exercise: its file, what it is, and the text to add; in the notebook it is three cells."""

    path: Path
    what: str
    text: str = ""


def parts(root: Path, chapter: Chapter, name: str) -> list[Part]:
    """Return the parts of an exercise; the last is that of the notebook."""
    check = template.CHECK
    for old, new in template.OF_KERNELS.items() if "triton" in chapter.needs else ():
        check = check.replace(old, new)
    folder = root / "flashlib/checks/chapters" / chapter.name
    answers = root / "tests/checks/answers" / chapter.name
    made = [
        Part(folder / "solutions.py", "the solution", f"\n\n# exercise: NAME\n{template.SOLUTION}"),
        Part(folder / "mistakes.txt", "the known mistakes", template.MISTAKES),
        Part(folder / f"exercises_{name}.py", "the check, with title, minutes and difficulty", check),
        Part(answers / "right.py", "a right answer in another style", template.RIGHT),
        Part(answers / "wrong.py", "a wrong answer in another style", template.WRONG),
        Part(
            answers / "gaps.txt",
            "which wrong answers fill the gaps that checks have had",
            f"\n[NAME]\n{template.GAPS}",
        ),
        Part(root / "notebooks" / f"{chapter.slug}.ipynb", "the text, with hints, and the stub"),
    ]
    return [part._replace(text=part.text.replace("NAME", name)) for part in made]


def check_name(root: Path, chapter: Chapter, name: str) -> None:
    """Raise ValueError, which says why, if a new exercise of the chapter cannot have this name."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or len(name) > LONGEST:
        raise ValueError(
            f"{name!r} cannot name an exercise: pass a Python name of small letters, digits and underscores, with "
            f"at most {LONGEST} characters, such as lse_step"
        )
    if used := places(root, name):
        own = parts(root, chapter, name)
        missing = [f"{_relative(root, part.path)} ({part.what})" for part in own if part.path not in used]
        message = f"{name} is taken: it is in {', '.join(_relative(root, path) for path in used)}"
        if 0 < len(missing) < len(own) / 2:  # else something else has this name
            message += f", but not in {', '.join(missing)}"
        raise ValueError(f"{message}: pass a different name")
    modules = [path.stem for path in Path(checks.__file__).parent.iterdir()]
    in_check = [*re.findall(r"\w+", template.CHECK), "solutions"]
    if name in (*dir(builtins), *dir(checks), *modules, *in_check, *questions()):
        raise ValueError(f"{name} already means something in Python or in flashlib.checks: pass a different name")


def places(root: Path, name: str) -> list[Path]:
    """Return the files that have a part of an exercise of this name, or a function or table of this name."""
    mark = re.compile(
        rf'^(# exercise: {name}\b|# {name}[,:] |\[{name}[\]:]|def {name}\()|"(exercise|stub):{name}"', re.MULTILINE
    )
    own_file = f"exercises_{name}.py"
    patterns = "flashlib/checks/**/*.*", "tests/checks/answers/*/*.*", "notebooks/*.*"
    files = (path for pattern in patterns for path in sorted(root.glob(pattern)))
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".txt", ".ipynb")}
    return [path for path, text in texts.items() if path.name == own_file or name in text and mark.search(text)]


def begun(root: Path, chapter: Chapter, name: str) -> dict[Path, str]:
    """Return {path: its text with a new exercise}; raise ValueError if the exercise cannot have this name."""
    check_name(root, chapter, name)
    *of_files, (notebook, *_) = parts(root, chapter, name)
    made = {}
    for path, _, text in of_files:
        made[path] = path.read_text(encoding="utf-8").rstrip("\n") + f"\n{text}" if path.exists() else text
    made[notebook] = notebooks.to_text(notebooks.normalise(with_cells(notebooks.read(notebook), chapter, name)))
    return made


def with_cells(nb, chapter: Chapter, name: str):
    """Insert the three cells of an exercise into a notebook, below the last one that the route has; return it."""
    others = [e.name for e in checks.EXERCISES.values() if e.chapter == chapter.slug and not e.optional]
    calls = [template.CALL.replace("NAME", other) for other in others]
    at = max(n for n, cell in enumerate(nb.cells, start=1) if cell.source in calls)
    text, stub, call = (source.replace("NAME", name) for source in (template.TEXT, template.STUB, template.CALL))
    cells = [
        new_markdown_cell(text, metadata={"tags": [f"exercise:{name}"]}),
        new_code_cell(stub, metadata={"tags": [f"stub:{name}"]}),
        new_code_cell(call),
    ]
    for cell in cells:
        del cell["id"]  # a random one: `notebooks.normalise` makes one of the text
    nb.cells[at:at] = cells
    return nb


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.new_exercise", description=__doc__)
    parser.add_argument("chapter", help="its number, slug or name: 03, 03_online_softmax or online_softmax")
    parser.add_argument("name", help="the name of the exercise, such as lse_step for checks.lse_step(my_lse_step)")
    args = parser.parse_args()
    try:
        chapter = chapter_of(args.chapter)
        made = begun(ROOT, chapter, args.name)
    except ValueError as error:
        sys.exit(str(error))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    print(f"Chapter {chapter.number} has an exercise {args.name} now. Replace it with yours where it says TODO:")
    for path, what, _ in parts(ROOT, chapter, args.name):
        print(f"  {_relative(ROOT, path)}: {what}")
    print("Then run")
    print(textwrap.indent(NEXT.replace("NUMBER", chapter.number).replace("NAME", args.name), "  "), end="")


def _relative(root, path):
    return path.relative_to(root).as_posix()


if __name__ == "__main__":
    main()
