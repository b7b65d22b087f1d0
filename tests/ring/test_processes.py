"""A learner's function on several processes: results, errors and output come back, and no process is left."""

import _thread
import inspect
import linecache
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
from flashlib.learner import containment, pickling  # noqa: E402
from flashlib.ring import processes  # noqa: E402
from flashlib.ring.processes import launcher_connection, running  # noqa: E402

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def learner(source, **names):
    """Return the function f that a text defines, in a module that cannot be imported, like a notebook's."""
    namespace = {"__name__": "__learner__", **names}
    text = "import os, sys, time, torch, torch.distributed as dist\n" + source
    file = f"/tmp/of_a_notebook/{hash(text)}.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), namespace)
    return namespace["f"]


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert launcher_connection._connection is None or not below()


def below():
    launcher = launcher_connection._connection.process.pid
    return containment._below(launcher) if sys.platform == "linux" else []


RING = """
def f(n):
    rank, P = dist.get_rank(), dist.get_world_size()
    here, total = torch.full((n,), rank + offset), torch.full((n,), rank + offset)
    for _ in range(P - 1):
        there = torch.empty_like(here)
        works = [dist.isend(here, (rank + 1) % P), dist.irecv(there, (rank - 1) % P)]
        [work.wait() for work in works]
        here = there
        total = total + here
    return rank, total
"""


def test_a_function_from_a_cell_runs_on_four_ranks_with_the_globals_it_uses():
    found = processes.run(learner(RING, offset=1.5), 3, seconds=100)
    assert [rank for rank, _ in found] == [0, 1, 2, 3]
    for _, total in found:
        assert torch.equal(total, torch.full((3,), 4 * 1.5 + 6))


@pytest.mark.parametrize("ranks", [1, 3])
def test_any_number_of_ranks(ranks):
    found = processes.run(learner(RING, offset=1.0), 2, ranks=ranks, seconds=100)
    assert [float(total[0]) for _, total in found] == [ranks * (ranks + 1) / 2] * ranks


def test_a_rank_can_compute_gradients():
    f = learner(
        "def f(X):\n    X.requires_grad_()\n    ((X @ X).sum() * dist.get_rank()).backward()\n    return X.grad"
    )
    X = torch.ones(5, 5)
    for rank, found in enumerate(processes.run(f, X, ranks=2, seconds=100)):
        assert torch.equal(found, torch.full((5, 5), 10.0) * rank)


def test_an_error_is_one_traceback_and_names_its_rank():
    f = learner("def f():\n    if dist.get_rank() == 2: return {}['O']\n    dist.barrier()")
    start = time.monotonic()
    with pytest.raises(processes.RankError) as caught:
        processes.run(f, seconds=100)
    text = str(caught.value)
    assert caught.value.rank == 2 and text.startswith("rank 2 raised KeyError: 'O'")
    assert text.count("Traceback") == 1 and "rank.py" not in text
    assert 'File "<cell>", line 3, in f\n    if dist.get_rank() == 2' in text
    assert time.monotonic() - start < 50, "the other ranks were waiting"


def test_an_error_that_all_ranks_raise_is_reported_once():
    f = learner("def f():\n    dist.barrier()\n    raise ValueError('N is odd')")
    with pytest.raises(processes.RankError, match="^ranks .* raised ValueError: N is odd") as caught:
        processes.run(f, seconds=100)
    assert str(caught.value).count("Traceback") == 1


@pytest.mark.parametrize("end, said", [("os._exit(3)", "exit code 3"), ("os.kill(os.getpid(), 11)", "SIGSEGV")])
def test_a_rank_that_dies_ends_the_others(end, said):
    f = learner(f"def f():\n    if dist.get_rank() == 1: {end}\n    dist.barrier()\n    time.sleep(100)")
    start = time.monotonic()
    with pytest.raises(processes.RankError, match=f"rank 1 ended its process: {said}"):
        processes.run(f, seconds=100)
    assert time.monotonic() - start < 50


def test_the_error_explains_a_message_that_is_too_long():
    f = learner(
        "def f():\n    dist.send(torch.ones(8), 1) if dist.get_rank() == 0 else dist.recv(torch.ones(3), 0)"
    )
    with pytest.raises(processes.RankError, match="rank 1 .* it was sent more bytes than its tensor holds"):
        processes.run(f, ranks=2, seconds=100)


ALL_SEND_FIRST = """
def f():
    rank, P = dist.get_rank(), dist.get_world_size()
    dist.send(torch.ones(3), (rank + 1) % P)
    dist.recv(torch.ones(3), (rank - 1) % P)
"""


