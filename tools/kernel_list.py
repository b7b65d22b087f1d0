"""The kernels of the course as a table in Markdown, made from their files: where each is and what it does."""

import ast
from pathlib import Path

from tools import markdown

KERNELS = Path(__file__).resolve().parents[1] / "flashlib" / "kernels"
FINISHED = {"in Gluon, for Hopper": KERNELS / "hopper", "in Triton": KERNELS}
TEACHING = "hopper/ladder", "hopper/backward_ladder", "ladder", "ablations"


def table() -> str:
    """Return a row for each file with finished kernels, and one for each folder of teaching versions."""
    rows = []
    for title, folder in FINISHED.items():
        rows.append([f"*finished, {title}*", ""])
        rows += [_row(path) for path in sorted(folder.glob("*.py")) if _has_kernels(path)]
    rows.append(["*versions for teaching*", ""])
    rows += [_row(KERNELS / folder / "__init__.py") for folder in TEACHING]
    return markdown.table(["file", "what it does"], rows)


def _row(path):
    """Return a row: a link to a file, with the name of its folder if it describes one, and its first sentence."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    first = " ".join(text.partition("\n\n")[0].split())
    at = path.relative_to(KERNELS).as_posix()
    return [f"[{at.removesuffix('__init__.py')}](../flashlib/kernels/{at})", first]


def _has_kernels(path):
    """Return whether a file defines a kernel or a function of one: something with a decorator `jit`."""
    functions = (
        one for one in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(one, ast.FunctionDef)
    )
    return any("jit" in ast.unparse(mark) for one in functions for mark in one.decorator_list)
