"""Kernels on a page's stand-ins, in a new process: errors, and the verdicts that Triton and torch give."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.chapters import named  # noqa: E402
from flashlib.checks.engine import solutions  # noqa: E402
from tests.checks import answers  # noqa: E402
from tests.web import page_packages  # noqa: E402
from web.live.parts import ROOT  # noqa: E402

PROGRAM = Path(__file__).with_name("run_on_stand_ins.py")
NUMBER = re.compile(r"[-+]?\d[\d.e+-]*")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The environment of a process that has a page's packages."""
    return os.environ | {"PYTHONPATH": str(page_packages.write(tmp_path_factory.mktemp("page")))}


def verdicts(which, asked, env):
    """Return the verdict on each answer; which: "page", without Python's own packages, or "real"."""
    command = [sys.executable, "-P", *(["-S"] if which == "page" else []), str(PROGRAM), which]
    run = subprocess.run(
        command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, env=env, check=True, timeout=1800
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def answers_of(exercise):
    """Yield (text, the id of the mistake that must be named or "") of each answer to an exercise that ends."""
    yield solutions.program(exercise).source, ""
    for answer in (*answers.right(), *answers.wrong()):
        if answer.exercise == exercise and answer.mistake != "not_ended":
            yield answer.source, answer.mistake


def first_sentence(text):
    """Return the first sentence of a verdict, without its numbers, in which last digits may differ."""
    return NUMBER.sub("#", text.splitlines()[0].partition(". ")[0])


@pytest.mark.process
@pytest.mark.parametrize("chapter", ["triton_first_steps", "triton_flash"])
def test_verdicts_are_those_of_triton_and_torch(chapter, page):
    exercises = [e.name for e in checks.EXERCISES.values() if e.chapter == named(chapter).slug]
    given = [(exercise, *answer) for exercise in exercises for answer in answers_of(exercise)]
    asked = [(exercise, text) for exercise, text, _ in given]
    real = verdicts("real", asked, os.environ | {"PYTHONPATH": str(ROOT)})
    found = verdicts("page", asked, page)
    assert len(given) > 300
    for (exercise, text, mistake), own, other in zip(given, found, real, strict=True):
        assert own["mistake"] == mistake and (own["outcome"] == "right") == (not mistake), f"{own}\n{text}"
        assert own["outcome"] == other["outcome"], f"{exercise}:\n{text}"
        assert first_sentence(own["text"]) == first_sentence(other["text"]), f"{exercise}:\n{text}"


WILD = """
import torch, triton, triton.language as tl
@triton.jit
def kernel(X_ptr, Y_ptr, far, n: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(Y_ptr + at, tl.load(X_ptr + at + far))
X, Y = torch.ones(3, 4), torch.zeros(16, dtype=torch.float16)
for far, n in (-4, 8), (2**20, 4), (0, 16):
    try:
        kernel[(1,)](X, Y, far, n)
    except Exception as error:
        print(error)
try:
    kernel(X, Y, 0, 4)
except Exception as error:
    print("grid_idx" in str(error))
"""


@pytest.mark.process
def test_an_address_where_no_tensor_lies_names_the_nearest_argument(page, tmp_path):
    (tmp_path / "wild.py").write_text("import flashlib.kernels" + WILD)
    command = [sys.executable, "-P", "-S", str(tmp_path / "wild.py")]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=page, check=True, timeout=120)
    before, far, past, no_grid = run.stdout.splitlines()
    place = "X_ptr, a tensor of float32 with the shape (3, 4)"
    assert f"loads 4 bytes at an address where no tensor lies: 16 bytes before the start of {place}" in before
    assert f"0 bytes past the end of {place}" in past
    assert "bytes past the end of Y_ptr, a tensor of float16 with the shape (16,)" in far
    assert no_grid == "True"
