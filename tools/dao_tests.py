"""Run the tests of flash_attn 2.8.3 against our stand-in for it: python -m tools.dao_tests --out FILE

The tests, and what they import besides the package's functions, are fetched by hash from
Dao-AILab/flash-attention, and are not part of this repository. `dao_cases` selects the cases. They run on GPUs, in
several processes; --cpu N runs the N smallest cases of each test in the interpreter, without rotary embedding,
whose kernel is the package's own. einops must be installed. The assertions of the tests are unchanged. A run of
some tests (--tests varlen kvcache), or one that ended at a limit, replaces the rows of those tests in FILE; "left"
counts the cases that did not run.
"""

import argparse
import collections
import contextlib
import hashlib
import io
import json
import multiprocessing
import sys
import time
import types
import urllib.request
from pathlib import Path

import pytest
import torch

from flashlib.bench.common import harness
from flashlib.interop import flash_attn
from tools import dao_cases

COMMIT = "060c9188beec3a8b62b33a3bfa6d5d2d44975fab"  # v2.8.3
SOURCE = "https://raw.githubusercontent.com/Dao-AILab/flash-attention"
TESTS = "tests/test_flash_attn.py"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
FILES = {
    TESTS: "81b462f864efa01bdd31e826339b881754f03822f65d39ad9a1351da6abd2ba0",
    "flash_attn/bert_padding.py": "805d449ac749f87a50f3a3114385710f0f926ff45521275000b74d9e80721e5c",
    "flash_attn/layers/__init__.py": EMPTY,
    "flash_attn/layers/rotary.py": "a79cb42dfc33e126227bdba27ae7a024d7d5cc5c8fd7f7a5f26c68d501024e0a",
    "flash_attn/ops/__init__.py": EMPTY,
    "flash_attn/ops/triton/__init__.py": "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b",
    "flash_attn/ops/triton/rotary.py": "d2037e623854c702fb075784fe4292d4a89d6b9ac1ae33cab3d6788f8f94f240",
}
LINE = "{test:40} {cases:5} cases {passed:5} passed {failed:5} failed {left:5} left {seconds:7} s"
SHOWN = 40  # failures that are printed in full
PATIENCE = 20  # times that a case is tried again for lack of memory
KEPT = 2 * 2**30  # bytes of GPU memory that a process keeps between two cases


def fetched(folder: Path, source: str = f"{SOURCE}/{COMMIT}", files: dict[str, str] = FILES) -> Path:
    """Return the folder with the files, and fetch missing ones; raise ValueError for unexpected contents."""
    for name, expected in files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with urllib.request.urlopen(f"{source}/{name}", timeout=60) as answer:
                path.write_bytes(answer.read())
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != expected:
            raise ValueError(f"{path} has the hash {found}, not {expected}: delete it and try again")
    return folder


def tests_of(folder: Path, device: str = "cuda") -> dict:
    """Return the tests by their names, with our functions under the package's name."""
    flash_attn.stand_in()
    flash_attn.__path__.append(str(folder / "flash_attn"))
    source = (folder / TESTS).read_text(encoding="utf-8")
    if device == "cpu":  # the tests name the device, and query its capability
        source = source.replace('"cuda"', '"cpu"')
        torch.cuda.get_device_capability = lambda *_: (9, 0)
    module = types.ModuleType("dao_tests")
    exec(compile(source, str(folder / TESTS), "exec"), vars(module))
    return {name: test for name, test in vars(module).items() if name.startswith("test_")}


def outcome(test, case: dict) -> str:
    """Return "passed", "skipped", or what went wrong."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            test(**case)
    except pytest.skip.Exception:
        return "skipped"
    except Exception as error:  # whatever a test, a compiler or a driver raises
        return f"{harness.reason(error)} (line {_line(error)})"
    return "passed"


def _line(error):
    """Return the line of the tests where an error was raised."""
    lines, at = [], error.__traceback__
    while at:
        if at.tb_frame.f_code.co_filename.endswith(TESTS):
            lines.append(at.tb_lineno)
        at = at.tb_next
    return lines[-1] if lines else "?"


def selection(tests: dict) -> dict[str, list[dict]]:
    """Return the cases of each test."""
    given = {name: dao_cases.parameters(tests[name]) for name in dao_cases.SHARES}
    table = dao_cases.rows(list(given.values()))
    return {name: dao_cases.chosen(name, of, table) for name, of in given.items()}


def tasks(chosen: dict[str, list[dict]]) -> list[tuple[str, list[dict]]]:
    """Group the cases into tasks of one process each, those with the same kernels together; the longest first."""
    found = collections.defaultdict(list)
    for name, cases in chosen.items():
        for case in cases:
            kernel = tuple((n, str(case[n])) for n in dao_cases.KERNEL if n in case)
            found[name, kernel].append(case)
    longest = sorted(found.items(), key=lambda item: -sum(map(dao_cases.scores, item[1])))
    alone = {name for name in dao_cases.ONCE}
    return [(name, [case]) for (name, _), cases in longest if name in alone for case in cases] + [
        (name, cases) for (name, _), cases in longest if name not in alone
    ]


def work(number: int, folder: Path, todo, done) -> None:
    """Run tasks in a worker process until there are no more; its number decides which GPU it uses."""
    torch.cuda.set_device(number % torch.cuda.device_count())
    tests = tests_of(folder)
    while (task := todo.get()) is not None:
        name, cases = task
        for case in cases:
            start = time.perf_counter()
            became = outcome(tests[name], case)
            for _ in range(PATIENCE):
                if "out of memory" not in became.lower():
                    break
                torch.cuda.empty_cache()  # another process may be using it for a moment
                time.sleep(1)
                became = outcome(tests[name], case)
            done.put((name, case, became, time.perf_counter() - start))
            if torch.cuda.memory_reserved() > KEPT:
                torch.cuda.empty_cache()
    done.put(None)


def run(folder: Path, processes: int, limit: float, words: list[str]) -> list[dict]:
    """Run cases in processes on all GPUs, for at most `limit` seconds; return the rows of the record.

    words: run only tests whose names contain one of them.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("torch finds no CUDA device here: run some cases with --cpu 2")
    context = multiprocessing.get_context("spawn")  # a process that has queried the GPUs cannot be forked
    todo, done = context.Queue(), context.Queue()
    given = folder, todo, done
    workers = [context.Process(target=work, args=(n, *given), daemon=True) for n in range(processes)]
    for worker in workers:
        worker.start()
    chosen = some(selection(tests_of(folder)), words)
    for task in [*tasks(chosen), *[None] * processes]:
        todo.put(task)
    results, left, end = Results(chosen), processes, time.monotonic() + limit
    while left and (rest := end - time.monotonic()) > 0:
        with contextlib.suppress(Exception):  # queue.Empty
            item = done.get(timeout=min(rest, 5))
            left -= item is None
            results.add(item)
        if not any(worker.is_alive() for worker in workers) and done.empty():
            break
    for worker in workers:
        worker.kill()
    return results.rows()


