"""Whatever imports Triton before us, kernels are interpreted on machines without a GPU, with the same results."""

import json
import os
import subprocess
import sys

import pytest

from flashlib import kernels

pytestmark = pytest.mark.skipif(not kernels.INTERPRETED, reason="kernels are compiled here")

WAYS = {
    "triton": "import triton",
    "from triton.language": "import triton.language as tl; from triton.language import cdiv, softmax, sum",
    "triton.language.extra": "import triton.language.extra.cuda.libdevice, triton.tools.ragged_tma",
    "gluon": "import triton.experimental.gluon.language",
    "interpreter": "import triton.runtime.interpreter",
    "AdamW": "import torch; torch.optim.AdamW([torch.ones(2, requires_grad=True)])",
    "torch.compile": "import torch; torch.compile(lambda x: x + 1, backend='aot_eager')(torch.ones(2))",
    "inductor": "import torch._inductor.runtime.triton_helpers",
    "0, then unset": "os.environ['TRITON_INTERPRET'] = '0'; import triton; del os.environ['TRITON_INTERPRET']",
    "1, set late": "import triton; os.environ['TRITON_INTERPRET'] = '1'",
}
RESULTS = (
    "import json; from tests.kernels import every; print(json.dumps({x: every.result(x) for x in every.CALLS}))"
)
KINDS = """
import sys, triton.language as tl
from flashlib import kernels
modules = [vars(m) for name, m in list(sys.modules.items()) if name.startswith(("triton.", "__main__"))]
left = {key for names in modules for key, value in names.items() if type(value) is kernels.triton.JITFunction}
print(sorted(left), kernels.INTERPRETED, kernels.DEVICE, type(vars(tl.tensor)["sum"]).__name__)
"""


def said_by(before, text):
    """Return the output of a program that runs `before` and then imports us, without a GPU."""
    env = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    env |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", f"import os; {before}\n{text}"],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )
    assert done.returncode == 0, f"after `{before}` the kernels do not run:\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def alone():
    return json.loads(said_by("", RESULTS))


@pytest.mark.process
@pytest.mark.parametrize("way", ["from triton.language", "AdamW", "torch.compile"])
def test_every_kernel_gives_the_same_to_the_bit(way, alone):
    other = json.loads(said_by(WAYS[way], RESULTS))
    assert {name for name in alone if other[name] != alone[name]} == set(), f"these differ after {WAYS[way]}"


@pytest.mark.process
@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_the_language_is_left_for_the_compiler(way):
    assert said_by(WAYS[way], KINDS) == "[] True cpu function\n"


@pytest.mark.process
def test_a_kernel_decorated_before_stays_and_one_decorated_after_is_interpreted(tmp_path):
    module = "import triton, triton.language as tl\ndef f(x):\n    return tl.sum(x)\nearly = triton.jit(f)\n"
    (tmp_path / "early.py").write_text(module, encoding="utf-8")
    before = f"import sys; sys.path.append({str(tmp_path)!r}); from early import *"
    late = "from flashlib import kernels; print(type(early).__name__, type(triton.jit(f)).__name__)"
    assert said_by(before, late) == "JITFunction InterpretedFunction\n"


@pytest.mark.process
def test_the_compiler_is_used_if_requested():
    before = "os.environ['TRITON_INTERPRET'] = '0'; import triton"
    text = "from flashlib import kernels; print(kernels.INTERPRETED, type(triton.language.sum).__name__)"
    assert said_by(before, text) == "False JITFunction\n"
