"""For `bench.mine`: what the compiler makes of a learner's kernels and of ours, and what is good about it.

A table with a row for each kernel, and two sentences on the learner's: whether every number has a register, and
how many programs share a multiprocessor.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from flashlib.bench.kernel_table import KernelTable
from flashlib.checks.engine import waiting
from flashlib.language.phrases import and_list, by_number, counted

if TYPE_CHECKING:
    from flashlib.kernels.compiler.compiled import Compiled

HEADS = "", "", "kernel", "registers", "spilled", "shared KB", "warps", "programs"


class KernelReport(NamedTuple):
    """A compiled kernel. size: what it is for, such as "d = 64". whose: "yours", "ours" or "portable"."""

    size: str
    whose: str
    report: "Compiled"

    @property
    def row(self) -> tuple:
        r = self.report
        shared = round(r.shared / 1024, 1)
        return self.size, self.whose, r.kernel, r.registers, r.spilled, shared, r.num_warps, r.programs


def yours_and_ours(size: str, yours: "list[Compiled]", *ours: "Compiled") -> list[KernelReport]:
    """Return a KernelReport for each of your kernels, and for each of ours."""
    return [
        *(KernelReport(size, "yours", report) for report in yours),
        *(KernelReport(size, "ours", report) for report in ours),
    ]


def table(reports: list[KernelReport], what: str, capability: int | str) -> KernelTable:
    """Return the table of some kernels, compiled for one GPU, with sentences on yours."""
    from flashlib.kernels import triton
    from flashlib.kernels.compiler import makers, occupancy

    gpu = f"the {occupancy.MULTIPROCESSORS[capability].gpus[0]} ({makers.target(capability)})"
    title = (
        f"{what}, compiled for {gpu} by Triton {triton.__version__}: registers and spilled bytes of a thread,\n"
        "shared memory and warps of a program, and how many programs fit on a multiprocessor"
    )
    yours = [one for one in reports if one.whose == "yours"]
    return KernelTable(title, HEADS, [one.row for one in reports], (_spills(yours), _programs(yours)))


def table_or_reason(make: Callable[[], KernelTable]) -> KernelTable:
    """Return make(), or a table without rows that says why the compiler cannot make one."""
    from flashlib.kernels.compiler.client import CompileError
    from flashlib.learner.pickling import CannotBeSent

    try:
        with waiting.told(waiting.COMPILING):
            return make()
    except (CompileError, CannotBeSent) as error:
        return KernelTable(f"The compiler cannot tell what becomes of your kernel: {error}")


def _spills(yours):
    worst = max(yours, key=lambda one: one.report.spilled)
    if not worst.report.spilled:
        return "No spills: every number that your threads hold has a register."
    spilled, where = counted(worst.report.spilled, "byte", "bytes", ","), _where(worst, yours)
    return (
        f"Spills: {spilled} of each of your threads have no register ({where}), and move to memory and back. "
        "Choose smaller tiles, or more warps (num_warps), so that each thread holds less of a tile."
    )


def _programs(yours):
    """Return the sentence on the kernel of which the fewest programs fit, the last of several."""
    worst = min(reversed(yours), key=lambda one: one.report.programs)
    n, limit, where = worst.report.programs, and_list(worst.report.limited_by), _where(worst, yours)
    if not n:
        return (
            f"No program of yours fits on a multiprocessor ({where}), limited by {limit}. Choose smaller tiles, "
            "or load fewer ahead (num_stages)."
        )
    if n == 1 and worst.report.has_roles:
        return (
            f"1 program of yours fits on a multiprocessor at a time ({where}), limited by {limit}. With "
            "roles that is enough: the producer loads ahead, and while one consumer waits, another computes."
        )
    return by_number(
        n,
        f"1 program of yours fits on a multiprocessor at a time ({where}), limited by {limit}. No other computes "
        "while it waits for memory, so let it load tiles ahead (num_stages), or choose smaller tiles, which leave "
        "room for a second program.",
        f"{n} programs of yours fit on a multiprocessor at a time ({where}), limited by {limit}. That is good: "
        "while one waits for memory, another computes.",
    )


def _where(one, yours):
    """Return which size, and which kernel if you have several."""
    alone = len({other.report.kernel for other in yours}) == 1
    return one.size if alone else f"{one.report.kernel}, {one.size}"
