"""Code that hangs, dies or cannot be sent does no harm."""

import builtins
import marshal
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import types
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
from flashlib.learner import containment, pickling, process  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 10  # seconds, for code that ends at once


def learner(source, **names):
    """Return the function f in a text, as if defined in a notebook: its module cannot be imported."""
    namespace = {"__name__": "__learner__", "np": np, **names}
    exec(source, namespace)
    return namespace["f"]


def test_a_function_is_sent_with_the_globals_it_uses():
    f = learner("def g(x): return x + offset\ndef f(x): return np.sum(g(x))", offset=3)
    assert process.call(f, np.ones(4), limit=LIMIT) == (16.0, "")


def test_a_type_of_triton_is_sent_by_its_name(monkeypatch):
    """After a kernel was interpreted, the type contains values of Triton's, which cannot be sent."""
    pytest.importorskip("flashlib.kernels")
    import triton.language as tl

    monkeypatch.setattr(tl.float16, "of_tensors", tl.tuple([tl.constexpr(16)]), raising=False)
    f = learner("def f(): return kinds[0] == kinds[1]", kinds=[tl.float16, tl.dtype("fp16"), np.dtype("float16")])
    assert pickling.loads(pickling.dumps(f))()


def test_code_keeps_the_file_it_comes_from(monkeypatch):
    """Also with a cloudpickle that omits it: Triton reads a kernel's source from there."""
    code = types.CodeType
    nameless = {code: lambda one: (_nameless, (marshal.dumps(one),))}
    table = property(lambda self: nameless, lambda self, given: nameless.update({**given, **nameless}))
    monkeypatch.setattr(pickling._Pickler, "dispatch_table", table, raising=False)
    f = learner(compile("def f(): return lambda: 1", "a cell", "exec"))
    sent = pickling.loads(pickling.dumps(f))
    assert sent.__code__.co_filename == sent().__code__.co_filename == "a cell"


def _nameless(code):
    return marshal.loads(code).replace(co_filename="<dynamic-code>")


def test_printed_text_comes_back_up_to_a_limit():
    result, printed = process.call(learner("def f():\n    print('m =', 2)\n    return 1"), limit=LIMIT)
    assert (result, printed) == (1, "m = 2\n")
    _, printed = process.call(learner("def f():\n    for _ in range(10**4): print('x' * 100)"), limit=LIMIT)
    assert len(printed) == process.PRINTED


def test_an_endless_call_is_ended_in_time_and_its_input_named():
    f = learner("def f(announce):\n    announce(str, 'x = 3')\n    while True: pass")
    before = {*multiprocessing.active_children()}  # the process that starts ranks may exist
    start = time.perf_counter()
    with pytest.raises(process.NotEnded) as caught:
        process.call(f, process.announce, limit=0.5)
    assert time.perf_counter() - start < 60  # even on a machine that is busy with other things
    assert caught.value.sentence == "did not end within 0.5 seconds"
    assert caught.value.at == "x = 3"
    assert {*multiprocessing.active_children()} <= before


def test_only_computing_time_counts_and_is_summed_over_inputs(monkeypatch):
    """A right answer is not ended because the machine is busy, or five times slower for a while."""
    sleeps = learner("def f():\n    import time\n    time.sleep(1)\n    return 1")
    assert process.call(sleeps, limit=0.5)[0] == 1
    f = learner("def f(announce):\n    while True:\n        announce(str, 'x = 3')\n        sum(range(10**5))")
    with pytest.raises(process.NotEnded, match="did not end within 0.5 seconds"):
        process.call(f, process.announce, limit=0.5)
    monkeypatch.setattr(process, "WALL_LIMIT", 1)
    with pytest.raises(process.NotEnded, match="it waits"):
        process.call(learner("def f():\n    import time\n    time.sleep(30)"), limit=0.5)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups")
def test_processes_that_it_starts_end_with_it():
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


