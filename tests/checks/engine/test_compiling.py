"""Answers that are right in the interpreter are compiled too, and wrong if the compiler refuses them."""

import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("cloudpickle")
kernels = pytest.importorskip("flashlib.kernels")
if not kernels.INTERPRETED:
    pytest.skip("kernels are compiled here", allow_module_level=True)

from flashlib import checks  # noqa: E402
from flashlib.checks.engine import compiling, solutions, waiting  # noqa: E402
from flashlib.kernels.compiler import client, launch_log, learner_kernels  # noqa: E402
from flashlib.learner import pickling, process  # noqa: E402
from tests.checks.refused_kernels import KINDS  # noqa: E402
from tests.checks.test_answers import call_here  # noqa: E402


@pytest.fixture
def here(monkeypatch):
    """Check answers in this process."""
    monkeypatch.setattr(process, "call", call_here)


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_the_compiler_refuses_is_wrong_and_its_line_is_shown(kind, amount, here):
    ways = list(KINDS[kind].items())
    for name, (way, line) in ways[:1] if amount == "few" else ways[1:]:
        program = solutions.program(name).edited(way)
        verdict = checks.EXERCISES[name](program.function, seed=1)
        assert verdict.mistake == "refused", f"{kind} in {name}\n{verdict}\n{program.source}"
        lines = [(label, text) for label, text in verdict.details if label.startswith("line ")]
        assert bool(lines) == bool(line), f"{kind} in {name}\n{verdict}"
        for label, text in lines:
            shown = program.source.splitlines()[int(label.split()[1]) - 1].strip()
            assert text == shown and line in text, f"{kind} in {name}\n{verdict}"
        assert len(repr(verdict).splitlines()) <= 8, "no dump of a program"


def noted(name, monkeypatch, seed):
    """Return the key of a solution's launches in its fixed cases."""
    found = []
    monkeypatch.setattr(learner_kernels, "refusal", lambda sent: found.append(sent))
    assert checks.EXERCISES[name](solutions.solution(name), seed=seed).right
    return found


def test_drawn_cases_are_not_compiled(here, monkeypatch):
    keys = {sent.key for seed in range(3) for sent in noted("causal_softmax", monkeypatch, seed)}
    assert len(keys) == 1, "their sizes are others at each check"


def test_launches_by_the_course_are_not_compiled(here, monkeypatch):
    assert not noted("padded", monkeypatch, 1)


def test_a_learner_is_told_while_a_kernel_is_compiled(here, monkeypatch, capsys):
    lines = []

    def refusal(sent):
        while not lines:
            lines.extend(capsys.readouterr().err.splitlines())

    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(learner_kernels, "refusal", refusal)
    assert checks.add(solutions.solution("add")).right
    assert lines == [waiting.COMPILING] and capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [client.CompileError("no ptxas"), PermissionError("a folder")])
def test_a_missing_compiler_is_reported_once(error, here, monkeypatch):
    def refusal(sent):
        raise error

    monkeypatch.setattr(learner_kernels, "refusal", refusal)
    monkeypatch.setattr(compiling, "_explained", False)
    answer = solutions.solution("add")
    first, second = checks.add(answer), checks.add(answer)
    assert first.right and second.right
    assert dict(first.details) == {"not compiled": str(error)} and not second.details


def test_an_unwritable_cache_is_replaced_by_another(here, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "folder"))
    monkeypatch.setattr(compiling, "_explained", False)
    refusals, refusal = [], learner_kernels.refusal
    monkeypatch.setattr(learner_kernels, "refusal", lambda sent: refusals.append(refusal(sent)))
    verdict = checks.add(solutions.solution("add"))
    assert verdict.right and not verdict.details and refusals == [None]


CELL = """
import triton
import triton.language as tl

SIZE, ONE = tl.constexpr(32), tl.constexpr(1)

@triton.jit
def added(x, y):
    return x + y

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, sx, sy, so, N):
    n = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + n * sx, mask=n < N)
    y = tl.load(y_ptr + n * sy, mask=n < N)
    tl.store(out_ptr + n * so, added(x, y) * ONE, mask=n < N)

def my_add(x, y, out):
    kernel[(triton.cdiv(len(x), 32),)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(x))
"""
KEY = """
import linecache, sys
import flashlib.kernels
from flashlib import checks
from flashlib.kernels.compiler import learner_kernels, sources
def defined(cell, name):
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    names = {"__name__": "__main__"}
    exec(compile(cell, name, "exec"), names)
    return names["my_add"]
answer = defined(*sys.argv[1:])
learner_kernels.refusal = lambda sent: print(sent.key, sources.digest(answer))
assert checks.add(answer).right
"""


@pytest.mark.process
def test_the_key_depends_on_the_kernel_and_not_on_the_session():
    def key(cell, file, seed):
        command = [sys.executable, "-c", KEY, cell, file]
        env = os.environ | {"PYTHONHASHSEED": seed}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120).stdout

    first = key(CELL, "/tmp/ipykernel_1/1.py", "1")
    assert first and key("# moved\n" + CELL, "/tmp/ipykernel_2/2.py", "2") == first
    for old, new in (("x + y\n", "y + x\n"), ("constexpr(1)", "constexpr(1.0)")):
        assert key(CELL.replace(old, new), "/tmp/ipykernel_1/1.py", "1") != first, f"{new} for {old}"


def test_launches_that_compile_to_the_same_kernel_are_noted_once():
    found = launch_log.LaunchLog()
    kernel = solutions.solution("add").__globals__["strided_add_kernel"]
    for n in (1, 5, 700):
        for dtype in (torch.float32, torch.float16):
            x = torch.zeros(n, dtype=dtype)
            for block in (32, 64):
                found.note(kernel, (x, x, x, 1, n, 1, n), {"BLOCK": block})
    launches = pickling.loads(pickling.Parcel(*found.sent().parcel))
    assert len(launches) == 4 and sum(one.whole for one in launches) == 1
    assert all(one.arguments[-1] != 1 for one in launches), "a size of 1 would become a constant"
