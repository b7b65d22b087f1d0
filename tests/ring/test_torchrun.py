"""The same file runs alone and under torchrun, on one host or on several, and nothing outlives who started it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE, ZIGZAG = "docs/round_the_ring.py", "docs/zigzag_ring.py"
TORCHRUN = "-m", "torch.distributed.run", "--nproc-per-node", "2"
SUMS = "tensor([10., 10., 10.])"
pytestmark = pytest.mark.process


def start(*arguments, **variables):
    """Start Python in the root of the repository, listening on this host only."""
    own = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)} | variables
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    """Return the output, the errors and the exit code of a process."""
    out, err = process.communicate(timeout=200)
    return out, err, process.returncode


def test_it_runs_alone():
    out, err, code = finished(start(EXAMPLE))
    assert code == 0 and out == f"[{', '.join([SUMS] * 4)}]\n" and not err


def test_under_torchrun_it_joins_the_ranks_that_torchrun_started():
    out, err, code = finished(start(*TORCHRUN, "--nproc-per-node", "4", "--standalone", EXAMPLE))
    assert code == 0, err
    assert out.splitlines()[-1] == f"[{', '.join([SUMS] * 4)}]"


def test_two_agents_are_two_hosts():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    several = "--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(port)
    agents = [start(*TORCHRUN, *several, "--node-rank", str(n), EXAMPLE) for n in range(2)]
    found = [finished(agent) for agent in agents]
    assert [code for _, _, code in found] == [0, 0], found
    assert found[0][0].splitlines()[-1] == f"[{', '.join([SUMS] * 4)}]" and SUMS not in found[1][0]


def test_the_zigzag_ring_starts_its_own_ranks_and_equals_whole_attention():
    out, err, code = finished(start(ZIGZAG))
    errors = [float(line.rpartition(" at most ")[2]) for line in out.splitlines()]
    assert code == 0 and len(errors) == 4 and max(errors) < 1e-13, err


FAILING = """
import torch, torch.distributed as dist
from flashlib.ring import processes
def f():
    if dist.get_rank() == 1: {here}
    dist.recv(torch.ones(2), 1)
processes.run(f, seconds=2)
"""


def test_an_error_under_torchrun_ends_all(tmp_path):
    file = tmp_path / "failing.py"
    file.write_text(FAILING.format(here="raise KeyError('O')"))
    out, err, code = finished(start(*TORCHRUN, "--standalone", str(file)))
    assert code != 0 and "KeyError: 'O'" in err


def test_a_rank_that_waits_too_long_under_torchrun_says_where(tmp_path):
    file = tmp_path / "hanging.py"
    file.write_text(FAILING.format(here="import time; time.sleep(100)"))
    out, err, code = finished(start(*TORCHRUN, "--standalone", str(file)))
    assert code != 0 and "rank 0 waits, at line 6 of f: dist.recv(torch.ones(2), 1)" in err


SEVERAL = """
import torch, torch.distributed as dist
from flashlib.ring import processes
def f(n):
    x = torch.ones(n)
    dist.all_reduce(x)
    return x
sums = [processes.run(f, n) for n in (1, 2, 3, 4)]
print([[len(x) * float(x.mean()) for x in of] for of in sums])
"""


def test_several_runs_under_torchrun(tmp_path):
    file = tmp_path / "several.py"
    file.write_text(SEVERAL)
    out, err, code = finished(start(*TORCHRUN, "--standalone", str(file)))
    assert code == 0 and out.count("[[2.0, 2.0], [4.0, 4.0], [6.0, 6.0], [8.0, 8.0]]") == 2, err


def test_a_number_of_ranks_other_than_torchruns_is_refused(tmp_path):
    file = tmp_path / "three.py"
    file.write_text("from flashlib.ring import processes\nprocesses.run(print, ranks=3)")
    _, err, code = finished(start(*TORCHRUN, "--standalone", str(file)))
    assert code != 0 and "asks for 3 ranks and torchrun has started 2" in err


LONG = """
import signal, time
from flashlib.ring import processes
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
def f(): time.sleep(100)
{before}
print("begun", flush=True)
processes.run(f, ranks=2, seconds=100)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number, wait", [(signal.SIGKILL, 0.0), (signal.SIGKILL, 1.0), (signal.SIGINT, 1.0)])
def test_a_killed_or_interrupted_run_leaves_no_process_and_no_file(number, wait, tmp_path):
    temporary, file = tmp_path / "temporary", tmp_path / "long.py"
    temporary.mkdir()
    file.write_text(LONG.format(before="processes.run(int, ranks=1)" if wait else ""))
    process = start(str(file), TMPDIR=str(temporary), MARK_OF_THE_TEST=str(temporary))
    assert process.stdout.readline() == "begun\n"
    time.sleep(wait)
    process.send_signal(number)
    process.communicate(timeout=60)
    until = time.monotonic() + 60
    while (left := [*having(str(temporary)), *temporary.iterdir()]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def having(value):
    """Return the processes whose environment contains a value."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if value.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(name)
        except OSError:
            pass
    return found