STYLES = {
    "singledispatch": "@functools.singledispatch\ndef f(x): pass\n"
    "@f.register\ndef _(x: int): return 7 if x < 1 else f(x - 1)",
    "a dispatched helper": "@functools.singledispatch\ndef g(x): pass\n"
    "@g.register(int)\ndef h(x): return 7\ndef f(x): return g(x)",
    "singledispatchmethod": "class A:\n    @functools.singledispatchmethod\n    def g(self, x): pass\n"
    "    @g.register\n    def _(self, x: int): return 7\ndef f(x): return A().g(x)",
    "cache": "@functools.cache\ndef g(x): return 7 if x < 1 else g(x - 1)\ndef f(x): return g(x)",
    "cached_property": "class A:\n    @functools.cached_property\n"
    "    def v(self): return 7\ndef f(x): return A().v",
    "partial": "def g(a, x): return a\nf = functools.partial(g, 7)",
    "wraps": "def deco(h):\n    @functools.wraps(h)\n    def run(*a): return h(*a)\n    return run\n"
    "@deco\ndef f(x): return 7",
    "a callable object": "class A:\n    def __call__(self, x): return 7\nf = A()",
    "a method": "class A:\n    def g(self, x): return 7\nf = A().g",
    "lambda": "f = lambda x: 7",
    "dataclass": "@dataclasses.dataclass(slots=True)\nclass A:\n    v: int = 7\ndef f(x): return A().v",
    "match and walrus": "def f(x):\n    match x:\n        case int() if (n := 7): return n",
    "errstate": "@np.errstate(all='ignore')\ndef f(x): return 7",
    "display": "def f(x):\n    display(x, display_id=True)\n    return 7",
    "get_ipython": "def f(x):\n    get_ipython().run_line_magic('timeit', 'x')\n    return 7",
}


@pytest.mark.parametrize("style", STYLES)
def test_a_function_of_any_style_is_sent(style):
    f = learner(f"import dataclasses, functools\n{STYLES[style]}")
    assert process.call(f, 2, limit=LIMIT)[0] == 7


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that kill")
@pytest.mark.parametrize(
    "number, said",
    [(signal.SIGSEGV, "memory that is not its own"), (signal.SIGKILL, "SIGKILL"), (40, "signal 40")],
)
def test_a_death_is_reported(number, said):
    f = learner("def f(n):\n    import os\n    os.kill(os.getpid(), n)")
    with pytest.raises(process.NotEnded, match=said):
        process.call(f, int(number), limit=LIMIT)


def test_an_exit_does_not_end_the_check():
    with pytest.raises(process.NotEnded, match="exit code 3"):
        process.call(learner("def f():\n    import os\n    os._exit(3)"), limit=LIMIT)
    with pytest.raises(RuntimeError, match="SystemExit"):
        process.call(learner("def f(): raise SystemExit"), limit=LIMIT)


def test_arguments_that_cannot_be_sent_are_reported():
    with pytest.raises(pickling.CannotBeSent, match="lock"):
        process.call(learner("def f(): return lock", lock=threading.Lock()), limit=LIMIT)


@pytest.mark.parametrize("error", ["1 / 0", "raise GeneratorExit", "raise type('Own', (BaseException,), {})"])
def test_an_exception_of_the_answer_is_not_blamed_on_the_course(error):
    with pytest.raises(process.RaisedByAnswer):
        process.call(learner("def f(answer): return answer()"), learner(f"def f(): {error}"), limit=LIMIT)


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


INVALID_DATA = {
    "bytes": "pipe.send_bytes(b'rubbish')",
    "something else": "pipe.send(('done', 5))",
    "another kind": "pipe.send(('x', 5))",
    "a call": "pipe.send(('done', (P(open, path, 'w'), '')))",
    "a class of numpy": "pipe.send(('done', (P(np.memmap, path, 'u1', 'w+', 0, 8), '')))",
}


@pytest.mark.parametrize("what", INVALID_DATA)
def test_data_that_an_answer_sends_cannot_run_code_here(tmp_path, what):
    f = learner(f"""def f(path):
    from flashlib.learner import process
    pipe = process._connection
    class P:
        def __init__(self, *call): self.call = call
        def __reduce__(self): return self.call[0], self.call[1:]
    {INVALID_DATA[what]}""")
    with pytest.raises(process.NotEnded, match="sent invalid data"):
        process.call(f, str(tmp_path / "ran"), limit=LIMIT)
    assert not (tmp_path / "ran").exists(), "what was sent was called in the learner's own process"


def test_only_the_thread_that_reads_a_connection_closes_it(monkeypatch):
    """Otherwise the next call's connection could get its descriptor while the thread still reads from it."""
    readers, closers, read, close = {}, [], process._pass_on, Connection.close

    def noted_read(connection, sent):
        readers[connection] = threading.current_thread()
        read(connection, sent)

    def noted_close(connection):
        closers.append((connection, threading.current_thread()))
        close(connection)

    monkeypatch.setattr(process, "_pass_on", noted_read)
    monkeypatch.setattr(Connection, "close", noted_close)
    assert process.call(learner("def f(): return 1"), limit=LIMIT) == (1, "")
    ((connection, reader),) = readers.items()
    reader.join(10)
    assert connection.closed and [thread for one, thread in closers if one is connection] == [reader]