def some(chosen: dict[str, list[dict]], words: list[str]) -> dict[str, list[dict]]:
    """Return the cases of tests whose names contain one of these words, or of all tests if there are no words."""
    return {name: cases for name, cases in chosen.items() if not words or any(word in name for word in words)}


class Results:
    """The outcomes of the cases of each test."""

    def __init__(self, chosen: dict[str, list[dict]]) -> None:
        self.chosen = chosen
        self.counts: dict = {name: collections.Counter() for name in chosen}
        self.seconds: dict = collections.defaultdict(float)
        self.failures: list[str] = []

    def add(self, item: tuple | None) -> None:
        if item is None:
            return
        name, case, became, seconds = item
        self.counts[name][became if became in ("passed", "skipped") else "failed"] += 1
        self.seconds[name] += seconds
        if became not in ("passed", "skipped"):
            self.failures.append(f"{name}({case}): {became}")
            if len(self.failures) <= SHOWN:
                harness.say(self.failures[-1])

    def rows(self) -> list[dict]:
        """Return the rows of the record."""
        return [self._row(name, len(cases)) for name, cases in self.chosen.items()]

    def _row(self, name, cases):
        counts = {became: self.counts[name][became] for became in ("passed", "failed", "skipped")}
        row = {"test": name, "cases": cases, **counts, "left": cases - sum(counts.values())}
        return row | {"seconds": round(self.seconds[name], 1)}


def run_on_cpu(folder: Path, most: int, words: list[str]) -> list[dict]:
    """Run the smallest cases of each test in the interpreter."""
    tests = tests_of(folder, "cpu")
    chosen = some(selection(tests), words)
    for name, cases in chosen.items():
        own = [case for case in cases if not case.get("rotary_fraction")]
        chosen[name] = sorted(own, key=dao_cases.scores)[:most]
    chosen.pop("test_flash_attn_race_condition", None)  # of programs that run at the same time
    results = Results(chosen)
    for name, cases in chosen.items():
        for case in cases:
            start = time.perf_counter()
            results.add((name, case, outcome(tests[name], case), time.perf_counter() - start))
    return results.rows()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=Path("build/dao"), help="where the package's files are")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--tests", nargs="*", default=[], metavar="WORD", help="only tests named so")
    parser.add_argument("--limit", type=float, default=3600, help="stop after so many seconds")
    parser.add_argument("--cpu", type=int, metavar="N", help="run N cases of each test in the interpreter")
    parser.add_argument("--out", type=Path, help="write the results to this file, as JSON")
    asked = parser.parse_args()
    folder = fetched(asked.folder)
    if asked.cpu:
        rows = run_on_cpu(folder, asked.cpu, asked.tests)
    else:
        rows = run(folder, asked.processes, asked.limit, asked.tests)
    for row in rows:
        harness.say(LINE.format(**row))
    if asked.out:
        record(asked.out, rows)
    passed, cases = (sum(row[name] for row in rows) for name in ("passed", "cases"))
    harness.say(f"{passed} of {cases} cases passed")
    return int(passed < cases)


def record(path: Path, rows: list[dict]) -> None:
    """Write rows to a record, replacing those of the same tests; each row says where it ran."""
    ran = {row["test"]: row | harness.environment() for row in rows if row["left"] < row["cases"]}
    before = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    kept = {row["test"]: row for row in before}
    harness.write(path, {"commit": COMMIT, "rows": [row for _, row in sorted((kept | ran).items())]})


if __name__ == "__main__":
    sys.exit(main())
