"""Rows say what was measured on a multiprocessor; with made-up clocks."""

import contextlib
import itertools
import json
from types import SimpleNamespace

import pytest
import torch

from flashlib.bench import clocks, hopper_units
from tests.bench import recorded

RECORD = json.loads((recorded.DATA / "h200_clocks.json").read_text(encoding="utf-8"))
SMS = 7


@pytest.fixture
def measured(monkeypatch):
    """The calls of `hopper_units`, each of which returns a different number."""
    calls, numbers = [], itertools.count()

    def one(name):
        def call(*args, **options):
            calls.append((name, args, options))
            return float(next(numbers))

        return call

    def parts(name, *fields):
        def call(*args, **options):
            calls.append((name, args, options))
            n = options.get("n")
            return {field: 10.0 * at if n is None else [10.0 * at + k for k in range(n)]
                    for at, field in enumerate(fields)}  # fmt: skip

        return call

    for name in ("group", "stream", "turn"):
        monkeypatch.setattr(hopper_units, name, one(name))
    monkeypatch.setattr(hopper_units, "output", parts("output", "asked", "read"))
    monkeypatch.setattr(hopper_units, "beginning", parts("beginning", "asked", "seen"))
    here = SimpleNamespace(multi_processor_count=SMS)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: here)
    return calls


def said_of(work):
    """Return how a row names what a group does."""
    kind, n = work
    if kind == "softmaxes":
        return "softmax under a product" if n else "softmax"
    return f"{n} products" if kind == "products" else kind


def test_a_row_names_what_was_called_and_the_rows_are_those_of_the_record(measured):
    found = []
    for row in clocks.rows():
        calls, measured[:] = list(measured), []
        assert len(calls) == 1 + clocks.RUNS and all(call == calls[0] for call in calls), row
        (name, args, options), what = calls[0], row["what"]
        if name == "group":
            beside = said_of(args[1]) if args[1][0] != "softmaxes" or not args[1][1] else what
            assert (what, row["beside"], options) == (said_of(args[0]), beside, {k: row[k] for k in ("d", "B_c")})
        elif name == "stream":
            assert what == "copies" and args == (row["d"], row["B_c"]) and options["programs"] == SMS
            tiles = options["n_tiles"] * row["d"] * row["B_c"] * 2
            assert max(48 * 2**10 * SMS, 2**20) < tiles < 25e6  # more than slots hold, less than the L2 cache
        elif name == "output":
            assert args == (row["d"],) and row["clocks"] == {"output asked": 0, "output read": 10}[what]
        elif name == "beginning":
            assert args == (row["d"], row["B_c"]) and options == {"programs": SMS, "n": clocks.FIRST}
            _, _, number, which = what.split()
            assert row["clocks"] == {"asked": 0, "seen": 10}[which] + int(number)
        else:
            assert name == what == "turn"
        found.append({key: value for key, value in row.items() if key not in ("clocks", "bytes", "runs")})
        assert ("bytes" in row) == (name == "stream")
    kept = ("what", "beside", "d", "B_c")
    assert found == [{key: row[key] for key in kept if key in row} for row in RECORD["rows"]]


def test_the_median_of_the_runs_after_the_first_counts():
    times = iter([1000.0, 5.0, 1.04, 3.0, 9.0, 2.0])
    row = clocks.row("turn", lambda: next(times), "clocks", d=64)
    assert row == {"what": "turn", "d": 64, "clocks": 3.0, "runs": [5.0, 1.0, 3.0, 9.0, 2.0]}


def test_gigahertz_are_clocks_per_nanosecond_while_the_others_work(monkeypatch):
    worked = []
    done = SimpleNamespace(record=lambda: None, query=lambda: len(worked) > 20)
    fakes = {
        "Stream": lambda: None, "Event": lambda: done, "stream": lambda stream: contextlib.nullcontext(),
        "synchronize": lambda: None, "current_stream": lambda: SimpleNamespace(synchronize=lambda: None),
    }  # fmt: skip
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(hopper_units, "watch", lambda ms: torch.tensor([[10, 7], [20, 25], [30, 45]]))
    assert clocks.ghz(lambda: worked.append(1)) == [1.8, 2.0] and len(worked) > 20


