"""Kernels are not compiled again until a source changes; a compilation that nobody waits for is ended."""

import subprocess
import sys
import tempfile
import threading

import pytest

from flashlib.kernels.compiler import client, trial

REQUEST = {"kernel": "softmax", "d": 16, "until": "sass"}
SLOW = """
import json, sys, time
for line in sys.stdin:
    print("asked", file=sys.stderr, flush=True)
    time.sleep(json.loads(line)["d"])
    print('{"ptx": "add", "sass": "ADD"}', flush=True)
"""


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The requests to all compilers, on one computer, without compiling."""
    asked = []

    def answer(self, request):
        asked.append(request["until"])
        return {"error": ["ValueError", "d is 0"]} if request["d"] == 0 else {"ptx": "add", "sass": "ADD"}

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(client.Compiler, "_answer", answer)
    monkeypatch.setattr(client.Compiler, "start", lambda self: None)
    return asked


def ask(**changed):
    return client.Compiler().ask(REQUEST | changed)


def test_an_answer_is_kept_for_the_next_process(asked):
    assert ask() == ask() and asked == ["sass"]
    ask(d=32)
    assert asked == ["sass"] * 2


def test_an_answer_with_sass_contains_all_the_others(asked):
    ask()
    assert ask(until="cubin") == {"ptx": "add", "sass": ""} and asked == ["sass"]
    ask(d=32, until="cubin")
    ask(d=32)
    assert asked == ["sass", "cubin", "sass"]


def test_a_request_is_repeated_if_a_source_changes_or_triton_always_compiles(asked, monkeypatch):
    ask()
    monkeypatch.setattr(client, "_sources", lambda: "edited")
    ask()
    assert asked == ["sass"] * 2
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    ask()
    assert asked == ["sass"] * 3


def test_a_process_that_read_older_sources_is_ended(asked, monkeypatch):
    mine, ended = client.Compiler(), []
    monkeypatch.setattr(client.Compiler, "stop", lambda self: ended.append(True))
    mine.ask(REQUEST)
    before = len(ended)
    monkeypatch.setattr(client, "_sources", lambda: "edited")
    mine.ask(REQUEST)
    assert len(ended) > before


def test_an_error_and_a_missing_listing_are_not_kept(asked, monkeypatch):
    assert ask(d=0) == ask(d=0) and asked == ["sass"] * 2
    with monkeypatch.context() as without_disassembler:
        without_disassembler.setattr(client.Compiler, "_answer", lambda *_: {"ptx": "add", "sass": ""})
        assert ask()["sass"] == ""
    assert ask()["sass"] == "ADD"


def test_keys_contain_everything_that_answers_depend_on(monkeypatch, tmp_path):
    before = client._sources()
    for path in (client.ROOT / "flashlib").rglob("*.py"):
        copy = tmp_path / path.relative_to(client.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(client, "ROOT", tmp_path)
    assert client._sources() == before
    keys = [before]
    for source in (
        "kernels/forward.py", "kernels/compiler/worker.py", "kernels/launch/load_store.py", "inputs.py",
        "private_apis/of_compiler.py",
    ):  # fmt: skip
        with (tmp_path / "flashlib" / source).open("a") as file:
            file.write("# edited\n")
        keys.append(client._sources())
        assert keys[-1] not in keys[:-1], source


@pytest.fixture
def slow(monkeypatch, tmp_path):
    """A compiler whose process takes d seconds for an answer; its `begun` is set once it has a request."""
    mine = client.Compiler()
    mine.begun = threading.Event()

    def start(self):
        self.log = tempfile.TemporaryFile("w+")
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([sys.executable, "-c", SLOW], **pipes, text=True, start_new_session=True)
        said = self.process.stderr
        threading.Thread(target=lambda: said.readline() and self.begun.set(), daemon=True).start()

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(client.Compiler, "start", start)
    yield mine
    mine.stop()


class Asking(threading.Thread):
    """Sends a request to a compiler in a thread, and keeps its answer or the error."""

    def __init__(self, whom, d):
        super().__init__(daemon=True)
        self.whom, self.d, self.wanted, self.got = whom, d, client.Wanted(), None
        self.start()

    def run(self):
        client.WANTED.set(self.wanted)
        try:
            self.got = self.whom.ask(REQUEST | {"d": self.d})
        except client.CompileError as error:
            self.got = error


def test_cancelling_ends_the_process_and_the_next_request_gets_a_new_one(slow):
    asking = Asking(slow, 60)
    assert slow.begun.wait(20)
    process = slow.process
    asking.wanted.cancel()
    asking.join(20)
    assert isinstance(asking.got, client.Cancelled) and process.poll() is not None
    assert slow.ask(REQUEST | {"d": 0})["sass"] == "ADD" and slow.process is not process


def test_cancelling_a_waiting_request_does_not_cancel_the_one_it_waits_for(slow):
    first = Asking(slow, 1)
    assert slow.begun.wait(20)
    second = Asking(slow, 60)
    second.wanted.cancel()
    second.join(20)
    first.join(20)
    assert isinstance(second.got, client.Cancelled) and first.got["sass"] == "ADD"


def test_cancelling_after_the_answer_ends_nothing(slow):
    asking = Asking(slow, 0)
    asking.join(20)
    asking.wanted.cancel()
    assert asking.got["sass"] == "ADD"
    process = slow.process
    assert slow.ask(REQUEST | {"d": 0.01})["sass"] == "ADD" and slow.process is process


@pytest.mark.parametrize(
    "log, said",
    [
        ("cell.py:3:4: error: 'tt.dot' op bad sizes\nmodule {\n}\n", "'tt.dot' op bad sizes"),
        ("error: one\nerror: one\nerror: two\ndump", "one; two"),
        ("ptxas fatal   : (C7907) Internal compiler error\n", "Internal compiler error"),
        ("loaded\n}\n", ""),
    ],
)
def test_the_errors_of_a_log_are_reported_without_the_dump_at_its_end(log, said):
    assert trial.errors_in(log) == said


def test_a_crash_of_the_compiler_is_reported_with_its_errors(monkeypatch):
    dies = (
        "import sys; sys.stdin.readline(); print('x.py:1:2: error: no such op\\n}', file=sys.stderr); sys.exit(3)"
    )

    def start(self):
        self.log = tempfile.TemporaryFile("w+")
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        self.process = subprocess.Popen([sys.executable, "-c", dies], **pipes, stderr=self.log, text=True)

    monkeypatch.setattr(client.Compiler, "start", start)
    monkeypatch.setattr(client.Compiler, "kill", lambda self: None)
    with pytest.raises(client.Crashed, match="it last said: no such op$"):
        mine = client.Compiler()
        mine.start()
        mine._answer(REQUEST)
