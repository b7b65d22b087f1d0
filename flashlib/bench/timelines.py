"""Record the time of each event in the Hopper kernels: the multiprocessor's clock in two programs.

    python -m flashlib.bench.timelines --out notebooks/data/h200_timelines.json

A record has `rows`, one for each kernel that `pipeline.measured` models: rungs of `kernels.hopper.ladder`, and the
kernel itself ("forward"), at d = 64 and 128, for 33 heads with 1024 rows and keys. `points` are the marks in the
kernel, [kind, what]; a program's `marks` are [clock, number of the point] by role, and `blocks` the number of
tiles of each row block that it computes. `ms` is the time of the kernel without marks and with them. `source` is a
hash of the syntax of the kernels and constants with marks; it ignores comments, docstrings and the modules from
which names are imported. `pipeline.measured` makes a Timeline of a row. O and lse must first equal those of the
kernel without marks, bit for bit.
"""

import argparse
import ast
import functools
import hashlib
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from flashlib.bench.common import harness, records
from flashlib.pipeline import measured, run

if TYPE_CHECKING:
    from flashlib.kernels.hopper.instrumented import Recorded

HEADS, N = 33, 1024  # 264 blocks of 128 rows: two for each of 132 multiprocessors
CALLS = 20  # in a graph, so that the CPU time does not count
WARM = 3


def inputs(d: int) -> list[torch.Tensor]:
    """Return Q, K and V, (1, HEADS, N, d)."""
    generator = torch.Generator().manual_seed(d)
    return [torch.randn(1, HEADS, N, d, generator=generator).to("cuda", torch.bfloat16) for _ in range(3)]


def measure(rung: str, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> dict:
    """Return the row of a rung, after verifying its result."""
    from flashlib.kernels.hopper import instrumented  # only when called: Triton may not be installed

    place = rung if rung == "forward" else f"ladder.{rung}"
    plain = importlib.import_module(f"flashlib.kernels.hopper.{place}").attention
    wanted = plain(Q, K, V)
    for _ in range(WARM):
        found = instrumented.attention(Q, K, V, rung=rung)
    for name in ("O", "lse"):
        if not torch.equal(getattr(found, name), getattr(wanted, name)):
            raise AssertionError(f"{name} of {rung} with marks is not the same as without them")
    row = {"rung": rung, "d": Q.shape[-1], "N": Q.shape[2], "H": Q.shape[1], **found.launched}
    row["grid"] = len(found.events)
    row["ms"] = {name: ms(call) for name, call in (("plain", lambda: plain(Q, K, V)), ("marked", found.again))}
    row["source"] = hash_of(instrumented.instrument(rung).source)
    row["points"] = [[point.kind, point.what] for point in found.points]
    row["programs"] = [recorded_program(found, row, number) for number in (0, row["grid"] // 2)]
    return row


def hash_of(source: str) -> str:
    """Return 12 hex digits: a hash of the syntax of the constants and kernels of a module, given as text.

    Functions without a decorator run on the CPU and do not count, nor do other names for them. As modules move,
    names from flashlib are replaced by the order of their first use; other imported names are kept in full.
    """
    imports, body = {}, []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom):
            imports |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Assign | ast.ClassDef) or getattr(node, "decorator_list", []):
            body += [node] * (not isinstance(getattr(node, "value", None), ast.Attribute))  # run = launch.run
    text = ast.unparse(_Syntax(imports).visit(ast.Module(body, [])))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class _Syntax(ast.NodeTransformer):
    """Removes docstrings, and renames what is imported. imports: {local name: full name}."""

    def __init__(self, imports):
        self.imports, self.ours = imports, []

    def visit_Name(self, node):
        name = self.imports.get(node.id, node.id)
        if name.startswith("flashlib."):
            self.ours += [name] * (name not in self.ours)
            name = f"flashlib_{self.ours.index(name)}"
        return ast.Name(name, node.ctx)

    def visit_FunctionDef(self, node):
        if ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def recorded_program(found: "Recorded", row: dict, number: int) -> dict:
    """Return the record of one program."""
    of_block = -(-row["N"] // row["B_c"])
    rows = -(-row["N"] // row["B_r"]) * row["H"]  # blocks of all programs
    blocks = [of_block] * len(range(number, rows, row["grid"]))
    return {"number": number, "blocks": blocks, "marks": found.marks(number)}


def ms(call: Callable[[], object]) -> float:
    """Return the GPU time of a call, without CPU time, in milliseconds."""
    graph = harness.captured(call, CALLS)
    return round(harness.median_ms(graph.replay, rep_ms=100) / CALLS, 5)


def compared(row: dict, number: int) -> dict:
    """Return a comparison of a recorded program with the model.

    clocks, use: of the program, then of the model; use: the tensor cores' share of the time, at their peak speed.
    same_order: whether products begin in the same order.
    """
    timelines = measured.timeline(row, number), run(measured.program(row, number))
    orders = [measured.order(timeline) for timeline in timelines]
    return {
        "clocks": [round(timeline.clocks) for timeline in timelines],
        "use": [round(timeline.use(), 3) for timeline in timelines],
        "same_order": orders[0] == orders[1],
    }


def summary(row: dict) -> str:
    """Return a summary of a row in one line."""
    cost = row["ms"]["marked"] / row["ms"]["plain"]
    programs = [f"program {one['number']} {compared(row, n)}" for n, one in enumerate(row["programs"])]
    return f"{row['rung']} d {row['d']}: {'; '.join(programs)}; with marks {cost:.3f} times as long"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.timelines", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    args = parser.parse_args()
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "Timelines are recorded on a GPU of compute capability 9.0; torch finds none.\n")
    record = harness.environment() | {"rows": []}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items() if key != "rows"))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    with records.Notes() as notes:
        for d in (128, 64):
            Q, K, V = inputs(d)
            for rung in measured.MODELS:
                row = measure(rung, Q, K, V)
                size = {"d": d, "causal": False, "shape": [1, HEADS, HEADS, N]}
                notes.add(row, size, {f"hopper_{rung}": {}})
                record["rows"].append(row)
                harness.say(summary(row))
                save()
        notes.finish()
    save()


if __name__ == "__main__":
    main()
