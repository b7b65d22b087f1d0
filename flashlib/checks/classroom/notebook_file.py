"""The code cells in a notebook's file, or what is wrong with the file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LARGEST = 50 * 2**20  # bytes
SKIPPED = (".ipynb_checkpoints", "__MACOSX")


class CodeCell(NamedTuple):
    """The number of a code cell in its notebook, its source, and the exercise whose stub it is, or ""."""

    number: int
    source: str
    stub: str


def paths(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield (path, "") for each notebook under `folder`, and (path, why) for each folder that cannot be read."""
    bad: list[OSError] = []
    for here, folders, files in os.walk(folder, onerror=bad.append):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        named = [name for name in files + folders if name.lower().endswith(".ipynb") and not name.startswith("._")]
        yield from ((Path(here, name), "") for name in named)
    yield from ((Path(error.filename), f"the folder cannot be read ({error.strerror})") for error in bad)


def cells(path: Path) -> list[CodeCell]:
    """Return the code cells of a notebook; raises ValueError, which says what is wrong with the file."""
    nb = _loaded(path)
    if not isinstance(nb, dict) or not isinstance(found := nb.get("cells"), list):
        old = isinstance(nb, dict) and "worksheets" in nb
        raise ValueError(
            "it is a notebook of an old format: open it in Jupyter and save it" if old
            else 'it is JSON, but not a notebook: it has no list of "cells"'
        )  # fmt: skip
    return [cell for n, one in enumerate(found) if (cell := _cell(n, one))]


def _cell(number, one):
    source = one.get("source", "") if isinstance(one, dict) else None
    source = "".join(source) if isinstance(source, list) and all(isinstance(s, str) for s in source) else source
    if not isinstance(source, str):
        raise ValueError(f"its cell {number} does not have a text as source")
    if one.get("cell_type") != "code":
        return None
    metadata = one.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    stubs = [t[5:] for t in tags if isinstance(t, str) and t.startswith("stub:")] if isinstance(tags, list) else []
    return CodeCell(number, source, stubs[0] if stubs else "")


def _loaded(path):
    try:
        if path.is_dir():
            raise ValueError("it is a folder, not a file")
        if path.is_symlink() and not path.exists():
            raise ValueError("it is a broken link")
        if not path.is_file():
            raise ValueError("it is not a regular file")
        if (size := path.stat().st_size) > LARGEST:
            raise ValueError(
                f"it has {size / 2**20:.0f} MiB; up to {LARGEST // 2**20} are read: clear its outputs"
            )
        raw = path.read_bytes()
        if not raw.strip():
            raise ValueError("the file is empty")
        return json.loads(raw, parse_int=len)  # an int may have too many digits
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from None
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"its text is not in {error.encoding} (at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
