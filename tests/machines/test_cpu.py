"""tools/cpu.py counts the CPU seconds of a command and all its processes, and passes its exit status on."""

import sys

import pytest

from tools import cpu

BUSY = "import time\nwhile time.process_time() < 0.1: pass\n"
STARTS = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"


@pytest.mark.parametrize("code", [BUSY, STARTS], ids=["itself", "what it starts"])
def test_the_seconds_of_all_processes_are_counted(code):
    status, seconds = cpu.seconds([sys.executable, "-c", code])
    assert status == 0 and 0.1 <= seconds < 5


@pytest.mark.parametrize("code, status", [("raise SystemExit(3)", 3), ("import os\nos.kill(os.getpid(), 9)", 137)])
def test_the_ratio_is_printed_and_the_exit_status_passed_on(code, status, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cpu.py", sys.executable, "-c", code])
    monkeypatch.setattr(cpu, "LOOP", "")
    assert cpu.main() == status
    assert " s of CPU, " in capsys.readouterr().out
