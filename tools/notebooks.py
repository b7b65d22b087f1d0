"""Execute the notebooks of the course in fresh kernels and store their outputs, normalised.

nbval compares with what is stored, so a second run must change nothing: see `normalise`.
"""

import argparse
import copy
import hashlib
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from flashlib.chapters import chapter as registered
from flashlib.checks.classroom import notebook
from flashlib.pictures import inks
from tools import chapter_heads, solved

ROOT = Path(__file__).resolve().parents[1]
CELL_TIMEOUT = 120  # seconds
NOTEBOOK_TIMEOUT = 300  # seconds; about one execution in a hundred hangs outside any cell

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE_INFO = {  # as the kernel gives it, without the version
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
SOLVED = "solutions"  # the folder of the solved notebooks, made from the chapters
KEPT_OUTPUT = "nbval-ignore-output"  # the tag of a cell whose output may differ from run to run
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CELL_FILE = re.compile(r"\S*ipykernel_\d+[/\\]\d+\.py")  # how a warning names its cell
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")


def find(folder, chapter=None):
    """Return the notebooks under `folder`, or the one whose name starts with the number `chapter`."""
    paths = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if chapter is None:
        return paths
    number = f"{int(chapter):02d}_" if chapter.isdigit() else chapter.removesuffix(".ipynb")
    found = [p for p in paths if p.name.startswith(number)]
    if not found:
        sys.exit(f"There is no notebook {chapter!r}; there are: {', '.join(p.stem for p in paths)}")
    return found


def chapters(folder, chapter=None):
    """Return the notebooks that are written by hand: all of `folder` but the solved ones."""
    return [path for path in find(folder, chapter) if path.parent.name != SOLVED]


def read(path):
    """Return the notebook at `path` unchanged: nbformat.read would give random ids to cells without one."""
    try:
        nb = nbformat.reader.reads(path.read_text(encoding="utf-8"))
    except (nbformat.reader.NotJSONError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a notebook: {str(error).splitlines()[0]}") from error
    if nb.get("nbformat") != 4:
        raise ValueError(f"{path} has notebook format {nb.get('nbformat')}; open and save it in JupyterLab")
    return nb


def to_text(nb):
    """Return the text of a notebook's file."""
    return nbformat.writes(nb, version=4).rstrip("\n") + "\n"


def normalise(nb, previous=None):
    """Return a copy of `nb` without anything that differs from run to run or from machine to machine.

    previous: the notebook before it was executed, if it was; a cell tagged nbval-ignore-output keeps the output
    that it has there.
    """
    nb = copy.deepcopy(nb)
    nb.nbformat_minor = 5  # the first with cell ids
    nb.metadata = nbformat.from_dict(
        {k: v for k, v in nb.metadata.items() if k not in ("widgets", "signature")}
        | {"kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO}
    )
    before = {cell.id: cell for cell in previous.cells if cell.cell_type == "code"} if previous else {}
    ids = set()
    for cell in nb.cells:
        cell.id = _cell_id(cell, ids)
        for key in ("execution", "ExecuteTime", "collapsed", "scrolled", "trusted"):
            cell.metadata.pop(key, None)
        if cell.cell_type != "code":
            continue
        old = before.get(cell.id)
        if old and old.outputs and KEPT_OUTPUT in tags(cell):
            cell.outputs = copy.deepcopy(old.outputs)
        cell.outputs = _join_streams(output for output in map(_normalise_output, cell.outputs) if output)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    return nb


def _cell_id(cell, taken):
    """Return the id of `cell`, made from its text if it has none, or if another cell has the same."""
    cell_id = cell.get("id")
    text = f"{cell.cell_type}\n{cell.source}"
    while not cell_id or cell_id in taken:
        cell_id = hashlib.sha256(text.encode()).hexdigest()[:8]
        text += "\n"
    taken.add(cell_id)
    return cell_id


def _join_streams(outputs):
    """Return the outputs with adjacent ones of a stream joined: where a kernel splits it depends on timing."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _normalise_output(output):
    """Return `output` without widget views and file names of this machine; None if nothing is left."""
    if output.output_type == "stream":
        output.text = CELL_FILE.sub("<cell>", output.text)
    elif output.output_type == "error":
        output.traceback = [line.replace(f"{ROOT}/", "") for line in output.traceback]
    else:
        output.data.pop(WIDGET_VIEW, None)
        if not output.data:
            return None
    return output


def _without_svg(nb):
    """Keep only the PNG of each plot: the pages of the site are made from the chapters."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                for name in [name for name in output.data if "svg" in name]:
                    del output.data[name]


def problems(nb):
    """Return a sentence for each output that must not be stored: errors, paths of this machine, addresses."""
    paths = {str(ROOT), str(Path.home()), sys.prefix, tempfile.gettempdir()} - {"/"}
    machine = re.compile("|".join(rf"{re.escape(path)}(?!\w)" for path in sorted(paths)))
    found = []
    for number, cell in enumerate(nb.cells):
        if cell.cell_type != "code":
            continue
        where = f"cell {number} ({cell.id})"
        for output in cell.outputs:
            if output.output_type == "error" and "raises-exception" not in tags(cell):
                traceback = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.traceback))
                # One is enough: errors in later cells follow from it.
                return [*found, f"{where} raised {output.ename}: {output.evalue}\n{traceback}"]
        for text in texts(cell.outputs):
            if match := machine.search(text):
                line = text[: match.end()].count("\n")
                found.append(
                    f"{where} shows a path of this machine: {text.splitlines()[line].strip()!r}; print only "
                    "what a reader needs, and catch or silence the warning if it is one"
                )
            if KEPT_OUTPUT not in tags(cell) and (match := ADDRESS.search(text)):
                found.append(
                    f"{where} shows a memory address,{match[0]}: give the object a repr, "
                    f"assign the value to _ or tag the cell {KEPT_OUTPUT}"
                )
    return found


def tags(cell):
    return cell.metadata.get("tags", [])


def texts(value):
    """Yield every string in `value`, except those of pictures."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "image/svg+xml" or not key.startswith("image/"):
                yield from texts(item)


def execute(nb, folder):
    """Return `nb`, executed from top to bottom in a fresh kernel with the working directory `folder`.

    Tries twice before it raises TimeoutError. If a cell fails, raises RuntimeError with nbconvert's message.
    """
    for last in (False, True):
        try:
            text = notebook.execute(to_text(nb), folder, cell_timeout=CELL_TIMEOUT, timeout=NOTEBOOK_TIMEOUT)
            return nbformat.reads(text, as_version=4)
        except TimeoutError as error:
            if last:
                raise TimeoutError(f"{error}, twice") from error
            print(f"  no end after {NOTEBOOK_TIMEOUT} s", flush=True)


def run(path, refresh=False, source=None):
    """Execute the notebook `source`, by default the one at `path`, and store it there.

    Returns the problems because of which the file was not changed.
    """
    try:
        previous = normalise(read(path) if source is None else source)
        executed = execute(previous, path.parent)
    except (ValueError, TimeoutError, RuntimeError) as error:
        return [str(error)]
    nb = normalise(executed, previous=None if refresh else previous)
    if path.parent.name == SOLVED:
        _without_svg(nb)
    if found := problems(nb):
        return found
    write(path, to_text(nb))
    return []


def write(path, text):
    """Write `text` to `path` unless the file has it already; return whether it was written."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8", newline="\n")
    return True


