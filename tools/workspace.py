"""The learner's copies of the chapters, in workspace/ or a folder of choice. Nothing there is ever overwritten.

Copies have no outputs, so that no answer is below a question that asks for a prediction. Code that would give an
exercise away, in cells tagged `folded`, is folded. Chapters that cannot run on this machine keep their outputs, so
that they can be read. The metadata of a copy says from which text of the chapter it was made, so that a copy from
an earlier version of the course is recognised.
"""

import argparse
import errno
import os
import shutil
import sys
from datetime import datetime
from pathlib import Path

import nbformat

from flashlib.chapters import NOTEBOOKS
from flashlib.checks.classroom.course import version

ROOT = Path(__file__).resolve().parents[1]
USUAL = "workspace"


def copy(source, workspace):
    """Copy every chapter, and every file of data/, that is not in `workspace` yet; return what was copied."""
    to_be_read, copied = {c.slug for c in NOTEBOOKS if c.obstacles()}, []
    for original in [*sorted(source.glob("*.ipynb")), *sorted(source.glob("data/**/*"))]:
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
        f"get the current chapter and keep yours under a dated name: make fresh CHAPTER={names[0][:2]}{option}"
    )


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
    """Return the path of a chapter such as 5, 05 or 05_one_pass; exit with a sentence if there is none."""
    name = chapter.removesuffix(".ipynb")
    names = [path.stem for path in sorted(source.glob("*.ipynb"))]
    found = [n for n in names if n == name or (name.isdigit() and n.startswith(f"{int(name):02d}_"))]
    if not found:
        given = f"There is no chapter {chapter!r}" if chapter else "No chapter was given"
        sys.exit(f"{given}: make fresh CHAPTER=05, for example. There are {', '.join(names)}")
    return source / f"{found[0]}.ipynb"


def set_aside(path):
    """Rename `path` to a dated name that is free, and return the new path."""
    dated = f"{path.stem}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    for suffix in ["", *(f"_{n}" for n in range(2, 1000))]:
        target = path.with_name(f"{dated}{suffix}{path.suffix}")
        try:
            target.touch(exist_ok=False)  # reserves the name, so that no two runs take the same one
        except FileExistsError:
            continue
        return path.replace(target)
    raise FileExistsError(f"{path} could not be set aside: 999 copies of this second exist")


def fresh(source, workspace, chapter):
    """Set the learner's copy of `chapter` aside and make a new one; return (new, the old one or None).

    Outdated files of data/ are replaced in the same way, since the new chapter reads them.
    """
    original = find_chapter(source, chapter)
    target = workspace / original.name
    old = set_aside(target) if target.exists() else None
    for data in filter(Path.is_file, source.glob("data/**/*")):
        mine = workspace / data.relative_to(source)
        if mine.is_file() and mine.read_bytes() != data.read_bytes():
            set_aside(mine)
    copy(source, workspace)
    return target, old


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    copies = commands.add_parser("copy", help="copy the chapters that are not in the workspace yet")
    renews = commands.add_parser("fresh", help="set one aside and make a new copy")
    renews.add_argument("chapter")
    for command in (copies, renews):
        command.add_argument("--workspace", default=USUAL, help="the folder with the copies, if not workspace")
    args = parser.parse_args()

    source, name = ROOT / "notebooks", args.workspace.rstrip(os.sep) or os.sep
    workspace = ROOT / Path(name).expanduser()
    try:
        if args.command == "copy":
            say_copied(source, workspace, name)
        else:
            say_fresh(source, workspace, name, args.chapter)
        check_writable(workspace)
    except OSError as error:
        if str(error.filename or "").startswith(str(source)):
            raise
        words = f"fresh CHAPTER={args.chapter}" if args.command == "fresh" else "lab"
        sys.exit(not_writable(workspace, error, words))


def say_copied(source, workspace, name):
    if copied := copy(source, workspace):
        print(f"Copied {len(copied)} files to {name}/")
    option = "" if name == USUAL else f" WORKSPACE={name}"
    if said := advice(outdated(source, workspace), option):
        print(said)


def say_fresh(source, workspace, name, chapter):
    target, old = fresh(source, workspace, chapter)
    if old:
        print(f"Your copy is now {name}/{old.name}")
    print(f"New: {name}/{target.name} (if it is open in JupyterLab: File > Reload Notebook from Disk)")


if __name__ == "__main__":
    main()
