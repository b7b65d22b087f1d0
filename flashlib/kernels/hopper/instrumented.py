"""The Hopper kernels with marks, which write the multiprocessor's clock at each event.

The source of a kernel is read, and `mark(events, row, place, pred)` is inserted after each statement that waits,
copies, multiplies or stores, and where arithmetic ends and a wait begins. Everything else stays as it is, so a
kernel and its marks cannot drift apart. The time between a mark and the previous one of the same role means:

    Begin                       the role begins
    Wait, Finish, FinishStores  it waited: for a barrier, its products, its stores
    Copy, Product, Store        it computed the arguments, if necessary, and issued the request to a unit
    Work                        it computed something before a wait: the softmax, or what `what` names

One thread of a role writes. Each mark has a separate place for each tile g of a program's life, so no counter is
needed. No wait and no product moves past a mark. Arithmetic may, if nothing pins it; a test checks where the
exponentials are. The cost of marks in time must be measured.
"""

import ast
import functools
import importlib
import inspect
import linecache
import sys
import types
from collections.abc import Callable
from typing import NamedTuple

import torch
from triton import JITFunction

from flashlib.types import Attention

ROOM = 64  # tiles of a program's life that are recorded
CONSUMERS = 3  # the most there may be
# By the last part of a function's name: calls that are marked, calls that compute, and the names of these.
MARKED = {
    "wait": "Wait", "fetch": "Copy", "scores": "Product", "warpgroup_mma": "Product",
    "warpgroup_mma_wait": "Finish", "store_wait": "FinishStores", "async_copy_shared_to_global": "Store",
    "store_output": "Store",
}  # fmt: skip
WORK = {
    "operand": "rescale", "by_row": "rescale", "rescaled": "rescale", "store": "lse", "store_lse": "lse",
    "softmax": "softmax",
}  # fmt: skip
ORDER = ["", *dict.fromkeys(WORK.values())]  # if several were computed, the last of them gives the name
MARK = """
WIDTH = gl.constexpr({width})

@gluon.jit
def mark(events, row, place, pred):
    now = gl.inline_asm_elementwise('mov.u64 $0, %clock64;', '=l,r', [row], dtype=gl.int64, is_pure=False, pack=1)
    gl.store(events + row * WIDTH + place, now, mask=pred & (row < {room}))
"""


class Point(NamedTuple):
    """A mark. kind: see above. what: the barrier's or slot's ring, the product, S or PV, or the work; else ""."""

    role: str
    kind: str
    what: str


class Instrumented(NamedTuple):
    """module: like the kernel's, but its `attention` launches `recording`. taking: functions that take events."""

    module: types.ModuleType
    recording: "MarkedLauncher"
    taking: frozenset
    source: str


class Recorded(NamedTuple):
    """events: (programs, ROOM, points, CONSUMERS), clocks; 0 where nothing happened. points: one for each mark.

    launched: B_r, B_c, stages and consumers. again: a function that only runs the same launch again.
    """

    O: torch.Tensor
    lse: torch.Tensor
    events: torch.Tensor
    points: list
    launched: dict
    again: Callable

    def marks(self, program: int) -> dict[str, list]:
        """Return [clock, number of the point] of each mark that a program wrote, in order, by role.

        Clocks count from the first mark of the program.
        """
        found, events = {}, self.events[program].cpu()
        first = events[events > 0].min()
        for at in events.nonzero().tolist():
            role = self.points[at[1]].role
            name = f"{role} {at[2]}" if role == "consumer" else role
            found.setdefault(name, []).append([int(events[tuple(at)] - first), at[1]])
        return {name: sorted(found[name]) for name in sorted(found)}


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, rung: str = "forward", causal: bool = False,
    scale: float | None = None,
) -> Recorded:  # fmt: skip
    """Return the result of the kernel's own attention, and the time of each event. rung: as in `instrument`."""
    made = instrument(rung)
    found: Attention = made.module.attention(Q, K, V, causal=causal, scale=scale)
    launch, made.recording.launch = made.recording.launch, None
    if launch is None:
        raise ValueError(f"Q is {tuple(Q.shape)}, K {tuple(K.shape)}: nothing to launch, so no timeline")
    return Recorded(*found, *launch)


