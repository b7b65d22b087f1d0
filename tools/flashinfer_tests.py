"""Run tests of FlashInfer 0.6.17 against our kernels: python -m tools.flashinfer_tests --out FILE

The tests are fetched by hash from flashinfer-ai/flashinfer, and are not part of this repository.
`flashinfer_stand_in` takes the place of the package, and `flashinfer_cases` selects the cases. They run on GPUs,
in several processes; --cpu N runs N small cases of each test in the interpreter. einops must be installed. The
assertions of the tests are unchanged. A case passes only if they hold: one that needs an option which our kernels
do not take is counted by that option, and one that the test skips is counted separately.
"""

import argparse
import collections
import contextlib
import io
import multiprocessing
import sys
import time
import types
from pathlib import Path

import pytest
import torch

from flashlib.bench.common import harness
from tools import dao_tests, flashinfer_cases, flashinfer_stand_in
from tools.flashinfer_stand_in.options import NotTaken

COMMIT = "a0a6b019b9b27d49d209f85d028a1ae5a9b347d7"  # v0.6.17
SOURCE = "https://raw.githubusercontent.com/flashinfer-ai/flashinfer"
ATTENTION = "tests/attention/test_{}.py"
TESTS = {
    "alibi": "e3dfffedace0f0fcf460ed72506184c65496dfef42838468ba7a206533231e17",
    "attention_sink": "fb59f9697ade1241f82fbdf7e7cb45209606a9657114d47a59a2150f5694ff56",
    "batch_decode_kernels": "ec254a64898458e255492baeebe3f15a31930954afaf3bb460f5fdbca0cbceae",
    "batch_prefill_kernels": "1344edd866252a439bfad0f46bf6e8c88b8d2f5b8d7014fc213997d083baa3d4",
    "decode_prefill_lse": "02aa902cb6296efd710eb8f4c0271a1fec6dfca573a92f0b100d8eb3da7f9cfe",
    "hopper": "604ec39613ba8012490e212b574d3ded431de2857eb5e21864aa32611ea1f4ee",
    "logits_cap": "af08f06b11ed09295dd408ab97569c20ae37fa9bb200e1c1db0080c0e7127273",
    "non_contiguous_decode": "79f67f741f99a8c4e2f3011fd9699ac7905e7e9db3949083649f6a9a160c096f",
    "non_contiguous_prefill": "09a8139737e52b30934690aa9792b2cb7841c1eedf08c5f43c8c5314b563305d",
    "page": "6320e3bc492642592d9d0dfcfdb0532f460c26183a19dee4d27abb4b169c1a48",
    "shared_prefix_kernels": "a90e2e2eb20e5f8d2920b3702cb71e9e750bea80a444fd2209b7e75db7425f34",
    "single_prefill": "da2a6fcaa81cb0efd1882793ddbcf5efc2db983dc31d4838198e921e496d3072",
    "sliding_window": "a7715c6f0a33df1f0b45e1d6f0e5f2ec628e5c93769f24e4e70a99319de4010b",
    "tensor_cores_decode": "62f913af5e7e86b9e516224507a615e7955ccc519a951b4036c3fc5185d836c7",
}
FILES = {ATTENTION.format(name): found for name, found in TESTS.items()} | {
    "tests/test_helpers/__init__.py": dao_tests.EMPTY,
    "tests/test_helpers/alibi_reference.py": "22b2a2b28534e5bf2684f5da6ae587efe0fa46e88abb7c982f251517945786f2",
    "tests/test_helpers/sink_attention_reference.py": (
        "606597c44310b2ecd27135ba3eabf5be92d492e505a94810b76aed4c86b511de"
    ),
    "tests/test_helpers/test_helpers.py": "0e9ba95021ad9b4e08db4788f7f7d76a7f28d4a168fb0a39c890ae84a3168144",
}
LINE = "{file:24} {cases:4} cases {passed:4} passed {failed:4} failed {left:4} left {seconds:7} s"
SHOWN = 40  # failures that are printed in full
KEPT = 2 * 2**30  # bytes of GPU memory that a process keeps between two cases
ON_CPU = (9, 0)  # the compute capability that tests are told there

Tests = dict[str, dict]  # the tests of each file, by their names


