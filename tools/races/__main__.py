"""Run small calls of our kernels under two sanitizers, on a Hopper GPU: python -m tools.races --out FILE

racecheck, of CUDA's compute-sanitizer, finds two threads of a program that use the same shared memory with no
barrier between them. ConSan, of Triton, is compiled into the kernels: it follows which copy or product still uses
a slot, which barriers end that, and whether all roles wait for each other. Neither sees races in the GPU's memory.
Each call is a process of its own. A sanitizer's silence counts only if it finds the race that was planted for it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from flashlib.bench.common import harness

PLANTED = "a planted race"
RACECHECK = "compute-sanitizer", "--tool=racecheck", "--racecheck-detect-level=error", "--error-exitcode=9"
SANITIZERS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {  # what comes before the command, variables
    "consan": ((), {"TRITON_INSTRUMENTATION_MODE": "consan", "CUDA_LAUNCH_BLOCKING": "1"}),
    "racecheck": (RACECHECK, {}),
}
SAID = re.compile(r"(?:Assertion .*failed|========= (?:Error|Warning|Internal).*|\w*Error: .*)")
CUT = 200  # characters of what was said


class Found(NamedTuple):
    """What became of a call. found: "nothing", "a race", "an error" or "no end" within the limit; said: why."""

    sanitizer: str
    call: str
    found: str
    said: str
    seconds: float


def examine(sanitizer: str, call: str, limit: float) -> Found:
    """Run a call in a process under a sanitizer, for at most `limit` seconds."""
    before, variables = SANITIZERS[sanitizer]
    command = [*before, sys.executable, "-m", "tools.races", "--call", call, "--sanitizers", sanitizer]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, timeout=limit, errors="replace"
        )
        found, said = verdict(done.returncode, done.stdout + done.stderr)
    except subprocess.TimeoutExpired:
        found, said = "no end", ""
    return Found(sanitizer, call, found, said, round(time.perf_counter() - start, 1))


def verdict(status: int, text: str) -> tuple[str, str]:
    """Return what a process found, from its exit status and what it printed, and the words that say so."""
    said = [match[0] for match in SAID.finditer(text)]
    if status == 0:
        return "nothing", ""
    race = "RACECHECK SUMMARY" in text and status == 9 or any(words.startswith("Assertion") for words in said)
    return ("a race" if race else "an error"), (said or [""])[0][:CUT]


def run_call(call: str, sanitizer: str) -> None:
    """Run a call in this process."""
    import torch
    import triton

    from tools.races import calls

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    torch.manual_seed(0)
    (calls.PLANTED[sanitizer] if call == PLANTED else calls.CALLS[sanitizer][call])()
    torch.cuda.synchronize()


def run(sanitizers: Iterable[str], words: list[str], processes: int, limit: float) -> list[Found]:
    """Examine the calls with one of these words, or all, and a planted race, under each sanitizer."""
    from tools.races import calls

    asked = [
        (sanitizer, name)
        for sanitizer in sanitizers
        for name in (PLANTED, *calls.CALLS[sanitizer])
        if name == PLANTED or not words or any(word in name for word in words)
    ]
    with ThreadPoolExecutor(processes) as pool:
        results = []
        for result in pool.map(lambda of: examine(*of, limit), asked):
            results.append(result)
            if result.found != "nothing":
                harness.say(
                    f"{result.sanitizer}, {result.call}: {result.found} ({result.seconds} s) {result.said}"
                )
    return results


def wrong(results: list[Found]) -> list[Found]:
    """Return the calls with a race or an error, and planted races that were not found."""
    return [
        of
        for of in results
        if (of.found != "a race" if of.call == PLANTED else of.found in ("a race", "an error"))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sanitizers", nargs="+", default=list(SANITIZERS), choices=list(SANITIZERS))
    parser.add_argument("--calls", nargs="*", default=[], metavar="WORD", help="only calls with such a word")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--limit", type=float, default=400, help="seconds for a call")
    parser.add_argument("--call", help="run this call in this process")
    parser.add_argument("--out", type=Path, help="write what was found to this file, as JSON")
    asked = parser.parse_args()
    if asked.call:
        run_call(asked.call, asked.sanitizers[0])
        return 0
    if "racecheck" in asked.sanitizers and not shutil.which(RACECHECK[0]):
        parser.error("compute-sanitizer is not on the PATH: install the CUDA toolkit, or pass --sanitizers consan")
    results = run(asked.sanitizers, asked.calls, asked.processes, asked.limit)
    if asked.out:
        harness.write(asked.out, {**harness.environment(), "rows": [result._asdict() for result in results]})
    bad = wrong(results)
    harness.say(
        f"{len(results)} calls, {len(bad)} wrong, {sum(of.found == 'no end' for of in results)} without an end"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
