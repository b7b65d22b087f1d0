"""Kernel tests run in the interpreter without a CUDA device; marked `gpu` they run compiled on one."""

import functools
import hashlib
import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from tests.kernels.poison import poison

collect_ignore_glob = [] if find_spec("triton") else ["test_*"]  # no packages for macOS and Windows


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    from flashlib import kernels

    if request.param == "cpu" and not kernels.INTERPRETED:
        pytest.skip("kernels are compiled here")
    torch.manual_seed(0)
    return request.param


@pytest.fixture
def poisoned(monkeypatch):
    """Fill whatever a launch allocates with NaN, so that an element it does not write shows."""
    poison(monkeypatch)


@pytest.fixture
def clock(monkeypatch):
    """A clock for the ladders: the first call of all takes 2 ms, each later one a tick less."""
    from flashlib.bench import harness

    told = iter(2 - i / 200 for i in range(200))
    monkeypatch.setattr(harness, "median_ms", lambda run, rep_ms: next(told))


@pytest.fixture
def kept_answers(request, monkeypatch):
    """Keep what the compiler answers in pytest's cache, for other processes and runs, until a kernel changes."""
    from flashlib.kernels import compiled

    if "own_compiler" in request.fixturenames or not hasattr(request.config, "cache"):
        return
    folder, ask = _folder(request.config.cache.mkdir("compiled")), compiled._compiler.ask

    def kept(asked):
        path = folder / hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
        answer = ask(asked)
        if "error" not in answer:
            own = path.with_suffix(f".{os.getpid()}")
            own.write_text(json.dumps(answer), encoding="utf-8")
            os.replace(own, path)
        return answer

    monkeypatch.setattr(compiled._compiler, "ask", kept)


@pytest.fixture
def own_compiler():
    """Let a test that uses `kept_answers` ask the compiler itself."""


@functools.cache
def _folder(parent):
    """Return the folder for what answers depend on beside the request; remove those of other sources."""
    import triton

    flashlib = Path(__file__).parents[2] / "flashlib"
    sources = sorted([*flashlib.glob("kernels/**/*.py"), flashlib / "state.py", flashlib / "gpus.py"])
    variables = sorted(item for item in os.environ.items() if item[0].startswith("TRITON_"))
    key = repr(([path.read_text(encoding="utf-8") for path in sources], triton.__version__, variables))
    folder = parent / hashlib.sha256(key.encode()).hexdigest()[:16]
    for other in parent.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return folder
