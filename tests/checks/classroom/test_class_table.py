"""A table for a class: answers are taken from notebooks, and an error in one affects only one row."""

import io
import json
import subprocess
import sys

import pytest

pytest.importorskip("cloudpickle")
pytest.importorskip("IPython")
from flashlib.checks import __main__  # noqa: E402
from flashlib.checks.classroom import class_table, notebook_file  # noqa: E402
from flashlib.checks.engine import solutions  # noqa: E402

IMPORTS = "import numpy as np\nfrom flashlib import checks"
STEP = solutions.text("online_step")
CHECK = "checks.online_step(my_online_step)"
RIGHT = (IMPORTS, STEP, CHECK)
SMALL = "def my_online_step(m, l, x_j):\n    return "


def text(*sources):
    """Return the text of a notebook with these code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": source} for source in sources]})


def rows_of(folder, **notebooks):
    """Return the rows of notebooks, given by their names and sources."""
    for name, sources in notebooks.items():
        (folder / f"{name}.ipynb").write_text(text(*sources), encoding="utf-8")
    return [row for rows in class_table.run(folder) for row in rows]


NAMED = {
    "a function that it calls": (STEP.replace("my_online_step", "g"), "def my_online_step(*a): return g(*a)"),
    "a computed constant": (STEP, "N = 4 * 16", "g = my_online_step", SMALL + "g(m, l, x_j) if N == 64 else 0"),
    "a magic": ("%matplotlib inline\n!ls", "%%time\n" + STEP),
    "a decorator": ("import functools", "@functools.cache\n" + STEP),
    "a conditional": ("try:\n    import nowhere\nexcept ImportError:\n    " + STEP.replace("\n", "\n    "),),
    "defined anew, then the check, then again": ("def my_online_step(): 1", STEP, CHECK, "my_online_step = 3"),
    "built on what it was": (STEP, "def o(f): return lambda *a: f(*a)", "my_online_step = o(my_online_step)"),
    "a local name like a global that raises": ("m = 1 / 0", STEP),
    "an attribute of its own": (STEP, "my_online_step.calls = 0"),
}  # fmt: skip


@pytest.mark.parametrize("what", NAMED)
def test_an_answer_comes_with_what_it_names(tmp_path, what):
    sources = NAMED[what]
    sources = (IMPORTS, *sources) if CHECK in sources else (IMPORTS, *sources, CHECK)
    (row,) = rows_of(tmp_path, a=sources)
    assert row.outcome == "right", row.sentence


@pytest.mark.parametrize(
    "call", ["print(c.online_step(f));", "v = online_step(answer=f)", "c.online_step(lambda *a: f(*a))"]
)
def test_any_way_to_call_a_check_is_recognised(tmp_path, call):
    imports = "import numpy as np\nimport flashlib.checks as c\nfrom flashlib.checks import online_step"
    (row,) = rows_of(tmp_path, a=(imports, STEP.replace("my_online_step", "f"), call))
    assert row[1:3] == ("online_step", "right"), row.sentence


def test_no_cell_runs_or_forges_a_verdict(tmp_path, monkeypatch):
    wrong = SMALL + "m, l"
    attack = f"""import os, sys
