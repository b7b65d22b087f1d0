"""Run a command and print the CPU seconds of it and all its processes: `python3 tools/cpu.py make test`.

Seconds differ from one machine to another, and on one machine from hour to hour. So it also prints their ratio to
the seconds of a loop of additions, the mean of a loop before and one after the command.
"""

import resource
import subprocess
import sys

LOOP = "s = 0\nfor i in range(10_000_000):\n    s += i"


def seconds(command: list[str]) -> tuple[int, float]:
    """Return the exit status of a command, and the CPU seconds of it and of the processes that it waited for."""
    before = _of_children()
    status = subprocess.run(command).returncode
    return status, _of_children() - before


def _of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    loop = [sys.executable, "-c", LOOP]
    first = seconds(loop)[1]
    status, took = seconds(sys.argv[1:])
    of_loop = (first + seconds(loop)[1]) / 2
    print(
        f"{' '.join(sys.argv[1:])} took {took:.0f} s of CPU, {took / of_loop:.0f} times what a loop of 10,000,000 "
        f"additions takes here ({of_loop:.2f} s)",
        flush=True,
    )
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