def simulated(kind, times, n, q, k, S):
    """Return the sum that a group of `hopper_units` writes, step by step in fp64."""
    q, k, S = q.double(), k.double(), S.double()
    acc = torch.zeros(len(q), len(k), dtype=torch.float64)
    if kind == "products":
        for _ in range(times * n):
            acc += q @ k.T
        return acc.sum().item()
    P = torch.exp2(hopper_units.SCALE * (S - S.max(dim=1).values[:, None]))
    l, O_acc = P.sum(dim=1), torch.zeros(len(S), k.shape[1], dtype=torch.float64)
    for _ in range(times):
        O_acc += n * (P @ k)
        l += P.sum(dim=1)
    return (l.sum() + O_acc.sum()).item()


@pytest.mark.parametrize("kind, n", [("products", 1), ("products", 3), ("softmaxes", 0), ("softmaxes", 1)])
def test_a_group_is_right_to_within_a_percent(kind, n):
    q, k, S = (torch.rand(shape, generator=torch.Generator().manual_seed(0)) for shape in ((5, 7), (6, 7), (5, 6)))
    right = simulated(kind, 4, n, q, k, 9 * S)
    for factor in (1, 0.995, 1.005):
        hopper_units.check(factor * right, kind, 4, n, q, k, 9 * S)
    for wrong in (0.98 * right, 1.02 * right, -right, float("nan")):
        with pytest.raises(AssertionError, match="a group's sum is .*, and should be"):
            hopper_units.check(wrong, kind, 4, n, q, k, 9 * S)


def test_the_clocks_of_a_launch_are_divided_by_its_work(monkeypatch):
    """Launches write made-up clocks: 1000 for each piece of work, of program or group 0."""

    def launched(kernel, write):
        monkeypatch.setattr(hopper_units, kernel, {(n,): write for n in (1, 3)})

    monkeypatch.setattr(hopper_units, "DEVICE", "cpu")
    monkeypatch.setattr(hopper_units, "describe", lambda X, rows: X)
    monkeypatch.setattr(hopper_units, "check", lambda *given: None)
    launched("_turns", lambda clocks, times, **_: clocks.copy_(torch.tensor([2000 * times, 1])))
    assert hopper_units.turn() == 1000
    launched("_groups", lambda q, k, S, clocks, *rest, **_: clocks.fill_(1000 * hopper_units.TIMES))
    assert hopper_units.group(("products", 1), d=16, B_c=8) == 1000
    launched(
        "_stream", lambda X, clocks, tiles, times, stages, **_: clocks.copy_(times * torch.tensor([50, 60, 70]))
    )
    assert hopper_units.stream(16, 8, programs=3, n_tiles=4, times=20) == 8 * 16 * 2 / 60

    def began(X, clocks, n, **_):
        assert len(X) == 3 * n * 8
        clocks.copy_(torch.tensor([[100, 110, 130, 150, 190], [0, 20, 40, 60, 80], [7, 10, 17, 27, 37]]))

    launched("_beginning", began)
    assert hopper_units.beginning(16, 8, programs=3, n=2) == {"asked": [10, 30], "seen": [50, 80]}

    def wrote(X, clocks, times, **_):
        X.fill_(2.0**times)
        clocks.copy_(torch.tensor([[200, 700]]).expand(times, 2))

    launched("_output", wrote)
    assert hopper_units.output(16) == {"asked": 200, "read": 700}
    launched("_output", lambda X, clocks, times, **_: X.fill_(2.0 ** (times - 1)))
    with pytest.raises(AssertionError, match="O is not what was written"):
        hopper_units.output(16)


@pytest.mark.parametrize(
    "second, times", [(("products", 1), hopper_units.TIMES), (("softmaxes", 0), hopper_units.LONGER)]
)
def test_work_beside_another_kind_lasts_longer(second, times, monkeypatch):
    checked = []
    monkeypatch.setattr(hopper_units, "DEVICE", "cpu")
    monkeypatch.setattr(hopper_units, "describe", lambda X, rows: X)
    monkeypatch.setattr(hopper_units, "check", lambda given, kind, times, n, *_: checked.append((kind, n, times)))
    launched = []
    monkeypatch.setattr(hopper_units, "_groups", {(1,): lambda *given, **_: launched.append(given[6:])})
    hopper_units.group(("products", 1), second, d=16, B_c=8)
    assert launched == [("products", 1, hopper_units.TIMES, *second, times)]
    assert checked == [("products", 1, hopper_units.TIMES), (*second, times)]
