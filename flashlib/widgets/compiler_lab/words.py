"""CompilerLab's sentences: what was requested, what was compiled, and what it means."""

import collections
from typing import TYPE_CHECKING

from flashlib.language.phrases import and_list, by_number, counted

if TYPE_CHECKING:
    from flashlib.kernels.compiler.compiled import Compiled
    from flashlib.kernels.compiler.makers import Maker
    from flashlib.kernels.compiler.occupancy import Multiprocessor

KB = 1024  # bytes
HANDED_OVER = "at first; then each role uses, of those that its warps request:"


def settings_in_words(settings: dict) -> str:
    """Return settings, keywords of `compiled.report`, in words; those that the kernel chooses are left out."""
    return _page(_described(**settings))


def title(report: "Compiled") -> str:
    """Return the title of a report, for the page."""
    return _page(_described(**_settings(report)))


def summary(report: "Compiled") -> str:
    """Return the title of a report and its key numbers, in a line of ASCII."""
    maker = report.maker
    shared = f"{counted(report.shared, 'byte', 'bytes', ',')} of {maker.shared}"
    became = (
        f"{report.registers} {maker.registers}",
        f"{counted(report.spilled, 'byte', 'bytes', ',')} spilled",
        shared if report.fits else f"{shared}, too many",
        f"{counted(report.programs, 'program', 'programs')} on a {maker.unit}",
    )
    return f"{_described(**_settings(report))}: {', '.join(became)}"


def verdicts(report: "Compiled") -> list[dict]:
    """Return sentences on what the numbers of a report mean: the text of each, and whether it is bad news."""
    spilled = counted(report.spilled, "byte", "bytes", ",")
    return [
        _programs(report),
        _verdict(f"{spilled} of a thread have no register: they move to memory and back.", True)
        if report.spilled
        else _verdict("Every value of a thread has a register."),
        *(_verdict(f"ptxas says: {note.partition(' in the function ')[0]}.") for note in report.notes),
    ]


def roles(report: "Compiled") -> list:
    """Return (words, role) for the roles of a kernel; roles with the same numbers count as one."""
    alike = collections.Counter(report.roles)
    return [(_role(role.name, alike[role]), role) for role in sorted(alike, key=lambda role: role.given)]


def _role(name, n):
    return "in the producer" if name == "producer" else f"in {counted(n, 'consumer', 'consumers')}"


def resources(maker: "Maker") -> tuple[str, str, str]:
    """Return a maker's names for the resources that programs share, in the order of `occupancy.Programs`."""
    return maker.registers, maker.shared, maker.warps


def on_registers(report: "Compiled") -> str:
    """Return a note on the registers of a thread, or ""."""
    if report.agprs:
        return f"{report.agprs} of them are AGPRs, for products"
    return HANDED_OVER if report.roles else ""


def limits_of(capability: int | str) -> "Multiprocessor":
    """Return the resources of a multiprocessor of the GPU with this capability, as the compiler names it."""
    from flashlib.kernels.compiler import occupancy

    return occupancy.MULTIPROCESSORS[capability]


def _programs(report):
    maker, least = report.maker, report.limited_by
    if not report.fits:
        sram = limits_of(report.capability).gpu.block_sram
        held, there_are = (f"{n / KB:.4g}" for n in (report.shared, sram))
        words = f"It does not fit: a program takes {held} KB of {maker.shared}; there are {there_are}."
        return _verdict(words, True)
    if not report.programs:
        return _verdict(f"No program fits on a {maker.unit}: too few {and_list(least)}.", True)
    n, unit = report.programs, maker.unit
    fit = by_number(n, f"1 program fits on a {unit} at a time", f"{n} programs fit on a {unit} at a time")
    if least == [maker.shared]:  # registers and warps are several
        return _verdict(f"{fit}: {maker.shared} allows no more.")
    return _verdict(f"{fit}: {and_list(least)} allow no more.")


def _verdict(text, bad=False):
    return {"text": text, "bad": bad}


def _settings(report):
    names = "kernel", "d", "dtype", "causal", "capability", "B_r", "B_c", "num_warps", "num_stages", "descriptors"
    return {name: getattr(report, name) for name in names}


def _described(
    *, kernel, d, dtype, capability, causal=False, B_r=None, B_c=None, num_warps=None, num_stages=None,
    descriptors=None,
):  # fmt: skip
    from flashlib.kernels.compiler import makers, occupancy

    limits, maker = occupancy.MULTIPROCESSORS.get(capability), makers.maker_of(capability)
    gpus = and_list(limits.gpus) if limits else makers.target(capability)
    config = [
        f"tile {B_r} x {B_c}" if B_r and B_c else f"B_r = {B_r}" if B_r else f"B_c = {B_c}" if B_c else "",
        counted(num_warps, maker.warp, maker.warps) if num_warps else "",
        counted(num_stages, "stage", "stages") if num_stages else "",
        {True: "descriptors", False: "pointers", None: ""}[descriptors],
    ]
    chosen = ", ".join(filter(None, config))
    call = f"{kernel}, d = {d}, {dtype}"
    whole = f"{call}, causal, for {gpus}" if causal else f"{call}, for {gpus}"
    return f"{whole}; {chosen}" if chosen else whole


def _page(text):
    return text.replace(" x ", " × ")