from flashlib.learner import process
open({str(tmp_path / "ran")!r}, "w")
process.call = lambda *a, **k: 1
np.exp = print
sys.exit()"""
    found = rows_of(tmp_path, a=(IMPORTS, attack, wrong, CHECK), b=RIGHT)
    assert [row.outcome for row in found] == ["wrong", "right"]
    assert not (tmp_path / "ran").exists(), "a cell with side effects was run"


def test_an_answer_cannot_change_a_neighbour_that_is_not_yet_read(tmp_path):
    write = f"X = open({str(tmp_path / 'b.ipynb')!r}, 'w').write('')"
    found = rows_of(tmp_path, a=(IMPORTS, write, SMALL + "X", CHECK), b=RIGHT)
    assert found[1].outcome == "right", "all notebooks are read before the first answer runs"


def test_the_output_of_an_answer_does_not_reach_the_terminal(tmp_path, capfd):
    write = "import os, sys\nX = [os.write(n, b'\\x1b[31m') for n in (1, 2)]\nY = os.system('echo no')"
    found = rows_of(tmp_path, a=(IMPORTS, write, SMALL + "X, Y", CHECK))
    assert capfd.readouterr() == ("", "") and found[0].outcome == "wrong", found


REASONS = {
    "is not defined before its check": (CHECK, STEP),
    "cell 1 is not Python": (IMPORTS, "def my_online_step(:", CHECK),
    "its check was not run; cell 1 is not Python": (IMPORTS, "checks.online_step(f"),
    "made by code that is not run": (IMPORTS, "for t in range(3): u = t", SMALL + "u", CHECK),
    "it uses my_online_step, made by code": (IMPORTS, "with np.errstate():\n    def my_online_step(*a): 1", CHECK),
    "cell 1 is not Python (duplicate": (IMPORTS, "def my_online_step(m, m, l): return m", CHECK),
    "cell 1 is not Python (it has 60005 characters": (IMPORTS, "x = " + "-" * 60000 + "1", CHECK),
    "'await' outside": (IMPORTS, "K = await 5", SMALL + "K", CHECK),
    "ZeroDivisionError": (IMPORTS, "K = 1 / 0", SMALL + "K", CHECK),
    "\\x1b": (IMPORTS, SMALL + "no", CHECK.replace("my_online_step", "exec('raise ValueError(chr(27) * 9)')")),
}


@pytest.mark.parametrize("said", REASONS)
def test_the_table_says_why_there_is_no_verdict(tmp_path, said):
    (row,) = rows_of(tmp_path, a=REASONS[said])
    assert row.outcome in ("no verdict", "not checked") and said in row.sentence, row


FILES = {
    "the file is empty": b"",
    "it is not JSON": b"{",
    "its text is not in utf-8": b'{"a": "\xe9"}',
    "nested too deeply": b"[" * 10**5,
    'no list of "cells"': b"[1]",
    "an old format": b'{"worksheets": []}',
    'it has no list of "cells"': b'{"cells": ' + b"1" * 5000 + b"}",
    "its cell 0 does not have a text": b'{"cells": [{"cell_type": "code", "source": 5}]}',
    "its cell 0 does not have": b'{"cells": [5]}',
    "up to 0 are read": b" " * 10**6,
}


@pytest.mark.parametrize("said", FILES)
def test_a_file_that_is_not_a_notebook_is_one_row(tmp_path, monkeypatch, said):
    monkeypatch.setattr(notebook_file, "LARGEST", 5 * 10**5)
    (tmp_path / "b.ipynb").write_bytes(FILES[said])
    row, other = reversed(rows_of(tmp_path, a=RIGHT))
    assert (row[:3], other.outcome) == (("b.ipynb", "", "failed"), "right") and said in row.sentence, row


def test_notebooks_links_and_folders_are_distinguished(tmp_path):
    for folder in ("one", "two", "__MACOSX", ".ipynb_checkpoints", "three.ipynb"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.ipynb").write_text(text())
        (tmp_path / folder / "._a.ipynb").write_text("x")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "gone")
    (tmp_path / "json.py").write_text("1 / 0")
    (tmp_path / "bom.ipynb").write_bytes(b"\xef\xbb\xbf" + text().encode())
    (tmp_path / "red\x1b[31m\n.ipynb").write_text(text())
    found = {row.notebook: row.sentence for row in rows_of(tmp_path)}
    named = [
        "bom.ipynb",
        "link.ipynb",
        "one/a.ipynb",
        r"red\x1b[31m\n.ipynb",
        "three.ipynb",
        "three.ipynb/a.ipynb",
        "two/a.ipynb",
    ]
    assert list(found) == named
    assert "broken link" in found["link.ipynb"] and "folder" in found["three.ipynb"]


def test_a_stub_without_a_check_has_a_row(tmp_path):
    cell = {"cell_type": "code", "metadata": {"tags": ["stub:merge"]}, "source": ["x"], "outputs": [{"data": 1}]}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell, {"cell_type": "markdown", "source": "so"}]}))
    assert rows_of(tmp_path) == [("a.ipynb", "merge", "no verdict", "its check was not run")]


def test_table(tmp_path):
    (tmp_path / "d.ipynb").write_text("")
    rows = rows_of(tmp_path, a=RIGHT, b=("1",), c=(CHECK, "checks.merge(f)", CHECK))
    assert [row.exercise for row in rows] == ["online_step", "", "online_step", "merge", ""], "as first met"
    lines = class_table.table(rows).splitlines()
    assert lines[0].split() == ["notebook", "exercise", "outcome"] and len(lines) == 7
    assert lines[-1] == "1 of 3 exercises right, 1 notebooks failed"
    assert class_table.table(rows[:-1]).endswith("\n1 of 3 exercises right")


def test_characters_that_a_terminal_cannot_show_are_escaped(monkeypatch, tmp_path):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    other = io.StringIO()  # it has no encoding
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", other)
    monkeypatch.setattr(sys, "argv", ["checks", str(tmp_path)])
    rows = [
        class_table.TableRow("ö.ipynb", "merge", "right", ""),
        class_table.TableRow("ö.ipynb", "safe", "wrong", "n° 1"),
    ]
    monkeypatch.setattr(class_table, "run", lambda folder: iter([rows] * (folder == str(tmp_path))))
    __main__.main()
    said = terminal.buffer.getvalue().decode("ascii")
    assert said.count("\\xf6.ipynb") == 2 and "n\\xb0 1" in said and "1 of 2 exercises right" in said
    assert other.getvalue() == "ö.ipynb: done\n"


@pytest.mark.process
def test_a_folder_without_notebooks_is_an_error(tmp_path):
    for folder, said in [(tmp_path, "no notebook"), (tmp_path / "gone", "not a folder")]:
        command = [sys.executable, "-m", "flashlib.checks", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1