def test_a_message_of_any_length_is_not_waited_for():
    f = learner("""def f():
    import os, time
    from flashlib.learner import process
    os.write(process._connection.fileno(), (2**32 - 1).to_bytes(4, "big") + (2**62).to_bytes(8, "big"))
    time.sleep(30)""")
    with pytest.raises(process.NotEnded, match="sent invalid data"):
        process.call(f, limit=LIMIT)


TAMPERED = {
    "sys.modules.builtins": "import sys; sys.modules.clear()",
    "builtins.len": "import builtins; builtins.len = lambda x: 0",
    "builtins.isinstance": "import builtins; builtins.isinstance = None",
    "builtins.print": "import builtins; del builtins.print",
    "numpy.where": "np.where = lambda *a: True",
    "flashlib.checks.engine.equality.same": "from flashlib.checks.engine import equality; equality.same = max",
}


@pytest.mark.parametrize("then", ["return 1", "raise ValueError", "return answer()"])
@pytest.mark.parametrize("name", TAMPERED)
def test_a_change_in_a_module_is_the_answers_mistake(name, then):
    f = learner(f"def f(answer):\n    {TAMPERED[name]}\n    {then}")
    with pytest.raises(process.NotEnded, match=f"^changes {name}.* its check uses too"):
        process.call(f, learner("def f(): return len(5)"), limit=LIMIT)


@pytest.fixture
def alone(monkeypatch):
    """Let no process start, as in a web page; return the messages to the watcher."""
    told = []
    monkeypatch.setattr(process.starting, "is_possible", lambda: False)
    monkeypatch.setattr(process.fresh_modules, "ROOTS", ())  # reloading kernels is slow
    monkeypatch.setattr(process, "_connection", types.SimpleNamespace(send=told.append))
    return told


@pytest.mark.parametrize("name", TAMPERED)
def test_where_no_process_can_start_a_call_says_the_same(alone, name):
    sent = {"x": 1}
    f = learner(
        "def f(words, tell):\n    tell(str, 'x = 3')\n    print('m')\n    here['x'] = 2\n    return 5", here=sent
    )
    here = os.getcwd()
    assert process.call(f, "x", process.announce, limit=2) == (5, "m\n")
    assert alone == [("started", 2), ("at", "x = 3"), ("ended", "")]
    assert sent == {"x": 1} and os.getcwd() == here and not hasattr(builtins, "display")
    with pytest.raises(process.RaisedByAnswer, match="ZeroDivisionError"):
        process.call(call_it, learner("def f(): return 1 / 0"), limit=2)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        process.call(call_it, 5, limit=2)
    with pytest.raises(process.NotEnded, match=f"^changes {name}.* its check uses too"):
        process.call(learner(f"def f():\n    {TAMPERED[name]}"), limit=2)
    with pytest.raises(pickling.CannotBeSent):
        process.call(learner("def f(): return lock", lock=threading.Lock()), limit=2)


def call_it(f):
    return f() if callable(f) else f / 0


def test_a_call_whose_process_was_ended_from_outside_says_so_once(alone):
    process.was_ended("did not end within 12 seconds", "x = 3")
    with pytest.raises(process.NotEnded) as caught:
        process.call(learner("def f(): return 1"), limit=2)
    assert (caught.value.sentence, caught.value.at) == ("did not end within 12 seconds", "x = 3")
    assert process.call(learner("def f(): return 1"), limit=2)[0] == 1


def test_where_no_process_can_start_numpy_warns_as_it_does_in_a_new_one(alone):
    with np.errstate(all="raise"):
        assert process.call(learner("def f(): return np.geterr()"), limit=2)[0] == process.AS_NUMPY_STARTS


