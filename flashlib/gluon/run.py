"""Run kernels in Gluon when they are launched, whoever wrote them, and report what each role does.

The programs of a launch run one after another. In each, an order picks who goes next, so one run says nothing
about other orders. But the commands of its roles form a Program of `flashlib.pipeline`, whose other orders `check`
examines; a role's commands must not depend on the order.
"""

import contextlib
import functools
import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from triton import JITFunction

from flashlib.gluon.language import Language
from flashlib.gluon.refused import Wrong
from flashlib.gluon.threads import Order, Role, played
from flashlib.gluon.world import World
from flashlib.inputs import check_counts
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import PipelineFault
from flashlib.pipeline.schedules import Chance
from flashlib.private_apis import gpu_stand_in, of_driver, of_gluon

NOT_INDEXED = re.compile("'(Integer|int|float|View)' object is not subscriptable")
OPTIONS_OF_THE_COMPILER = "num_stages", "num_ctas", "maxnreg"


class Ran(NamedTuple):
    """What one program of a launch did.

    number: its index on each axis of the grid. said: {role: its commands}, up to a fault. warps: {role: number of
    warps}. fault: a fault in one of the orders, or None. whole: whether the roles ran to their end. registers:
    {role: registers of a thread}, empty if the kernel does not request any. stored: how many numbers it stored to
    tensors. kernel: its name. sums: {role: registers of a thread that its sums take}, such as S and O.
    """

    number: tuple
    said: dict[str, list]
    barriers: tuple
    slots: tuple
    warps: dict[str, int]
    fault: PipelineFault | None
    whole: bool = False
    registers: dict[str, int] = {}  # noqa: RUF012  never written to
    stored: int = 0
    kernel: str = ""
    sums: dict[str, int] = {}  # noqa: RUF012  never written to

    def program(self) -> c.Program:
        """Return the commands as a Program."""
        roles: dict[str, Callable] = {
            role: functools.partial(iter, said) for role, said in self.said.items() if said
        }
        return c.Program(roles, self.barriers, self.slots)


def first_and_last() -> Sequence:
    """Return two orders: one prefers the first roles, the other the last ones."""
    return Order(last_first=False), Order(last_first=True)


@contextlib.contextmanager
def on_cpu(*, seed: int | None = None, order: str = "first", multiprocessors: int = 2) -> Iterator[list[Ran]]:
    """Within it, kernels in Gluon run on the CPU, launched by their own functions as on a Hopper GPU.

    Yields a list that collects the Ran of each program. order: "first" or "last", the role that goes when several
    can; with a seed, any role or unit, chosen at random. multiprocessors: of the GPU that the launchers see.
    Tensors are in CPU memory. Raises PipelineFault for what a kernel must never do, Wrong for what the compiler or
    the hardware would not accept, and RuntimeError if Triton compiles its kernels, as some of them run too.

    It says nothing about speed. Registers are counted, not allocated.
    """
    orders = _orders(seed, order)
    check_counts(at_least=1, multiprocessors=multiprocessors)
    if not of_driver.interpreted():
        raise RuntimeError("kernels are compiled here: set TRITON_INTERPRET=1 before Triton is imported")
    found: list[Ran] = []

    def run(kernel, arguments, grid, options):
        found.extend(launch(kernel, arguments, grid, options, orders))
        if found[-1].fault:
            raise found[-1].fault

    gpu = gpu_stand_in.StandIn(multiprocessors)
    with gpu_stand_in.standing_in(gpu), of_gluon.gluon_launches_taken(run):
        yield found


def _orders(seed, order):
    """Return a function that makes the orders of a program."""
    if seed is not None:
        check_counts(seed=seed)
        chance = random.Random(seed)
        return lambda: (Chance(chance),)
    if order not in ("first", "last"):
        raise ValueError(f'order is {order!r}; pass "first" or "last", or a seed for a random one')
    return lambda: (Order(last_first=order == "last"),)


def taken(
    see: Callable[[JITFunction, tuple, dict], object], ran: list[Ran], *, both: bool = True
) -> contextlib.AbstractContextManager:
    """Return a context in which launched Gluon kernels run here, each program in two orders of events.

    see: called before each launch. ran: collects every Ran, including faults. both: if false, each program runs in
    the second order only, which leaves the same numbers as running both.
    """

    def run(kernel, arguments, grid, options):
        see(kernel, arguments, options)
        orders = first_and_last if both else lambda: first_and_last()[1:]
        ran.extend(launch(kernel, arguments, grid, options, orders))

    return of_gluon.gluon_launches_taken(run)


def launch(
    kernel: JITFunction, arguments: tuple, grid: Any, options: dict, orders: Callable[[], Sequence]
) -> list[Ran]:
    """Run all programs of a launch on the CPU, and return what each did, up to the first fault.

    orders: makes the orders in which a program runs, one run after another; a run that added to a tensor is the
    last, as another would add again. Raises Wrong for what the compiler or the hardware would not accept, and
    whatever the kernel's own lines raise.
    """
    given = dict(zip(kernel.arg_names, arguments, strict=False)) | options
    warps = given.pop("num_warps", 4)
    for option in OPTIONS_OF_THE_COMPILER:
        given.pop(option, None)
    sizes = grid(given) if callable(grid) else grid
    sizes = (*sizes, 1, 1)[:3]
    found = []
    for number in itertools.product(*(range(n) for n in reversed(sizes))):
        number = number[::-1]
        try:
            found.append(_in_orders(kernel, given, number, sizes, warps, orders()))
        except Wrong as wrong:
            wrong.fields.update(program=number[:2], grid=sizes[:2])
            raise
        except TypeError as error:
            if indexed := NOT_INDEXED.search(str(error)):
                mistake = "slot_indexed" if indexed[1] == "View" else "number_indexed"
                raise Wrong(mistake).with_traceback(error.__traceback__) from error
            raise
        if found[-1].fault:
            break
    return found


def _in_orders(kernel, given, number, grid, warps, orders):
    """Return the run with the most commands, and with another run's fault if it has none itself."""
    runs = []
    for order in orders:
        gl = Language(number, grid, kernel.fn.__code__, warps)
        runs.append(_run(gl, kernel, given, order))
        if gl.added:
            break
    runs.sort(key=lambda ran: sum(map(len, ran.said.values())))
    fault = next((ran.fault for ran in reversed(runs) if ran.fault), None)
    return runs[-1]._replace(fault=fault)


def _run(gl, kernel, given, order):
    world = World(gl)
    fixed = {one.name for one in kernel.params if one.is_constexpr}
    arguments = {name: world.argument(name, x, name in fixed) for name, x in given.items()}
    alike = Role("warps", functools.partial(world.plain(kernel.fn), **arguments), ())
    gl.names.learn(world.made)
    alike.warps = gl.warps
    fault = None
    try:
        played(gl, alike, order)
    except PipelineFault as error:
        fault = error
    threads = gl.roles or [alike]
    counts, stored = {role.role: role.warps for role in threads}, sum(role.stored for role in threads)
    parts = tuple(gl.barriers), tuple(gl.slots)
    sums = {role.role: sum(role.sums.values()) // (32 * (role.warps or gl.warps)) for role in threads}
    name = kernel.fn.__name__
    return Ran(gl.number, gl.said, *parts, counts, fault, fault is None, gl.registers, stored, name, sums)
