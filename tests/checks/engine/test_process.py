"""Code that hangs, dies or cannot be sent harms nobody."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
from flashlib.checks.engine import process  # noqa: E402
from flashlib.learner import pickling  # noqa: E402

LIMIT = 10  # seconds, for what ends at once


def learner(source, **names):
    """Return the function f of a text, as a notebook has it: its module cannot be imported."""
    namespace = {"__name__": "__learner__", "np": np, **names}
    exec(source, namespace)
    return namespace["f"]


def test_a_function_is_sent_with_the_globals_it_uses():
    f = learner("def g(x): return x + offset\ndef f(x): return np.sum(g(x))", offset=3)
    assert process.call(f, np.ones(4), limit=LIMIT) == (16.0, "")


def test_what_it_prints_comes_back_and_not_too_much_of_it():
    result, printed = process.call(learner("def f():\n    print('m =', 2)\n    return 1"), limit=LIMIT)
    assert (result, printed) == (1, "m = 2\n")
    _, printed = process.call(learner("def f():\n    for _ in range(10**4): print('x' * 100)"), limit=LIMIT)
    assert len(printed) == process.PRINTED


def test_what_does_not_end_is_ended_in_time_and_the_input_named():
    f = learner("def f(announce):\n    announce('x = 3')\n    while True: pass")
    start = time.perf_counter()
    with pytest.raises(process.NotEnded) as caught:
        process.call(f, process.announce, limit=0.5)
    assert time.perf_counter() - start < 60  # on a machine that is busy with other things too
    assert caught.value.sentence == "did not end within 0.5 seconds"
    assert caught.value.at == "x = 3"
    assert not multiprocessing.active_children()


def test_only_computing_counts_and_once_for_all(monkeypatch):
    """A machine that is busy, or five times slower for a while, ends no right answer."""
    sleeps = learner("def f():\n    import time\n    time.sleep(1)\n    return 1")
    assert process.call(sleeps, limit=0.5)[0] == 1
    f = learner("def f(announce):\n    while True:\n        announce('x = 3')\n        sum(range(10**5))")
    with pytest.raises(process.NotEnded, match="did not end within 0.5 seconds"):
        process.call(f, process.announce, limit=0.5)
    monkeypatch.setattr(process, "WALL_LIMIT", 1)
    with pytest.raises(process.NotEnded, match="it waits"):
        process.call(learner("def f():\n    import time\n    time.sleep(30)"), limit=0.5)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups")
def test_what_it_starts_ends_with_it():
    start = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)']).pid"
    pid, _ = process.call(learner(f"def f():\n    import subprocess, sys\n    return {start}"), limit=LIMIT)
    for _ in range(50):
        if not _runs(pid):
            return
        time.sleep(0.1)
    pytest.fail("it runs on")


def _runs(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_it_runs_in_an_empty_folder_that_is_gone_after_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    f = learner(
        "def f():\n    import os\n    found = os.listdir()\n    open('x', 'w')\n    return os.getcwd(), found"
    )
    (folder, found), _ = process.call(f, limit=LIMIT)
    assert not found and not Path(folder).exists() and not list(tmp_path.iterdir())


def test_a_cached_function_is_sent():
    f = learner("import functools\n@functools.lru_cache(maxsize=3)\ndef f(): return 7")
    assert process.call(f, limit=LIMIT)[0] == 7


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that kill")
@pytest.mark.parametrize(
    "number, said", [(signal.SIGSEGV, "memory that is not its own"), (signal.SIGKILL, "SIGKILL")]
)
def test_a_death_is_told(number, said):
    f = learner("def f(n):\n    import os\n    os.kill(os.getpid(), n)")
    with pytest.raises(process.NotEnded, match=said):
        process.call(f, int(number), limit=LIMIT)


def test_an_exit_is_no_end():
    with pytest.raises(process.NotEnded, match="exit code 3"):
        process.call(learner("def f():\n    import os\n    os._exit(3)"), limit=LIMIT)
    with pytest.raises(RuntimeError, match="SystemExit"):
        process.call(learner("def f(): raise SystemExit"), limit=LIMIT)


def test_what_cannot_be_sent_is_told():
    with pytest.raises(pickling.CannotBeSent, match="lock"):
        process.call(learner("def f(): return lock", lock=threading.Lock()), limit=LIMIT)


def test_an_error_comes_back_with_the_line_of_its_cell():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        process.call(learner("def f(): return 1 / 0"), limit=LIMIT)


def test_the_main_module_does_not_run_again(monkeypatch, tmp_path):
    """Triton's interpreter leaves the name of its own file in a notebook's __main__."""
    script = tmp_path / "script.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    assert process.call(os.getpid, limit=LIMIT)[0] != os.getpid()
    assert not (tmp_path / "ran").exists()
    assert sys.modules["__main__"].__file__ == str(script)