def tests_of(folder: Path, device: str = "cuda") -> Tests:
    """Return the tests, with our functions under the package's name."""
    flashinfer_stand_in.stand_in()
    helpers = str(folder / "tests")
    if helpers not in sys.path:
        sys.path.append(helpers)  # they are imported as test_helpers: `tests` is the name of our own
    for name in ("jit_utils", "utils_fp4"):
        flashinfer_stand_in.add(f"test_helpers.{name}", {})
    if device == "cpu":
        torch.cuda.get_device_capability = lambda *_: ON_CPU
    return {name: _of_file(folder / ATTENTION.format(name), device) for name in TESTS}


def _of_file(path, device):
    """Return the tests of a file."""
    source = path.read_text(encoding="utf-8").replace("from tests.test_helpers", "from test_helpers")
    if device == "cpu":  # the tests name the device
        for word in ('"cuda:0"', '"cuda"'):
            source = source.replace(word, '"cpu"')
        source = source.replace(".to(0)", '.to("cpu")')
    module = types.ModuleType(path.stem)
    exec(compile(source, str(path), "exec"), vars(module))
    return {name: test for name, test in vars(module).items() if name.startswith("test_")}


def outcome(test, case: dict) -> tuple[str, str]:
    """Return "passed", "failed", "not taken" or "skipped", and why."""
    torch.manual_seed(0)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            test(**case)
    except NotTaken as error:
        return "not taken", str(error)
    except (pytest.skip.Exception, pytest.xfail.Exception) as error:
        return "skipped", str(error)
    except Exception as error:  # whatever a test, a compiler or a driver raises
        return "failed", f"{harness.reason(error)} (line {_line(error)})"
    return "passed", ""


def _line(error):
    """Return the line of the tests where an error was raised."""
    lines, at = [], error.__traceback__
    while at:
        if "tests/attention" in at.tb_frame.f_code.co_filename:
            lines.append(at.tb_lineno)
        at = at.tb_next
    return lines[-1] if lines else "?"


def selection(tests: Tests, words: list[str]) -> list[tuple[str, str, dict]]:
    """Return the cases, (file, test, case), of files whose names contain one of these words, or of all."""
    return [
        (file, name, case)
        for file, of_file in tests.items()
        if not words or any(word in file for word in words)
        for name, test in of_file.items()
        if not flashinfer_cases.left_out(name)
        for case in flashinfer_cases.chosen(name, test)
    ]


def tasks(cases: list[tuple[str, str, dict]]) -> list[list[tuple[str, str, dict]]]:
    """Group cases into tasks of one process each, those with the same kernels together; the longest first."""
    found = collections.defaultdict(list)
    for file, name, case in cases:
        kernel = tuple(str(case.get(parameter)) for parameter in flashinfer_cases.KERNEL)
        found[file, name, kernel].append((file, name, case))
    return sorted(found.values(), key=len, reverse=True)


LOADED: Tests = {}  # the tests of a worker process


def prepare(folder: Path, numbers) -> None:
    """Make a worker process ready; its number decides which GPU it uses."""
    torch.cuda.set_device(numbers.get() % torch.cuda.device_count())
    LOADED.update(tests_of(folder))


def work(task: list[tuple[str, str, dict]]) -> list[tuple]:
    """Run the cases of a task in a worker process; return (file, test, case, outcome, why, seconds) of each."""
    done = []
    for file, name, case in task:
        start = time.perf_counter()
        done.append((file, name, case, *outcome(LOADED[file][name], case), time.perf_counter() - start))
        if torch.cuda.is_available() and torch.cuda.memory_reserved() > KEPT:
            torch.cuda.empty_cache()
    return done


def run(folder: Path, processes: int, limit: float, words: list[str]) -> "Results":
    """Run cases in processes on all GPUs, for at most `limit` seconds."""
    if not torch.cuda.is_available():
        raise RuntimeError("torch finds no CUDA device here: run some cases with --cpu 1")
    context = multiprocessing.get_context("spawn")  # a process that has queried the GPUs cannot be forked
    numbers = context.Queue()
    for number in range(processes):
        numbers.put(number)
    end = time.monotonic() + limit
    cases = selection(tests_of(folder), words)
    results = Results(cases)
    with context.Pool(processes, prepare, (folder, numbers)) as pool:
        done, todo = pool.imap_unordered(work, tasks(cases)), len(tasks(cases))
        with contextlib.suppress(multiprocessing.TimeoutError):
            for _ in range(todo):
                for item in done.next(max(end - time.monotonic(), 0)):
                    results.add(*item)
    return results