@pytest.mark.process
def test_where_no_process_can_start_an_answer_cannot_spoil_later_checks():
    code = (
        "from flashlib.learner import process\n"
        "from tests.checks.engine import spoilers\n"
        "process.starting.is_possible = lambda: False\n"
        "found = spoilers.outcomes(spoilers.SPOILERS, spoilers.CELL)\n"
        "assert found == dict.fromkeys(spoilers.SPOILERS, ['wrong', 'right']), found"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_process_that_cannot_start_is_not_blamed_on_the_answer(monkeypatch):
    monkeypatch.setattr(process, "_child", os._exit)  # called with arguments that it does not accept
    with pytest.raises(ChildProcessError, match="exit code 1"):
        process.call(learner("def f(): return 1"), limit=LIMIT)


def test_the_last_message_is_waited_for(monkeypatch):
    """On a busy machine the process may end before its result is read."""
    pass_on = process._pass_on
    monkeypatch.setattr(process, "_pass_on", lambda *pipe: (time.sleep(0.5), pass_on(*pipe)))
    assert process.call(learner("def f(): return 1"), limit=LIMIT)[0] == 1


def test_half_a_message_does_not_block_a_check(monkeypatch):
    monkeypatch.setattr(process, "WALL_LIMIT", 0.5)
    f = learner("""def f():
    import os, time
    from flashlib.learner import process
    os.write(process._connection.fileno(), (1000).to_bytes(4, "big") + b"abc")
    time.sleep(30)""")
    with pytest.raises(process.NotEnded, match="it waits"):
        process.call(f, limit=0.5)


WRITE = "open(path, 'w').write(str(p))"
LEFT = {
    "in a session of its own": "p = subprocess.Popen(sleep, start_new_session=True).pid",
    "forked twice, and its parent gone": """
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        p = os.fork()
        if p == 0: time.sleep(60)
        os.write(w, str(p).encode())
        os._exit(0)
    p = int(os.read(r, 9))""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is it looked at")
def test_computing_is_limited_even_if_its_signal_is_ignored():
    f = learner("""def f():
    import signal
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    while True: pass""")
    with pytest.raises(process.NotEnded, match="computed for"):
        process.call(f, limit=0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a keeper")
@pytest.mark.parametrize("way", ["return p", f"{WRITE}; os._exit(0)", f"{WRITE}; os.kill(os.getppid(), 9)"])
@pytest.mark.parametrize("left", LEFT)
def test_a_process_that_leaves_its_group_ends_with_it(tmp_path, left, way):
    path = tmp_path / "pid"
    f = learner(f"""def f(path):
    import os, subprocess, sys, time
    sleep = ["sleep", "60"]
    {LEFT[left]}
    {way}""")
    try:
        pid, _ = process.call(f, str(path), limit=LIMIT)
    except process.NotEnded:
        pid = int(path.read_text())
    assert not _runs(pid), "a process that the answer started is still there"


EXCESSES = {
    "3[0-9] processes|4[0-9] processes": "for _ in range(40): os.fork() or time.sleep(60)",
    "GiB of memory": "x = np.ones(2**26)",
    "GiB of files": "open('x', 'wb').write(bytes(2**27))",
}


@pytest.mark.parametrize("machine, accepted", [(3 * 2**18, 1.5), (2**30, 8.0)])
def test_everything_within_the_limits_is_accepted(monkeypatch, machine, accepted):
    """machine: its pages of memory, of 4 KiB."""
    used = {"processes": containment.PROCESSES, "seconds": 30, "pages": int(accepted * 2**18), "files": 2**30}
    monkeypatch.setattr(containment, "LINUX", True)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": machine}[name])
    monkeypatch.setattr(containment, "_below", lambda keeper: [*range(used["processes"])])
    monkeypatch.setattr(containment, "_computed", lambda process: used["seconds"] * (process == 3))
    monkeypatch.setattr(containment, "_resident", lambda process: used["pages"] // 2 if process in (1, 4) else 0)
    monkeypatch.setattr(containment, "_size", lambda folder: used["files"])
    assert containment.excess(7, "here", 30) == ""
    for what, more, said in (
        ("processes", 1, "ran 33 processes at once; up to 32"), ("seconds", 1, "computed for 31 seconds"),
        ("pages", 2**12, f"of memory; up to {accepted:.2f} are"), ("files", 2**24, "wrote 1.02 GiB of files; up"),
    ):  # fmt: skip
        monkeypatch.setitem(used, what, used[what] + more)
        assert said in containment.excess(7, "here", 30)
        monkeypatch.setitem(used, what, used[what] - more)


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux are they looked at")
@pytest.mark.parametrize("said", EXCESSES)
def test_a_process_over_a_limit_is_ended_and_reported(monkeypatch, said):
    monkeypatch.setattr(containment, "MEMORY", 0.4 if "memory" in said else 8.0)
    monkeypatch.setattr(containment, "FILES", 0.1)
    f = learner(f"def f():\n    import os, time\n    {EXCESSES[said]}\n    time.sleep(30)")
    with pytest.raises(process.NotEnded, match=rf"({said}).*; up to .* accepted"):
        process.call(f, limit=LIMIT)
