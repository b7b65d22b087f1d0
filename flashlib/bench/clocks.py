"""Measure each unit of a Hopper multiprocessor alone, for the model of a pipeline in `flashlib.pipeline`.

    python -m flashlib.bench.clocks --out notebooks/data/h200_clocks.json

A record has `rows`: what was measured ("what", and in "beside" what else was running), for which d and how many
keys per tile, and `clocks` of the multiprocessor, the median of `runs`; for copies, `bytes` per clock. `ghz` is
the clock rate of an idle GPU, and during matrix products, reads from the L2 cache and our Hopper kernel: the
median and every sample. Nothing here was chosen to fit a timeline of the ladder.
"""

import argparse
import functools
import inspect
import time
from collections.abc import Callable, Iterator
from statistics import median

import torch

from flashlib.bench import bandwidth, timelines
from flashlib.bench.common import harness

RUNS = 5  # of each measurement
SHAPES = [(d, B_c) for d in (128, 64) for B_c in (64, 128)]
IN_CACHE = 600  # tiles that all multiprocessors copy: up to 20 MB, which fit in the L2 cache
FIRST = 12  # tiles of 64 rows that a producer requests at once


def rows() -> Iterator[dict]:
    """Yield a row for each measurement."""
    from flashlib.bench import hopper_units  # only when called: Triton may not be installed

    sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    softmax, under, product = ("softmaxes", 0), ("softmaxes", 1), ("products", 1)
    groups = [
        *((f"{n} products", "nothing", ("products", n), ("nothing", 0)) for n in (1, 2, 4)),
        ("1 products", "1 products", product, product),
        ("softmax", "nothing", softmax, ("nothing", 0)),
        ("softmax", "softmax", softmax, softmax),
        ("softmax", "1 products", softmax, product),
        ("softmax under a product", "nothing", under, ("nothing", 0)),
        ("softmax under a product", "1 products", under, product),
    ]
    for d, B_c in SHAPES:
        for what, beside, first, second in groups:
            one = functools.partial(hopper_units.group, first, second, d=d, B_c=B_c)
            yield row(what, one, beside=beside, d=d, B_c=B_c)
        stream = functools.partial(hopper_units.stream, d, B_c, programs=sms, n_tiles=IN_CACHE)
        yield row("copies", stream, "bytes", beside="all multiprocessors", d=d, B_c=B_c)
    yield row("turn", hopper_units.turn)
    for d in (128, 64):
        for what in ("asked", "read"):

            def of_output(d=d, what=what):
                return hopper_units.output(d)[what]

            yield row(f"output {what}", of_output, d=d)
    for what in ("asked", "seen"):
        for n in range(FIRST):

            def of_tile(what=what, n=n):
                return hopper_units.beginning(128, hopper_units.ROWS, programs=sms, n=FIRST)[what][n]

            yield row(
                f"first tile {n} {what}", of_tile, beside="all multiprocessors", d=128, B_c=hopper_units.ROWS
            )


def row(what: str, measure: Callable[[], float], unit: str = "clocks", **of: object) -> dict:
    """Return the results of RUNS measurements, after one that is discarded."""
    measure()
    runs = [round(measure(), 1) for _ in range(RUNS)]
    return {"what": what, **of, unit: median(runs), "runs": runs}


def works() -> dict[str, Callable[[], object]]:
    """Return the kinds of work during which the clock is read, by name: functions that keep the GPU busy."""
    from flashlib.kernels.hopper import forward

    A, B = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    X = bandwidth.numbers(gpu.L2_cache_size * 2 // 5 // (4 * bandwidth.TILE))
    sums = torch.zeros(gpu.multi_processor_count * bandwidth.PROGRAMS, device="cuda")

    def attention(Q, K, V):
        return lambda: forward.attention(Q, K, V)

    long = [torch.randn(4, 16, 4096, 128, dtype=torch.bfloat16, device="cuda") for _ in range(3)]
    return {
        "nothing": lambda: time.sleep(0.001),
        "matrix products": lambda: A @ B,
        "reads from the L2 cache": lambda: bandwidth.read(X, sums, 20),
        "our kernel, d = 128, N = 1024": attention(*timelines.inputs(128)),
        "our kernel, d = 64, N = 1024": attention(*timelines.inputs(64)),
        "our kernel, d = 128, N = 4096": attention(*long),
    }


def ghz(work: Callable[[], object], ms: float = 60) -> list[float]:
    """Return samples of a multiprocessor's clock rate in GHz while work() runs on the others."""
    from flashlib.bench import hopper_units

    for _ in range(5):
        work()
    torch.cuda.synchronize()
    beside, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(beside):
        found = hopper_units.watch(ms)
        done.record()
    while not done.query():
        for _ in range(8):
            work()
        torch.cuda.current_stream().synchronize()
    torch.cuda.synchronize()
    nanos, clocks = found.double().diff(dim=0).T
    return [round(value, 3) for value in (clocks / nanos).tolist()]


def sources() -> dict[str, str]:
    """Return a hash of the syntax of the timed kernels; see `timelines.hash_of`."""
    from flashlib.bench import hopper_units

    return {"units": timelines.hash_of(inspect.getsource(hopper_units))}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.clocks", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    args = parser.parse_args()
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "The units are timed on a GPU of compute capability 9.0; torch finds none.\n")
    record = harness.environment() | {"source": sources(), "rows": [], "ghz": []}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items() if not isinstance(value, list)))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    for found in rows():
        record["rows"].append(found)
        harness.say(found)
        save()
    for beside, work in works().items():
        samples = ghz(work)
        record["ghz"].append({"beside": beside, "ghz": median(samples), "runs": samples})
        harness.say(record["ghz"][-1])
    save()


if __name__ == "__main__":
    main()
