"""What CompilerLab shows of a `kernels.compiler.compiled.Compiled`, as its page gets it."""

import re
from typing import TYPE_CHECKING

from flashlib.widgets.compiler_lab import words

if TYPE_CHECKING:
    from flashlib.kernels.compiler.compiled import Compiled

KINDS = "ttgir", "ptx", "sass"
MAX_LOOP = 2000  # lines of a loop: every change sends it, and a saved page keeps it
MAX_LINES = 20_000  # of a whole listing, sent when it is unfolded: a page with more of them is slow


def compute(report: "Compiled") -> dict:
    """Return what the page shows, except whole listings."""
    return {
        "title": words.title(report),
        "verdicts": words.verdicts(report),
        "takes": takes(report),
        "instructions": instructions(report),
        "listings": {kind: _listing(report, kind) for kind in KINDS},
    }


def takes(report: "Compiled") -> list[dict]:
    """Return what a program takes of each resource: name, text, share of it (None: no limit), note, if bad."""
    from flashlib.kernels.compiler.occupancy import MAX_REGISTERS

    limits = words.limits_of(report.capability)
    sram, held = limits.gpu.block_sram, report.programs * report.num_warps
    registers, shared, warps = report.room
    room = f"room for: registers {registers}, shared memory {shared}, warps {warps}"
    kb = f"{report.shared / words.KB:.4g} of {sram / words.KB:.4g} KB"
    exact = f"{report.shared:,} of {sram:,} bytes"
    text, share = f"{report.registers} of {MAX_REGISTERS}", report.registers / MAX_REGISTERS
    return [
        _row("registers of a thread", text, share, words.HANDED_OVER if report.roles else ""),
        *(_row(name, f"{used} of {given}", used / given) for name, (_, given, used) in words.roles(report)),
        _row("bytes of a thread that spill", f"{report.spilled:,}", None, bad=report.spilled > 0),
        _row("shared memory of a program", kb, report.shared / sram, exact),
        _row("programs on a multiprocessor", str(report.programs), None, room, report.programs == 0),
        _row("warps on a multiprocessor", f"{held} of {limits.warps}", held / limits.warps),
    ]


def _row(name, text, share, note="", bad=False):
    over = share is not None and share > 1
    return {"name": name, "text": text, "share": share, "note": note, "bad": bad or over}


def instructions(report: "Compiled") -> list[dict]:
    """Return which instructions there are and how often: in the loop, PTX and SASS, and in all; None: no SASS."""
    from flashlib.kernels.compiler.listings import INSTRUCTIONS

    columns = [
        report.counts(kind, loop=loop) if getattr(report, kind) else dict.fromkeys(INSTRUCTIONS)
        for loop in (True, False)
        for kind in ("ptx", "sass")
    ]
    rows = [
        {"name": name, "meaning": instruction.meaning, "counts": [column[name] for column in columns]}
        for name, instruction in INSTRUCTIONS.items()
    ]
    return [row for row in rows if any(row["counts"])]


def whole(report: "Compiled", kind: str) -> str:
    """Return a whole listing, as far as a page can show it."""
    return _cut(getattr(report, kind), MAX_LINES)


def _listing(report, kind):
    """Return the loop of a listing, which of its lines are counted, and how many lines there are."""
    loop = report.loop(kind)
    return {
        "loop": _cut(loop, MAX_LOOP),
        "counted": _counted(kind, loop.splitlines()[:MAX_LOOP]),
        "lines": [len(loop.splitlines()), len(getattr(report, kind).splitlines())],
    }


def _counted(kind, lines):
    from flashlib.kernels.compiler.listings import INSTRUCTIONS

    if kind == "ttgir":  # instructions are what it becomes
        return []
    counted = re.compile("|".join(f"(?:{getattr(forms, kind)})" for forms in INSTRUCTIONS.values()))
    return [n for n, line in enumerate(lines) if counted.search(line)]


def _cut(text, most):
    lines = text.splitlines()
    return text if len(lines) <= most else "\n".join([*lines[:most], f"... and {len(lines) - most:,} lines more"])