def test_a_deadlock_says_who_waits_for_whom():
    start = time.monotonic()
    with pytest.raises(processes.RanksWait) as caught:
        processes.run(learner(ALL_SEND_FIRST), ranks=3, seconds=100)
    assert time.monotonic() - start < 50, "long before the time limit"
    text = str(caught.value)
    assert text.startswith("no rank can go on:\n")
    for rank in range(3):
        assert f"- rank {rank} waits for rank {(rank + 1) % 3} (does not receive from it), at line 5 of f" in text


WAITS = {
    "a rank that computes": (
        3,
        "[time.sleep(0.01) for _ in iter(int, 1)]",  # without using a core that other tests need
        "rank 1 (has not sent to it)",
        "rank 1 computes, at line 4 of <listcomp>: if dist.get_rank()",
    ),
    "a rank that has returned": (100, "return", "rank 1 (returned)", "rank 1 returned"),
}


@pytest.mark.parametrize("who", WAITS)
def test_a_wait_for_a_rank_that_never_sends_is_reported(who):
    seconds, code, awaited, other = WAITS[who]
    f = learner(
        f"def f():\n    x = torch.ones(2)\n    if dist.get_rank() == 1: {code}\n    dist.irecv(x, 1).wait()"
    )
    with pytest.raises(processes.RanksWait) as caught:
        processes.run(f, ranks=2, seconds=seconds)
    assert str(caught.value).startswith("no rank can go on:" if seconds > 3 else "not all ranks ended within 3 s")
    assert f"- rank 0 waits for {awaited}, at line 5 of f" in str(caught.value) and f"- {other}" in str(
        caught.value
    )


SLOW = """
def f():
    rank, x = dist.get_rank(), torch.ones(2)
    if rank == 2: time.sleep(running_still)
    if rank < 2: dist.recv(x, rank + 1)
    if rank > 0: dist.send(x, rank - 1)
    dist.barrier()
    return rank
"""


def test_ranks_may_wait_for_a_slow_one():
    f = learner(SLOW, running_still=running.LOOK * (running.STILL + 4))
    assert processes.run(f, ranks=3, seconds=100) == [0, 1, 2]


def test_output_is_shown_by_rank_in_order(capfd):
    f = learner(
        "def f():\n    time.sleep(0.2 * (dist.get_rank() == 0))\n    print('m =', dist.get_rank())\n    print('l')"
    )
    processes.run(f, ranks=3, seconds=100)
    said, err = capfd.readouterr()
    assert said.splitlines() == [f"rank {r} | {line}" for r in range(3) for line in (f"m = {r}", "l")] and not err


def test_the_output_of_a_rank_that_died_is_shown(capsys):
    with pytest.raises(processes.RankError):
        processes.run(learner("def f():\n    print('last words')\n    os._exit(1)"), ranks=1, seconds=100)
    assert capsys.readouterr().out == "rank 0 | last words\n"


def test_long_output_is_shortened(capsys):
    processes.run(learner("def f():\n    for n in range(10**5): print('x', n)"), ranks=1, seconds=100)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 10**4 and lines[0] == "rank 0 | x 0" and lines[-1] == "rank 0 | x 99999"


@LINUX
def test_ranks_listen_on_the_loopback_only_and_the_launcher_not_at_all():
    text = inspect.getsource(listening)  # sent as it is, this module would be imported in each rank
    ours = learner(f"{text}\ndef f():\n    dist.barrier()\n    return listening('self')")
    for found in processes.run(ours, seconds=100):
        assert found and {address for _, address in found} <= {"0100007F", "0" * 24 + "01000000"}
    assert not listening(launcher := launcher_connection._connection.process.pid)
    assert len(os.listdir(f"/proc/{launcher}/task")) == 1, "a process that forks must have one thread"


def listening(process):
    """Return (kind, address in hexadecimal) of each socket on which a process listens, of TCP or UDP."""
    links = [f"/proc/{process}/fd/{name}" for name in os.listdir(f"/proc/{process}/fd")]
    own = {os.readlink(link) for link in links if os.path.lexists(link)}
    found = []
    for kind, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with open(f"/proc/{process}/net/{kind}") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        found += [(kind, row[1].split(":")[0]) for row in rows if row[3] == state and f"socket:[{row[9]}]" in own]
    return found


@LINUX
def test_processes_that_a_rank_starts_end_with_the_run():
    start = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)'], start_new_session=True).pid"
    (pid,) = processes.run(
        learner(f"def f():\n    import subprocess, sys\n    return {start}"), ranks=1, seconds=100
    )
    assert not os.path.exists(f"/proc/{pid}")