def make(path, refresh=False):
    """Update the solutions and the head of a chapter, execute and store it, and then its solved notebook.

    Yields (path, seconds, whether it changed, problems) for each.
    """
    chapter = chapter_heads.stated(solved.with_solutions(read(path)), registered(path.stem))
    made = [(path, lambda: chapter)]
    if solved.asks(chapter):
        made.append((path.parent / SOLVED / path.name, lambda: solved.solved(read(path))))
    for target, source in made:
        target.parent.mkdir(exist_ok=True)
        before, start = target.read_bytes() if target.exists() else b"", time.perf_counter()
        found = run(target, refresh, source())
        yield target, time.perf_counter() - start, target.exists() and target.read_bytes() != before, found
        if found:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chapter", help="only this chapter, for example 05")
    parser.add_argument("--refresh", action="store_true", help=f"new outputs for {KEPT_OUTPUT} cells too")
    args = parser.parse_args()

    os.environ[inks.STORED] = "yes"
    failed = []
    for chapter in chapters(ROOT / "notebooks", args.chapter):
        for path, seconds, changed, found in make(chapter, args.refresh):
            name = path.relative_to(ROOT / "notebooks")
            outcome = "failed, left as it was" if found else "stored" if changed else "unchanged"
            print(f"{name} {seconds:.1f} s, {outcome}", flush=True)
            failed += [str(name)] if found else []
            for problem in found:
                print(f"{name}: {problem}", file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"{len(failed)} failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
