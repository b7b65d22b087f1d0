"""The course runs whatever the shell exports: folders, proxies, picture formats, home and Triton's switch."""

import http.server
import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from flashlib import environment
from flashlib.checks.classroom import notebook
from flashlib.learner import process
from tests.browser import lab
from tools import cores

ROOT = Path(__file__).resolve().parents[2]
needs_triton = pytest.mark.skipif(not find_spec("triton"), reason="Triton has packages for Linux only")
CALL = "from flashlib.learner import process; print(process.call(len, 'abc', limit=10))"
REPORT = "from flashlib.kernels.compiler import compiled; print(compiled.report(kernel='softmax', d=64).kernel)"
KERNEL = """
import torch
from flashlib import kernels
X = torch.zeros(1, 1, 16, 16, device=kernels.DEVICE)
try:
    print(float(kernels.attention(X, X, X).O.sum()))
except ValueError as error:
    print(error)
"""


def python(code, *, without=(), **environment):
    """Return what `code` prints in a new Python process."""
    env = {name: value for name, value in os.environ.items() if name not in without}
    env |= {"PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def folder_of_length(start, n):
    """Make a folder whose path has n bytes, at least some 20 more than `start`."""
    path = str(start)
    while len(path) < n:
        left = n - len(path) - 1
        path += "/" + "a" * (left if left <= 200 else min(200, left - 2))
    os.makedirs(path)
    return path


@pytest.mark.process
@pytest.mark.parametrize("n", [150, 3900, None], ids=["long", "very long", "missing"])
def test_a_check_runs_in_any_temporary_folder(n, tmp_path):
    folder = str(tmp_path / "missing") if n is None else folder_of_length(tmp_path, n)
    assert python(CALL, TMPDIR=folder) == "(3, '')\n"


def test_without_a_folder_of_short_path_a_check_starts_a_new_python(monkeypatch):
    monkeypatch.setattr(process, "FOLDER_LIMIT", 0)
    assert process._context().get_start_method() == "spawn", "a forkserver's socket would have too long a path"


def test_a_proxy_is_not_used_for_this_machine(tmp_path, monkeypatch):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "jupyter_runtime_dir").mkdir()
        info = tmp_path / "jupyter_runtime_dir" / "jpserver-1.json"
        info.write_text(json.dumps({"port": server.server_port}), encoding="utf-8")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nothing listens
        found = lab._url(tmp_path)
        server.shutdown()
    assert found == f"http://127.0.0.1:{server.server_port}", "it was asked through the proxy"


HARMFUL = {
    "a backend of pictures": {"MPLBACKEND": "Agg"},
    "no asserts": {"PYTHONOPTIMIZE": "2"},
    "no folder for matplotlib": {"MPLCONFIGDIR": "{file}/below"},
    "no folder for fonts": {"MPLCONFIGDIR": "", "XDG_CACHE_HOME": "{file}/below"},
    "no home": {"MPLCONFIGDIR": "", "HOME": "{file}/below"},
}


def export(cases, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for case in cases:
        for name, value in HARMFUL[case].items():
            monkeypatch.setenv(name, value.format(file=tmp_path / "file"))


@pytest.mark.parametrize("case", HARMFUL)
def test_harmful_variables_are_not_passed_to_a_notebook(case, tmp_path, monkeypatch):
    export([case], tmp_path, monkeypatch)
    given = environment.for_notebooks(dict(os.environ))
    assert not {"MPLBACKEND", "PYTHONOPTIMIZE"} & {*given}
    folder = given.get("MPLCONFIGDIR") or os.path.join(os.path.expanduser("~"), ".config")
    assert os.access(folder, os.W_OK), "matplotlib would say in the first cell that it can write no folder"


@pytest.mark.process
def test_a_notebook_has_the_same_outputs_whatever_the_shell_exports(tmp_path, monkeypatch):
    import nbformat.v4 as v4

    export(HARMFUL, tmp_path, monkeypatch)
    cells = ["import matplotlib.pyplot as plt", "plt.plot([1, 2]);", "assert False, 'it is run'"]
    text = json.dumps(v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells]))
    said, drawn, stopped = json.loads(notebook.execute(text, tmp_path, cell_timeout=300, timeout=600))["cells"]
    assert "writable" not in str(said["outputs"])  # it may say that it makes a list of fonts
    assert any("image/png" in output.get("data", {}) for output in drawn["outputs"]), drawn["outputs"]
    assert [output["evalue"] for output in stopped["outputs"]] == ["it is run"]


def test_jupyterlab_and_pytest_do_not_pass_on_harmful_variables():
    for name in ("tools/jupyter_lab_config.py", "conftest.py"):
        assert "\nfor_notebooks(os.environ)" in (ROOT / name).read_text(encoding="utf-8"), name


@needs_triton
@pytest.mark.process
@pytest.mark.parametrize("variable", ["HOME", "TRITON_HOME", "TRITON_CACHE_DIR"])
def test_the_compiler_works_without_a_folder_that_it_can_write(variable, tmp_path):
    (tmp_path / "file").touch()
    nowhere = {variable: str(tmp_path / "file" / "below")}
    others = {"TRITON_CACHE_DIR", "TRITON_HOME"} - {variable}
    assert python(REPORT, without=others, **nowhere) == "softmax\n"


@needs_triton
def test_an_obstacle_for_the_compiler_is_reported_with_a_way_out(monkeypatch):
    from flashlib.kernels.compiler import client

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(client, "_manager", full)
    with pytest.raises(client.CompileError, match="No space left.*: set TMPDIR and TRITON_CACHE_DIR to"):
        client.Compiler().ask({"kernel": "softmax", "d": 16, "until": "sass"})


@needs_triton
@pytest.mark.process
@pytest.mark.parametrize("value, said", [("", "0.0\n"), ("0", "torch finds no GPU, and TRITON_INTERPRET")])
def test_without_a_gpu_kernels_are_interpreted_or_the_error_says_how(value, said):
    assert said in python(KERNEL, TRITON_INTERPRET=value, CUDA_VISIBLE_DEVICES="")


@pytest.mark.process
def test_pytest_collects_without_xdist():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "tests/test_naive.py"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no cores can be chosen here")
def test_cores_that_this_process_may_not_use_do_not_count():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cores.usable() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.process
def test_a_clone_has_lf_whatever_git_is_configured_to_do(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    clone = tmp_path / "clone"
    told = ["-c", "core.autocrlf=true", "-c", "core.eol=crlf"]
    subprocess.run(["git", *told, "clone", "-q", str(ROOT), str(clone)], check=True, timeout=120)
    files = subprocess.run(["git", "ls-files", "--eol"], cwd=clone, capture_output=True, text=True, check=True)
    wrong = [line for line in files.stdout.splitlines() if "w/crlf" in line or "w/mixed" in line]
    assert not wrong, "these have CRLF:\n" + "\n".join(wrong)
