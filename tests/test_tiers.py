"""What `make test` leaves to `make test-all`: never a whole chapter, exercise, widget, kernel or list entry."""

import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from flashlib import checks, widgets
from flashlib.chapters import CHAPTERS
from tests.tiers import covering, long
from tools import cores

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("lengths", [(2, 3, 5), (1, 7), (4, 4, 4), (3,)])
def test_few_cases_have_every_entry_of_every_list(lengths):
    cases = list(itertools.product(*map(range, lengths)))
    few = covering(cases, [set(enumerate(case)) for case in cases])
    assert {entry for case in few for entry in enumerate(case)} == {e for case in cases for e in enumerate(case)}
    assert len(few) == max(lengths) and len(set(few)) == len(few)


def test_cases_that_share_entries_are_spread():
    cases = list(itertools.product("abcd", "xy"))
    few = covering(cases, [set(enumerate(case)) for case in cases])
    assert sorted(second for _, second in few) == ["x", "x", "y", "y"]


def test_entries_of_short_lists_all_meet_beside_a_long_one():
    """Otherwise an entry could always occur with the same other one: for example causal=True with float32."""
    cases = list(itertools.product("abcdefgh", "xy", "01", "+-"))
    few = covering(cases, [set(enumerate(case)) for case in cases])
    assert len(few) == 8
    for one, other in itertools.combinations((1, 2, 3), 2):
        assert len({(case[one], case[other]) for case in few}) == 4


class Case(NamedTuple):
    """The attributes that `tiers` uses of a case of a test with two lists, one of them of devices."""

    device: str
    kernel: str

    nodeid = property(lambda self: f"tests/kernels/test_a.py::test_b[{self.device}-{self.kernel}]")
    callspec = property(lambda self: SimpleNamespace(params=self._asdict()))

    def get_closest_marker(self, name):
        return name == "gpu" and self.device == "cuda" or None

    def iter_markers(self, name):
        return []


@pytest.mark.parametrize("n", [1, 2, 7])
def test_every_entry_occurs_without_a_gpu_too(n):
    """The cases for a GPU are left out there, so they cannot represent any others."""
    items = [Case(*of) for of in itertools.product(("cpu", "cuda"), "abcdefg"[:n])]
    short = {item for item in items if item.nodeid not in long(items)}
    assert short == set(items)


def collected(*options):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--nbval", "--nbval-current-env", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.process
def test_short_tests_include_everything_that_the_course_promises():
    short, everything = collected("-m", "not long"), collected()
    assert 1000 < len(short) < len(everything)
    cells = [name for name in everything if name.startswith("notebooks/")]
    assert cells and [name for name in short if name.startswith("notebooks/")] == cells
    assert {name.partition("/")[2].partition(".")[0] for name in cells} >= {chapter.slug for chapter in CHAPTERS}
    answers = "tests/checks/test_answers.py::test_"
    for name in checks.EXERCISES:
        assert f"{answers}the_solution_is_right[{name}]" in short
        for test in ("right_answers_in_another_style_are_accepted", "wrong_answers_are_named"):
            assert f"{answers}{test}[{name}-few]" in short
    for name in widgets.__all__:
        assert f"tests/browser/test_every_widget.py::test_a_setting_changes_what_is_shown[{name}]" in short
    compiled = "tests/kernels/compiler/test_compile.py::test_a_kernel_compiles_fits_and_multiplies_as_it_should["
    named = [
        {n[len(compiled) :].partition("-")[0] for n in of if n.startswith(compiled)} for of in (short, everything)
    ]
    assert named[0] == named[1] != set()