@functools.cache
def instrument(rung: str) -> Instrumented:
    """Return a kernel with marks. rung: "forward", or the name of a rung, such as "r1_alike"."""
    package = f"{__package__}.ladder" if rung != "forward" else __package__
    plain = importlib.import_module(f"{package}.{rung}")
    used = [name for name in vars(plain) if name.startswith("r") and f"{package}.{name}" in sys.modules]
    used = {name: instrument(name) for name in used}
    points = [point for made in used.values() for point in made.recording.points]
    tree = ast.parse(inspect.getsource(plain))
    taking = _taking(tree, {name for made in used.values() for name in made.taking})
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in taking:
            _Marks(node, points, taking).put()
    source = ast.unparse(tree) + "\n" + MARK.format(width=len(points) * CONSUMERS, room=ROOM)
    module = _executed(f"{plain.__name__}_instrumented", source)
    vars(module).update({name: made.module for name, made in used.items()})
    (kernel,) = (x for name, x in vars(module).items() if name.startswith("_") and isinstance(x, JITFunction))
    recording = vars(module)[kernel.__name__] = MarkedLauncher(kernel, points)
    return Instrumented(module, recording, frozenset(taking), source)


class MarkedLauncher:
    """Replaces the kernel of a module: launches the one with marks, with memory for what they write."""

    def __init__(self, kernel: JITFunction, points: list[Point]) -> None:
        self.kernel, self.points, self.launch = kernel, points, None
        self.__name__ = f"{kernel.__name__}_instrumented"  # plans are kept by name
        self.arg_names = [name for name in kernel.arg_names if name != "events"]

    def __getitem__(self, grid):
        return functools.partial(self._launch, grid)

    def _launch(self, grid, *given, **named):
        arguments = dict(zip(self.arg_names, given, strict=False)) | named
        shape = grid[0], ROOM, len(self.points), CONSUMERS
        events = torch.zeros(shape, dtype=torch.int64, device=arguments["lse_ptr"].device)
        B_R, B_C = arguments["B_R"], arguments["k_desc"].block_shape[2]
        launched = {"B_r": B_R, "B_c": B_C, "stages": arguments["STAGES"]}
        launched["consumers"] = B_R // arguments["q_desc"].block_shape[2]
        again = functools.partial(self.kernel[grid], *given, **named, events=events)
        again()
        self.launch = events, self.points, launched, again


def _executed(name, source):
    """Return a module made from source, which Triton finds through the name of its file."""
    module, file = types.ModuleType(name), f"<{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), vars(module))  # noqa: S102
    return module


def _parsed(text) -> list:
    return ast.parse(text).body


def _name(node) -> str:
    """Return the last part of a name, "" for a node without one."""
    return getattr(node, "attr", getattr(node, "id", ""))


def _calls(node):
    """Yield the calls in a node, those in arguments before the call that takes them."""
    for child in ast.iter_child_nodes(node):
        yield from _calls(child)
    if isinstance(node, ast.Call):
        yield node


def _taking(tree, taking) -> set:
    """Return the functions that take `events`: those with marks, or that use one. taking: the same elsewhere."""
    functions = [node for node in tree.body if getattr(node, "decorator_list", ())]
    functions = [node for node in functions if node.name not in MARKED | WORK]
    while True:
        named = taking | MARKED.keys()
        found = {node.name for node in functions if any(_name(part) in named for part in ast.walk(node))}
        if found <= taking:
            return taking
        taking = taking | found