def run_on_cpu(folder: Path, most: int, words: list[str]) -> "Results":
    """Run the smallest cases of each test in the interpreter."""
    LOADED.update(tests_of(folder, "cpu"))
    of_tests = collections.defaultdict(list)
    for file, name, case in selection(LOADED, words):
        of_tests[file, name].append((file, name, case))
    some = [smallest(cases, most) for cases in of_tests.values()]
    results = Results([case for cases in some for case in cases])
    for cases in some:
        for item in work(cases):
            results.add(*item)
    return results


def smallest(cases: list[tuple[str, str, dict]], most: int) -> list[tuple[str, str, dict]]:
    """Return at most so many cases that the stand-in takes, the smallest, and all that it refuses.

    Those with a single key come last: its weight is 1, whatever the score.
    """

    def rank(of):
        return flashinfer_cases.lengths(of[2])[1] == 1, flashinfer_cases.size(of[2])

    refused = [of for of in cases if flashinfer_cases.refused(of[2])]
    taken = [of for of in cases if of not in refused]
    return sorted(taken, key=rank)[:most] + refused


class Results:
    """The outcomes of the cases of each file."""

    def __init__(self, cases: list[tuple[str, str, dict]]) -> None:
        self.cases = collections.Counter(file for file, *_ in cases)
        self.counts: dict = collections.defaultdict(collections.Counter)  # by outcome
        self.reasons: dict = collections.defaultdict(collections.Counter)  # of those not taken
        self.seconds: dict = collections.defaultdict(float)
        self.failures = 0

    def add(self, file: str, name: str, case: dict, became: str, why: str, seconds: float) -> None:
        self.counts[file][became] += 1
        self.seconds[file] += seconds
        if became == "not taken":
            self.reasons[file][why] += 1
        if became == "failed":
            self.failures += 1
            if self.failures <= SHOWN:
                harness.say(f"{file}: {name}({case}): {why}")

    def rows(self) -> list[dict]:
        """Return the rows of the record, one for each file."""
        return [self._row(file, cases) for file, cases in self.cases.items()]

    def _row(self, file, cases):
        counts = {became: self.counts[file][became] for became in ("passed", "failed", "skipped")}
        refused = dict(sorted(self.reasons[file].items()))
        left = cases - sum(counts.values()) - sum(refused.values())
        row = {"file": file, "cases": cases, **counts, "left": left, "not_taken": refused}
        return row | {"seconds": round(self.seconds[file], 1)}


def show(rows: list[dict], tests: Tests) -> None:
    """Print what became of each file: cases, and by reason those not taken, and tests of which no case runs."""
    for row in rows:
        harness.say(LINE.format(**row))
        without = [flashinfer_cases.left_out(name) for name in tests[row["file"]]]
        reasons = collections.Counter(reason for reason in without if reason)
        for reason, n in row["not_taken"].items():
            harness.say(f"    not taken: {reason}: {n} cases")
        if row["skipped"]:
            harness.say(f"    skipped by the test: {row['skipped']} cases")
        for reason, n in reasons.items():
            harness.say(f"    not run: {reason}: {n} tests")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=Path("build/flashinfer"), help="where the tests are")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--files", nargs="*", default=[], metavar="WORD", help="only files named so")
    parser.add_argument("--limit", type=float, default=240, help="stop after so many seconds")
    parser.add_argument("--cpu", type=int, metavar="N", help="run N small cases of each test in the interpreter")
    parser.add_argument("--out", type=Path, help="write the results of a GPU to this file, as JSON")
    asked = parser.parse_args()
    if asked.cpu and asked.out:
        parser.error("--cpu and --out are given: a record says on which GPU the tests ran")
    folder = dao_tests.fetched(asked.folder, f"{SOURCE}/{COMMIT}", FILES)
    if asked.cpu:
        rows = run_on_cpu(folder, asked.cpu, asked.files).rows()
    else:
        rows = run(folder, asked.processes, asked.limit, asked.files).rows()
    show(rows, LOADED or tests_of(folder))
    if asked.out:
        harness.write(asked.out, {"commit": COMMIT, **harness.environment(), "rows": rows})
    passed, failed, left = (sum(row[name] for row in rows) for name in ("passed", "failed", "left"))
    harness.say(f"{passed} cases passed, {failed} failed, {left} left")
    return int(failed + left > 0 or not passed)


if __name__ == "__main__":
    sys.exit(main())