@pytest.fixture
def rules():
    """The module of conftest.py, loaded once more."""
    spec = importlib.util.spec_from_file_location("rules_of_all_tests", ROOT / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOGETHER = [  # node ids of one group each
    ["notebooks/04_one_pass.ipynb::Cell 0", "notebooks/04_one_pass.ipynb::Cell 1"],
    ["notebooks/05_tiling.ipynb::Cell 0"],
    ["tests/test_tiled.py::test_a[1-2]", "tests/test_tiled.py::test_a[3-2]", "tests/test_tiled.py::test_b"],
    ["tests/browser/test_living.py::test_a[x]", "tests/browser/test_living.py::test_b"],
    ["tests/kernels/test_forward.py::test_a[x-1]", "tests/kernels/test_forward.py::test_a[x-2]"],
    ["tests/kernels/test_forward.py::test_a[y-1]"],
    ["tests/kernels/test_forward.py::test_b[x-1]"],
    ["tests/bench/test_serve.py::test_a"],
    ["tests/bench/test_serve.py::test_b"],
    ["tests/checks/test_answers.py::test_a[lse-few]", "tests/checks/test_answers.py::test_a[lse-all]"],
    ["tests/checks/test_answers.py::test_a[online-few]"],
]


def test_which_tests_share_a_process(rules):
    found = [{rules.scope(name) for name in group} for group in TOGETHER]
    assert all(len(scopes) == 1 for scopes in found)
    assert len(set.union(*found)) == len(found)


class Item:
    """A test as collected by pytest."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.marks = nodeid, list(marks)
        self.path = Path(nodeid.partition("::")[0])

    def get_closest_marker(self, name):
        return name if name in self.marks else None

    add_marker = property(lambda self: self.marks.append)


def config(backwards=False):
    """A Config of pytest, which records the tests that are left out."""
    left_out = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    return SimpleNamespace(option=SimpleNamespace(backwards=backwards), hook=hook, stash=pytest.Stash()), left_out


NODES = [
    "tests/test_a.py::test_1",
    "tests/test_a.py::test_2",
    "tests/checks/test_b.py::test_1",
    "notebooks/05.ipynb::Cell 0",
    "notebooks/05.ipynb::Cell 1",
    "tests/browser/test_every_widget.py::test_1",
    "tests/browser/test_living.py::test_1",
]


@pytest.mark.parametrize("backwards", [False, True])
def test_the_longest_tests_are_first_and_cells_stay_in_order(rules, backwards):
    items = [Item(node) for node in NODES]
    rules.pytest_collection_modifyitems(config(backwards)[0], items)
    order = [item.nodeid for item in items]
    places = [next((k for k, path in enumerate(rules.FIRST) if node.startswith(path)), 99) for node in order]
    assert places == sorted(places) and sorted(order) == sorted(NODES)
    assert [node for node in order if "Cell" in node] == NODES[3:5]
    assert [node for node in order if "test_a" in node] == NODES[:2][:: -1 if backwards else 1]
    assert [item.nodeid for item in items if "long" in item.marks] == ["tests/browser/test_living.py::test_1"]


@pytest.mark.parametrize("has_gpu", [False, True])
def test_tests_for_a_gpu_are_left_out_without_one_and_this_is_reported(rules, monkeypatch, has_gpu):
    monkeypatch.setattr(rules, "_has_gpu", lambda: has_gpu)
    items = [Item("tests/test_a.py::test_1"), *(Item(f"tests/test_a.py::test_{k}", "gpu") for k in (2, 3, 4))]
    one, left_out = config()
    rules.pytest_collection_modifyitems(one, items)
    assert (len(items), len(left_out)) == ((4, 0) if has_gpu else (1, 3))
    assert said(rules, one, []) == ([] if has_gpu else [f"3 {rules.NO_GPU}"])
    worker = SimpleNamespace(config=SimpleNamespace(stash=one.stash, workeroutput={}))
    rules.pytest_sessionfinish(worker)
    asking, _ = config()
    rules.pytest_testnodedown(SimpleNamespace(config=asking, workeroutput=worker.config.workeroutput))
    assert said(rules, asking, []) == said(rules, one, [])


def said(rules, of, reports):
    lines = []
    terminal = SimpleNamespace(config=of, stats={"passed": reports}, line=lines.append, section=lines.append)
    rules.pytest_terminal_summary(terminal)
    return lines


def test_the_answers_of_each_exercise_are_counted(rules):
    wrong = [("lse", ["shape", "T_unused"]), ("lse", ["shape"]), ("add", ["order"])]
    properties = [("wrong answers named", pair) for pair in wrong]
    properties += [("right answers accepted", ("lse", 2)), ("right answers accepted", ("add", 5)), ("other", 1)]
    reports = [SimpleNamespace(user_properties=[one]) for one in properties]
    _, add, lse, total = said(rules, config()[0], reports)
    assert add.split() == ["add", "5", "1", "order"] and lse.split() == ["lse", "2", "3", "shape,", "T_unused"]
    assert total == "7 right answers accepted, 4 wrong answers named"


def test_as_many_processes_run_as_there_are_cores_and_three_more_in_reverse(rules, monkeypatch):
    monkeypatch.setattr(cores, "usable", lambda: 6)
    assert [rules.pytest_xdist_auto_num_workers(config(backwards)[0]) for backwards in (False, True)] == [6, 7]


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Return a function that makes a control group, and the list of groups of this process."""
    monkeypatch.setattr(cores, "CGROUPS", tmp_path / "fs")
    monkeypatch.setattr(cores, "OF_PROCESS", tmp_path / "cgroup")
    (tmp_path / "fs").mkdir()

    def make(lines, files):
        (tmp_path / "cgroup").write_text("\n".join(lines) + "\n")
        for name, text in files.items():
            path = tmp_path / "fs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")

    return make


@pytest.mark.parametrize(
    "lines, files, expected",
    [
        (["0::/"], {}, float("inf")),
        (["0::/"], {"cpu.max": "max 100000"}, float("inf")),
        (["0::/"], {"cpu.max": "150000 100000"}, 1.5),
        (["0::/a/b"], {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000"}, 2),
        (["0::/a/b"], {"a/cpu.max": "max 100000", "a/b/cpu.max": "50000 100000"}, 0.5),
        (["4:cpu,a:/x"], {"cpu,a/x/cpu.cfs_quota_us": "3000", "cpu,a/x/cpu.cfs_period_us": "1000"}, 3),
        (["1:cpu:/far/away"], {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, float("inf")),
        (["1:cpu:/far/away"], {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
    ],
)  # fmt: skip
def test_a_quota_is_read_from_the_control_groups(groups, lines, files, expected):
    groups(lines, files)
    assert cores.quota() == expected


def test_the_fewest_cores_count(groups, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda of: range(16), raising=False)
    groups(["0::/"], {"cpu.max": "250000 100000"})
    assert cores.usable() == 3
    groups(["0::/"], {"cpu.max": "20000 100000"})
    assert cores.usable() == 1
    groups(["0::/"], {"cpu.max": "max 100000"})
    assert cores.usable() == 16