class _Marks(ast.NodeTransformer):
    """Inserts marks into a function, and passes `events` to the functions it calls that take them."""

    def __init__(self, function, points, taking):
        self.function, self.points, self.taking = function, points, taking
        self.parameters = [parameter.arg for parameter in function.args.args]
        self.row = "g" if "g" in self.parameters else "0"
        self.is_kernel = function.name.startswith("_")
        self.each = None  # the counter of the enclosing loop, if that is unrolled
        self.work, self.only = "", None  # what was computed since the last mark; only if this is true
        others = "consumer" if "producer" in taking else "warps"
        self.role = "producer" if function.name == "producer" else others

    def put(self):
        """Change the function."""
        function = self.function
        function.args.args.insert(len(function.args.args) if self.is_kernel else 0, ast.arg("events"))
        begins = function.name in ("producer", "consumer") or self.is_kernel and self.role == "warps"
        begin = _parsed(f"events = events + gl.program_id(0) * (WIDTH * {ROOM})") if self.is_kernel else []
        if function.name == "consumer" and "ME" in self.parameters:
            begin = _parsed("events = events + ME")  # in all that it calls, too
        begin += [self.mark("Begin")] if begins else []
        doc = 1 if ast.get_docstring(function) else 0
        function.body[doc:] = begin + self.block(function.body[doc:])
        self.visit(function)
        ast.fix_missing_locations(function)

    def mark(self, kind, what="", pred="True"):
        """Return a mark, and note which it is; in an unrolled loop there is one for each iteration."""
        number = len(self.points)
        self.points += [Point(self.role, kind, what)] * (1 if self.each is None else CONSUMERS)
        each = "" if self.each is None else f" + {self.each}"
        self.work = ""
        return _parsed(f"mark(events, {self.row}, ({number}{each}) * {CONSUMERS}, {pred})")[0]

    def worked(self):
        """Return a mark after arithmetic, if there was any."""
        if not self.work:
            return []
        only, mark = self.only, self.mark("Work", self.work)
        return [ast.If(only, [mark], []) if only else mark]

    def block(self, body):
        return [made for statement in body for made in self.statement(statement)]

    def statement(self, statement):
        """Return a statement and the marks that belong to it, in a list."""
        if isinstance(statement, ast.For):
            return [*self.worked(), self.loop(statement)]
        calls = list(_calls(statement))
        marked = [call for call in calls if _name(call.func) in MARKED]
        if isinstance(statement, ast.If) and (marked or any(_name(call.func) in self.taking for call in calls)):
            before = self.worked()
            statement.body, statement.orelse = self.block(statement.body), self.block(statement.orelse)
            return [*before, statement]
        if not marked:
            self.compute(statement, calls)
        if isinstance(statement, ast.Return) and self.work:
            return _parsed(f"result = {ast.unparse(statement.value)}") + self.worked() + _parsed("return result")
        if isinstance(statement, ast.Assign) and _name(statement.targets[0]) == "g":
            self.row = "g"
        return self.after(statement, marked) if marked else [statement]

    def compute(self, statement, calls):
        """Note what a statement computes."""
        work = max((WORK.get(_name(call.func), "") for call in calls), default="", key=ORDER.index)
        if work:
            self.only = statement.test if isinstance(statement, ast.If) and not self.work else None
            self.work = max(self.work, work, key=ORDER.index)

    def loop(self, statement):
        row, each, counter = self.row, self.each, statement.target.id
        self.row = "g" if counter == "g" else row
        self.each = counter if _name(statement.iter.func) == "static_range" else each
        statement.body = self.block(statement.body) + self.worked()
        self.row, self.each = row, each
        return statement

    def after(self, statement, marked):
        """Return a statement with marks for the calls in it: all but the last call are made before it."""
        found = []
        for number, call in enumerate(marked):
            kind = MARKED[_name(call.func)]
            if kind in ("Wait", "Finish", "FinishStores"):
                found += self.worked()
            if number < len(marked) - 1:
                text, begun = ast.unparse(call), f"begun_{number}"
                found += _parsed(f"{begun} = {text}")
                (statement,) = _parsed(ast.unparse(statement).replace(text, begun))
            else:
                found.append(statement)
            pred = next((ast.unparse(word.value) for word in call.keywords if word.arg == "pred"), "True")
            found.append(self.mark(kind, _what(kind, call), pred))
        return found

    def visit_Call(self, node):
        self.generic_visit(node)
        if _name(node.func) in self.taking:
            node.args.insert(0, ast.Name("events", ast.Load()))
        return node

    def visit_Tuple(self, node):
        self.generic_visit(node)
        if len(node.elts) == 2 and _name(node.elts[0]) in self.taking and isinstance(node.elts[1], ast.Tuple):
            node.elts[1].elts.insert(0, ast.Name("events", ast.Load()))
        return node


def _what(kind, call):
    """Return the object of a wait, copy or product: the name of a ring, or "S" or "PV"."""
    if kind == "Product":
        return "S" if _name(call.func) == "scores" else "PV"
    if kind in ("Wait", "Copy"):
        part = call.args[0 if kind == "Wait" else 2]  # such as k_full.index(s)
        return part.func.value.id.removesuffix("_slots")
    return ""
