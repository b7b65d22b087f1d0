"""HTML of what CompilerLab shows of a `kernels.compiled.Compiled`."""

from html import escape
from pathlib import Path

STYLE = f"<style>{Path(__file__).with_name('compiler.css').read_text(encoding='utf-8')}</style>"
MAX_LINES = 20_000  # of a listing: a page with more of them is slow


def problem(sentence) -> str:
    return f'<p class="flash-compiler-failed" role="alert">{escape(sentence)}</p>'


def state(sentence, *, busy=False, failed=False) -> str:
    kind = "busy" if busy else "failed" if failed else "done"
    return f'<p class="flash-compiler-{kind}" role="status">{escape(sentence)}</p>'


def summary(report) -> str:
    """Return the key numbers of a report, in a line."""
    limits = _limits(report)
    causal = ", causal" if report.causal else ""
    tile = f"tile {report.B_r} x {report.B_c}, " if report.B_r else ""
    loads = {True: ", descriptors", False: ", pointers", None: ""}[report.descriptors]
    asked = f"{report.kernel}, d = {report.d}, {report.dtype}{causal}, for {' and '.join(limits.gpus)}"
    config = f"{tile}{_count(report.num_warps, 'warp')}, {_count(report.num_stages, 'stage')}{loads}"
    became = (
        f"{report.registers} registers",
        f"{_count(report.spilled, 'byte')} spilled",
        f"{_count(report.shared, 'byte')} of shared memory{'' if report.fits else ', too many'}",
        f"{_count(report.programs, 'program')} on a multiprocessor",
    )
    return f"{asked}; {config}: {', '.join(became)}"


def result(report) -> str:
    """Return tables: what a program takes of what there is, and the instructions that matter."""
    notes = "".join(f"<p><b>ptxas says</b>: {escape(note)}</p>" for note in report.notes)
    return f'<div class="flash-compiler-result">{_resources(report)}{_instructions(report)}</div>{notes}'


def _limits(report):
    from flashlib.kernels import compiled

    return compiled.MULTIPROCESSORS[report.capability]


def _resources(report):
    from flashlib.kernels.compiled import MAX_REGISTERS

    limits, room = _limits(report), report.room
    least = " and ".join(name for name, n in room._asdict().items() if n == report.programs)
    each = ", ".join(f"{name} {n}" for name, n in room._asdict().items())
    held = report.programs * report.num_warps
    spilled = "a thread moves them to memory and back" if report.spilled else "every value has a register"
    sram = limits.gpu.block_sram
    rows = (
        _row("registers of a thread", report.registers, MAX_REGISTERS),
        _row("bytes spilled", report.spilled, None, spilled, report.spilled > 0),
        _row("bytes of shared memory of a program", report.shared, sram, "" if report.fits else "does not fit"),
        _row("programs on a multiprocessor", report.programs, None, f"limited by {least} ({each})"),
        _row("warps on a multiprocessor", held, limits.warps),
    )
    head = '<tr><th scope="col">takes</th><td></td><th scope="col">of</th><td></td></tr>'
    return f"<table><caption>Registers and memory</caption>{head}{''.join(rows)}</table>"


def _row(name, taken, there_is, words="", bad=False):
    """Return a row of a table: how much of what there is, a bar, and words."""
    bar = ""
    if there_is is not None:
        over = taken > there_is
        part = min(100.0, 100 * taken / there_is)
        kind = " flash-compiler-over" if over else ""
        bar = f'<div class="flash-compiler-bar{kind}" aria-hidden="true"><i style="width:{part:.1f}%"></i></div>'
        bad = bad or over
    mark = "▲ " if bad else ""
    of = "" if there_is is None else f"{there_is:,}"
    return (
        f'<tr><th scope="row">{name}</th><td class="flash-compiler-number">{taken:,}</td>'
        f'<td class="flash-compiler-number">{of}</td><td>{bar}{mark}{escape(words)}</td></tr>'
    )


def _instructions(report):
    from flashlib.kernels import listings

    columns = [report.counts(kind, loop=loop) for loop in (True, False) for kind in ("ptx", "sass")]
    rows = []
    for name, instruction in listings.INSTRUCTIONS.items():
        numbers = [column[name] for column in columns]
        if any(numbers):
            cells = "".join(f'<td class="flash-compiler-number">{n:,}</td>' for n in numbers)
            rows.append(f'<tr><th scope="row">{name}</th>{cells}<td>{escape(instruction.meaning)}</td></tr>')
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in ("loop, PTX", "loop, SASS", "all, PTX", "all, SASS")
    )
    head = f"<tr><td></td>{heads}<td></td></tr>"
    return f"<table><caption>Instructions written, of one thread</caption>{head}{''.join(rows)}</table>"


def listing(report, kind) -> str:
    """Return the loop over tiles of a listing, and all of the listing in a fold."""
    whole, loop = getattr(report, kind), report.loop(kind)
    name = kind.upper()
    if not whole:
        return "<p>No disassembler was found, so there is no SASS.</p>"
    n = len(loop.splitlines())
    shown = f"<h4>The loop over tiles, {_count(n, 'line')} of {name}</h4>{_pre(loop, name)}" if loop else ""
    lines = len(whole.splitlines())
    return (
        f"{shown}<details><summary>All {lines:,} lines of {name}</summary>{_pre(whole, name + ', all')}</details>"
    )


def _pre(text, name):
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        text = "\n".join([*lines[:MAX_LINES], f"... and {len(lines) - MAX_LINES:,} lines more"])
    return f'<pre tabindex="0" role="region" aria-label="{name}">{escape(text)}</pre>'


def _count(n, noun):
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