@LINUX
def test_no_file_is_left():
    f = learner(
        "def f():\n    it = os.path.dirname(os.readlink('/proc/self/fd/1'))\n    return it, os.listdir(it)"
    )
    for folder, files in processes.run(f, seconds=100):
        assert "store" in files and not os.path.exists(folder)


def test_an_interrupt_ends_the_ranks_and_the_next_run_works(capsys, tmp_path):
    f = learner(
        "def f(path):\n    print('begun')\n    open(f'{path}/{dist.get_rank()}', 'w')\n    time.sleep(100)"
    )

    def interrupt():
        while len(os.listdir(tmp_path)) < 2:
            time.sleep(0.05)
        _thread.interrupt_main()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            processes.run(f, str(tmp_path), ranks=2, seconds=100)
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().out.splitlines() == ["rank 0 | begun", "rank 1 | begun"]
    assert processes.run(learner("def f(): return 7"), ranks=1, seconds=100) == [7]


def test_a_failure_to_start_ranks_is_reported_and_the_next_run_works(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(running, "METHOD", "none")
        with pytest.raises(RuntimeError, match="the ranks could not be started:\n(?s:.*)'none'"):
            processes.run(learner("def f(): return 7"), ranks=1, seconds=100)
    assert processes.run(learner("def f(): return 7"), ranks=1, seconds=100) == [7]


def test_modules_of_torch_that_a_rank_imports_are_there_in_the_next_run():
    f = learner(
        "def f():\n    had = len(sys.modules)\n    import torch.utils.benchmark\n    return len(sys.modules) - had"
    )
    assert processes.run(f, ranks=1, seconds=100)[0] > 0 == processes.run(f, ranks=1, seconds=100)[0]


@LINUX
def test_the_death_of_the_launcher_is_reported_and_the_next_run_works(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ends = learner("def f():\n    os.kill(os.getppid(), 9)\n    time.sleep(100)")
    with pytest.raises(ChildProcessError, match="again to start another"):
        processes.run(ends, ranks=2, seconds=100)
    assert not list(tmp_path.glob("ranks-*"))
    assert processes.run(learner("def f(): return 7"), ranks=1, seconds=100) == [7]


def test_ranks_have_the_folder_environment_and_path_of_the_notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OF_A_CELL", "1")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine_alone.py").write_text("def f(): return 'of a file'")
    import mine_alone

    here = learner("def f(g): return os.getcwd(), os.environ['OF_A_CELL'], g()")
    assert processes.run(here, mine_alone.f, ranks=1, seconds=100) == [(os.getcwd(), "1", "of a file")]


@pytest.mark.process
def test_with_spawn_each_rank_is_a_new_python(monkeypatch):
    monkeypatch.setattr(running, "METHOD", "spawn")
    found = processes.run(learner(RING, offset=1.5), 3, ranks=2, seconds=100)
    assert [float(total[0]) for _, total in found] == [4, 4]
    with pytest.raises(processes.RankError, match="rank 1 raised ZeroDivisionError"):
        processes.run(learner("def f(): return 1 / (1 - dist.get_rank())"), ranks=2, seconds=100)


@pytest.mark.parametrize(
    "options",
    [{"ranks": 0}, {"ranks": 2.0}, {"ranks": True}, {"ranks": 10**6}, {"seconds": 0}, {"seconds": np.nan}],
)
def test_invalid_numbers_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is .*give a"):
        processes.run(print, **options)


def test_functions_and_results_that_cannot_be_sent_are_refused():
    with pytest.raises(pickling.CannotBeSent, match="lock"):
        processes.run(learner("def f(): return lock", lock=threading.Lock()))
    with pytest.raises(processes.RankError, match="TypeError: a rank returned object, .*accepted are"):
        processes.run(learner("def f(): return object()"), ranks=1, seconds=100)


def test_a_rank_cannot_start_ranks():
    with pytest.raises(processes.RankError, match="RuntimeError: this process is a rank already"):
        processes.run(learner("def f(run): run(print)"), processes.run, ranks=1, seconds=100)


def test_an_exit_is_reported():
    with pytest.raises(processes.RankError, match="rank 0 raised SystemExit: 3"):
        processes.run(learner("def f(): raise SystemExit(3)"), ranks=1, seconds=100)


def runs():
    """Run ranks and end, in a separate process."""
    assert processes.run(learner("def f(): return 7"), ranks=1, seconds=100) == [7]


@pytest.mark.process
def test_a_process_started_by_multiprocessing_ends_after_running_ranks():
    """Such a process skips atexit and waits for its children, so the launcher must be told to end."""
    process = multiprocessing.get_context("spawn").Process(target=runs)
    process.start()
    process.join(60)
    process.kill()
    assert process.exitcode == 0
