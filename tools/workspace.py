"""The learner's copies of the chapters, in workspace/ or a folder of choice. Nothing there is ever overwritten.

Copies have no outputs, so that no answer is below a question that asks for a prediction. Code that would give an
exercise away, in cells tagged `folded`, is folded. Chapters that cannot run on this machine keep their outputs, so
that they can be read. The metadata of a copy says from which text of the chapter it was made, so that a copy from
an earlier version of the course is recognised. Files of data/ are always today's: others are set aside.
"""

import argparse
import errno
import os
import shutil
import sys
from datetime import datetime
from pathlib import Path

import nbformat

from flashlib import earlier
from flashlib.chapters import NOTEBOOKS
from flashlib.checks.classroom.course import version
from flashlib.checks.classroom.earlier_copies import renumbered
from flashlib.language.phrases import and_list

ROOT = Path(__file__).resolve().parents[1]
USUAL = "workspace"
BEFORE = "before"  # the folder in it for copies from an earlier version
DATA = "data/**/*"


def copy(source, workspace, patterns=("*.ipynb", DATA)):
    """Copy every chapter, and every file of data/, that is not in `workspace` yet; return what was copied."""
    to_be_read, copied = {c.slug for c in NOTEBOOKS if c.obstacles()}, []
    for original in (path for pattern in patterns for path in sorted(source.glob(pattern))):
        target = workspace / original.relative_to(source)
        if original.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            if original.suffix == ".ipynb":
                nb = nbformat.read(original, as_version=4)
                nb.metadata["flashlib"] = {"made_from": version(nb)}
                nbformat.write(folded(nb if original.stem in to_be_read else without_outputs(nb)), target)
            else:
                shutil.copyfile(original, target)
            copied.append(target)
    return copied


def set_data_aside(source, workspace):
    """Set files of data/ that differ from the course's aside; return their new paths."""
    pairs = [(path, workspace / path.relative_to(source)) for path in sorted(source.glob(DATA)) if path.is_file()]
    return [set_aside(mine) for path, mine in pairs if mine.is_file() and mine.read_bytes() != path.read_bytes()]


def outdated(source, workspace) -> list[str]:
    """Return the names of chapters whose copy was made from a different text, or does not say from which."""
    found = []
    for original in sorted(source.glob("*.ipynb")):
        target = workspace / original.name
        if target.exists() and _made_from(target) != version(nbformat.read(original, as_version=4)):
            found.append(original.stem)
    return found


def _made_from(path):
    try:
        return nbformat.read(path, as_version=4).metadata.get("flashlib", {}).get("made_from")
    except Exception:  # a notebook that cannot be read must not stop anyone
        return None


def advice(names, option="") -> str:
    """Return advice about outdated copies, "" if there are none; option: the workspace, as an argument of make."""
    if not names:
        return ""
    return (
        f"From an earlier version of the course: {', '.join(names)}. What they import may have moved since. To "
        f"get the current chapter and keep yours under a dated name: make fresh CHAPTER={names[0]}{option}"
    )


def advice_on_renumbered(found, option="") -> str:
    """Return what to say about copies whose chapters have other numbers now, as `renumbered` finds them."""
    if not found:
        return ""
    lines = ["These copies are from an earlier version of the course, and stay where they are:"]
    for name, slugs in found.items():
        files = and_list(f"{slug}.ipynb" for slug in slugs)
        is_now = f"that chapter is {files} now" if len(slugs) == 1 else f"its cells are in {files} now"
        lines.append(f"  {name}: {is_now}")
    lines.append(
        f"To move all earlier copies to the folder {BEFORE}/ and get today's chapters: make before{option}"
    )
    return "\n".join(lines)


def check_writable(workspace):
    """Raise OSError if a learner could not save anything in an existing folder."""
    if not os.access(workspace, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(workspace))


def not_writable(workspace, error, command) -> str:
    """Return what to print if the workspace cannot be written."""
    return (
        f"Your copies of the chapters cannot be written to {workspace} ({error.strerror or error}): name a folder "
        f"of your own, for example make {command} WORKSPACE=~/flashattention"
    )


def without_outputs(nb):
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nb


def folded(nb):
    """Fold code tagged `folded`: JupyterLab shows a bar in its place until the bar is clicked."""
    for cell in nb.cells:
        if "folded" in cell.metadata.get("tags", []):
            cell.metadata["jupyter"] = {"source_hidden": True}
    return nb


