"""Runs kernels in Gluon as they are launched, whoever wrote them, and says what each role does.

Each program runs in two orders of events: in one the first roles go first, in the other the last ones do; units
complete what they work on at once. What the roles said is a Program of `flashlib.pipeline`, for which `check`
looks at the other orders: what a role says must not depend on them.
"""

import functools
import itertools
import re
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from triton import JITFunction
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.kernels.hopper.interpreter.language import Language, Pointer, stubs
from flashlib.kernels.hopper.interpreter.refused import Wrong
from flashlib.kernels.hopper.interpreter.run import played
from flashlib.kernels.hopper.interpreter.shared import Described
from flashlib.kernels.hopper.interpreter.threads import Role
from flashlib.kernels.hopper.interpreter.whole import numbers, whole
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import Fault, Flight
from flashlib.private_apis import of_gluon, of_kernels

NUMBER_INDEXED = re.compile("'(Whole|int|float)' object is not subscriptable")


class Ran(NamedTuple):
    """What one program of a launch did.

    number: of the program, one for each axis of the grid. said: {role: its commands}, up to a fault. warps: {role:
    how many it has}. fault: in one of the two orders, or None. whole: whether what was said came to its end.
    registers: {role: of a thread}, empty if the kernel does not say. stored: numbers that it stored to tensors.
    """

    number: tuple
    said: dict[str, list]
    barriers: tuple
    slots: tuple
    warps: dict[str, int]
    fault: Fault | None
    whole: bool = False
    registers: dict[str, int] = {}  # noqa: RUF012  never written to
    stored: int = 0

    def program(self) -> c.Program:
        """Return the Program of what was said."""
        roles: dict[str, Callable] = {
            role: functools.partial(iter, said) for role, said in self.said.items() if said
        }
        return c.Program(roles, self.barriers, self.slots)


def launch(kernel: JITFunction, arguments: tuple, grid: Any, options: dict) -> list[Ran]:
    """Run all programs of a launch on the CPU, and return what each did, up to the first fault.

    Raises Wrong for what the compiler or the hardware would not take, and what the kernel's own lines raise.
    """
    given = dict(zip(kernel.arg_names, arguments, strict=False)) | options
    warps = given.pop("num_warps", 4)
    for option in ("num_stages", "num_ctas", "maxnreg"):
        given.pop(option, None)
    sizes = grid(given) if callable(grid) else grid
    sizes = (*sizes, 1, 1)[:3]
    found = []
    for number in itertools.product(*(range(n) for n in reversed(sizes))):
        number = number[::-1]
        try:
            found.append(_longer(*(_run(kernel, given, number, sizes, warps, last) for last in (False, True))))
        except Wrong as wrong:
            wrong.fields.update(program=number[:2], grid=sizes[:2])
            raise
        except TypeError as error:
            if NUMBER_INDEXED.search(str(error)):
                raise Wrong("number_indexed").with_traceback(error.__traceback__) from error
            raise
        if found[-1].fault:
            break
    return found


def _longer(one: Ran, other: Ran) -> Ran:
    """Return the run in which more was said, with the fault of the other if it has none itself."""
    first, second = sorted((other, one), key=lambda ran: sum(map(len, ran.said.values())), reverse=True)
    return first._replace(fault=first.fault or second.fault)


def taken(see: Callable[[JITFunction, tuple, dict], object], ran: list[Ran]) -> Any:
    """Return a context in which launches of Gluon kernels run here; see: called before each; ran: gets all Ran."""

    def run(kernel, arguments, grid, options):
        see(kernel, arguments, options)
        ran.extend(launch(kernel, arguments, grid, options))

    return of_gluon.gluon_launches_taken(run)


def _run(kernel, given, number, grid, warps, last_first):
    gl = Language(number, grid, kernel.fn.__code__, warps)
    world = World(gl)
    fixed = {one.name for one in kernel.params if one.is_constexpr}
    arguments = {name: world.argument(name, x, name in fixed) for name, x in given.items()}
    alike = Role("warps", functools.partial(world.plain(kernel.fn), **arguments), ())
    gl.names.learn(world.made)
    alike.warps = warps
    fault = None
    try:
        played(gl, alike, Order(last_first))
    except Fault as error:
        fault = error
    threads = gl.roles or [alike]
    counts, stored = {role.role: role.warps for role in threads}, sum(role.stored for role in threads)
    parts = tuple(gl.barriers), tuple(gl.slots)
    return Ran(number, gl.said, *parts, counts, fault, fault is None, gl.registers, stored)


class Order:
    """Picks who goes next: a unit, or the first role, or the last one."""

    def __init__(self, last_first: bool) -> None:
        self.last_first = last_first

    def pick(self, choices: Sequence, who: Callable) -> Any:  # noqa: ARG002
        units = [one for one in choices if isinstance(one, Flight)]
        return units[0] if units else choices[-1 if self.last_first else 0]


class World:
    """Makes plain Python of kernels: their functions, with stubs for the parts of Gluon."""

    def __init__(self, gl: Language) -> None:
        self.stubs, self.made = stubs(gl), {}

    def plain(self, function: types.FunctionType) -> Callable:
        """Return a function of a kernel over the stubs; made once, so functions may call each other."""
        if function not in self.made:
            names: dict[str, Any] = {"__builtins__": function.__globals__.get("__builtins__")}
            made = types.FunctionType(
                function.__code__, names, function.__name__, function.__defaults__, function.__closure__
            )
            made.__kwdefaults__ = function.__kwdefaults__
            self.made[function] = made
            used = function.__code__.co_names
            names["range"] = numbers
            names.update(
                {name: self.of(function.__globals__[name]) for name in used if name in function.__globals__}
            )
        return self.made[function]

    def of(self, x: Any) -> Any:
        """Return what stands for a global, or for an argument that is no tensor."""
        if id(x) in self.stubs:
            return self.stubs[id(x)]
        if function := of_kernels.function_of(x):
            return self.plain(function)
        if of_kernels.is_constant(x):
            return self.of(x.value)
        if isinstance(x, types.ModuleType) and x.__name__.startswith("flashlib."):
            return types.SimpleNamespace(**{name: self.of(y) for name, y in vars(x).items() if _may_be_used(y)})
        return x

    def argument(self, name: str, x: Any, fixed: bool) -> Any:
        """Return what stands for an argument of the launch; fixed: it is a gl.constexpr."""
        if isinstance(x, TensorDescriptor):
            return Described(name, x)
        if isinstance(x, torch.Tensor):
            return Pointer(name, x)
        found = self.of(x)
        return found if fixed else whole(found)


def _may_be_used(x):
    return of_kernels.function_of(x) or of_kernels.is_constant(x)
