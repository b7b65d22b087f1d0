"""The facts of a `kernels.compiler.compiled.Compiled` that CompilerLab shows, in the form sent to its page."""

import re
from typing import TYPE_CHECKING

from flashlib.widgets.compiler_lab import words

if TYPE_CHECKING:
    from flashlib.kernels.compiler.compiled import Compiled

MAX_LOOP = 2000  # lines of a loop: it is sent at every change, and a saved page keeps it
MAX_LINES = 20_000  # lines of a whole listing, sent when it is unfolded: a page with more is slow


def compute(report: "Compiled") -> dict:
    """Return everything that the page shows, except whole listings."""
    return {
        "title": words.title(report),
        "verdicts": words.verdicts(report),
        "takes": takes(report),
        "columns": [kind.upper() for kind in _counted_kinds(report)],
        "instructions": instructions(report),
        "listings": {kind: _listing(report, kind) for kind in report.maker.kinds},
    }


def takes(report: "Compiled") -> list[dict]:
    """Return what a program takes of each resource: name, text, share (None: no limit), note, if it is bad."""
    limits, maker = words.limits_of(report.capability), report.maker
    sram, held = limits.gpu.block_sram, report.programs * report.num_warps
    room = ", ".join(f"{name} {n}" for name, n in zip(words.resources(maker), report.room, strict=True))
    kb = f"{report.shared / words.KB:.4g} of {sram / words.KB:.4g} KB"
    exact = f"{report.shared:,} of {sram:,} bytes"
    text, share = f"{report.registers} of {maker.max_registers}", report.registers / maker.max_registers
    return [
        _row(f"{maker.registers} of a thread", text, share, words.on_registers(report)),
        *(_row(name, f"{used} of {given}", used / given) for name, (_, given, used) in words.roles(report)),
        _row("bytes of a thread that spill", f"{report.spilled:,}", None, bad=report.spilled > 0),
        _row(f"{maker.shared} of a program", kb, report.shared / sram, exact),
        _row(f"programs on a {maker.unit}", str(report.programs), None, f"room for: {room}", report.programs == 0),
        _row(f"{maker.warps} on a {maker.unit}", f"{held} of {limits.warps}", held / limits.warps),
    ]


def _row(name, text, share, note="", bad=False):
    over = share is not None and share > 1
    return {"name": name, "text": text, "share": share, "note": note, "bad": bad or over}


def instructions(report: "Compiled") -> list[dict]:
    """Return which instructions occur, and how often: in the loops of the listings, then in the whole listings.

    None if there is no loop, or no listing.
    """
    from flashlib.kernels.compiler.listings import INSTRUCTIONS

    kinds = _counted_kinds(report)
    known = INSTRUCTIONS[kinds[0]]
    columns = [
        report.counts(kind, loop=loop) if (report.loop if loop else report.listing)(kind) else dict.fromkeys(known)
        for loop in (True, False)
        for kind in kinds
    ]
    rows = [
        {"name": name, "meaning": instruction.meaning, "counts": [column[name] for column in columns]}
        for name, instruction in known.items()
    ]
    return [row for row in rows if any(row["counts"])]


def whole(report: "Compiled", kind: str) -> str:
    """Return a whole listing, up to the length that a page can show."""
    return _cut(getattr(report, kind), MAX_LINES)


def _listing(report, kind):
    """Return the loop of a listing, the lines of each instruction in it, and the number of lines."""
    loop = report.loop(kind)
    return {
        "loop": _cut(loop, MAX_LOOP),
        "counted": _counted(kind, loop.splitlines()[:MAX_LOOP]),
        "lines": [len(loop.splitlines()), len(getattr(report, kind).splitlines())],
    }


def _counted_kinds(report):
    """Return the kinds of listings that have instructions: those that TTGIR is compiled to."""
    return report.maker.kinds[1:]


def _counted(kind, lines):
    from flashlib.kernels.compiler.listings import INSTRUCTIONS, form

    found = {}
    for name in INSTRUCTIONS.get(kind, {}):
        counted = re.compile(form(kind, name))
        found[name] = [n for n, line in enumerate(lines) if counted.search(line)]
    return {name: its for name, its in found.items() if its}


def _cut(text, most):
    lines = text.splitlines()
    return text if len(lines) <= most else "\n".join([*lines[:most], f"... and {len(lines) - most:,} lines more"])