def find_chapter(source, chapter):
    """Return the path of a chapter such as 5, 05, 05_tiling or tiling, and what the name was before, or "".

    Names from before are accepted too. Exits with a sentence if there is no such chapter.
    """
    text = chapter.removesuffix(".ipynb")
    text = f"{int(text):02d}" if text.isdecimal() else text
    there = [c for c in NOTEBOOKS if (source / f"{c.slug}.ipynb").exists()]
    found = [c for c in there if text and text in (c.number, c.slug, c.name)]
    if not found and (was := earlier.called(text)):
        found = [was.first]
    if not found:
        given = f"There is no chapter {chapter!r}" if chapter else "No chapter was given"
        sys.exit(f"{given}: make fresh CHAPTER=05, for example. There are {', '.join(c.slug for c in there)}")
    return source / f"{found[0].slug}.ipynb", earlier.renamed(text)


def set_aside(path, to=None):
    """Move `path` to `to`, or to a dated name if that is taken or none is given; return the new path."""
    to = to or path
    dated = f"{to.stem}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    for stem in (to.stem, dated, *(f"{dated}_{n}" for n in range(2, 1000))):
        target = to.with_name(f"{stem}{to.suffix}")
        try:
            target.touch(exist_ok=False)  # reserves the name, so that no two runs take the same one
        except FileExistsError:
            continue
        return path.replace(target)
    raise FileExistsError(f"{path} could not be set aside: 999 copies of this second exist")


def fresh(source, workspace, chapter):
    """Set the learner's copy of `chapter` aside and make a new one.

    Return (new, the old one or None, what the chapter was called before, or "").
    """
    original, renamed = find_chapter(source, chapter)
    target = workspace / original.name
    old = set_aside(target) if target.exists() else None
    set_data_aside(source, workspace)
    copy(source, workspace)
    return target, old, renamed


def move_before(source, workspace):
    """Move all copies from an earlier version to the folder before/, with the data that they read; return them."""
    names = [*renumbered(source, workspace), *(f"{slug}.ipynb" for slug in outdated(source, workspace))]
    before = workspace / BEFORE
    if names:
        before.mkdir(exist_ok=True)
        set_data_aside(source, before)
        copy(source, before, [DATA])
    return [set_aside(workspace / name, before / name) for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    copies = commands.add_parser("copy", help="copy the chapters that are not in the workspace yet")
    renews = commands.add_parser("fresh", help="set one aside and make a new copy")
    renews.add_argument("chapter")
    moves = commands.add_parser(
        "before", help=f"move copies from an earlier version to {BEFORE}/, and bring today's"
    )
    for command in (copies, renews, moves):
        command.add_argument("--workspace", default=USUAL, help="the folder with the copies, if not workspace")
    args = parser.parse_args()

    source, name = ROOT / "notebooks", args.workspace.rstrip(os.sep) or os.sep
    workspace = ROOT / Path(name).expanduser()
    try:
        if args.command == "before":
            say_moved(source, workspace, name)
        if args.command == "fresh":
            say_fresh(source, workspace, name, args.chapter)
        else:
            say_copied(source, workspace, name)
        check_writable(workspace)
    except OSError as error:
        if str(error.filename or "").startswith(str(source)):
            raise
        words = {"copy": "lab", "before": "before"}.get(args.command) or f"fresh CHAPTER={args.chapter}"
        sys.exit(not_writable(workspace, error, words))


def say_copied(source, workspace, name):
    option = "" if name == USUAL else f" WORKSPACE={name}"
    for kept in set_data_aside(source, workspace):
        print(f"A file of data/ was not today's, and is now {name}/data/{kept.relative_to(workspace / 'data')}")
    if copied := copy(source, workspace):
        print(f"Copied {len(copied)} files to {name}/")
    for said in (
        advice_on_renumbered(renumbered(source, workspace), option),
        advice(outdated(source, workspace), option),
    ):
        if said:
            print(said)


def say_moved(source, workspace, name):
    moved = move_before(source, workspace)
    for path in moved:
        print(f"Your copy is now {name}/{BEFORE}/{path.name}")
    if not moved:
        print(f"No copy in {name}/ is from an earlier version of the course")


def say_fresh(source, workspace, name, chapter):
    target, old, renamed = fresh(source, workspace, chapter)
    if renamed:
        print(renamed)
    if old:
        print(f"Your copy is now {name}/{old.name}")
    print(f"New: {name}/{target.name} (if it is open in JupyterLab: File > Reload Notebook from Disk)")


if __name__ == "__main__":
    main()
