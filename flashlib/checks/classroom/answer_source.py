"""The source of an answer in a notebook: the names in the call of its check, and the names that they need in turn.

Only functions, classes, imports and assignments are taken from a notebook, including those in an `if` or `try`. A
name has the last value that it was given before the code that uses it runs.
"""

import ast
import builtins
import dis
from collections.abc import Iterator
from typing import NamedTuple

from IPython.core.inputtransformer2 import TransformerManager

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
PYTHON = ("time", "timeit", "capture", "prun")  # magics of cells whose other lines are Python
LONGEST = 50_000  # characters of a cell
AT_ONCE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Answer(NamedTuple):
    """The source of an answer.

    source: the code that defines it. expression: the argument of its check. missing: names that it uses but that
    get a value only from code that is not taken. undefined: names in the expression that are not defined anywhere.
    """

    source: str
    expression: str
    missing: tuple[str, ...]
    undefined: tuple[str, ...]


def statements(cell: str) -> list[ast.stmt]:
    """Return the statements of a cell, with magics as calls; raises SyntaxError if it is not Python."""
    if len(cell) > LONGEST:
        raise SyntaxError(f"it has {len(cell)} characters; up to {LONGEST} are read")
    try:
        found = ast.parse(TransformerManager().transform_cell(cell)).body
        _compiled(found)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or "nested too deeply") from None
    call = found[0].value if len(found) == 1 and isinstance(found[0], ast.Expr) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "get_ipython().run_cell_magic":
        magic, _, body = (ast.literal_eval(x) for x in call.args)
        return statements(body) if magic in PYTHON else []
    return found


def _compiled(found):
    """Return the code of statements; raises SyntaxError, for example for two parameters of the same name."""
    return compile(ast.Module(found, []), "<answer>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def calls(found: list[ast.stmt], exercises: dict) -> Iterator[tuple[int, str, ast.expr]]:
    """Yield (number of the statement, exercise, argument) for each call of a check, in order."""
    modules, names = {"checks", "flashlib.checks"}, {}
    for number, statement in enumerate(found):
        for node in ast.walk(statement):
            if isinstance(node, ast.ImportFrom) and node.module == "flashlib":
                modules |= {a.asname or a.name for a in node.names if a.name == "checks"}
            elif isinstance(node, ast.ImportFrom) and node.module == "flashlib.checks":
                names |= {a.asname or a.name: a.name for a in node.names}
            elif isinstance(node, ast.Import):
                modules |= {a.asname for a in node.names if a.name == "flashlib.checks" and a.asname}
            elif isinstance(node, ast.Call):
                called = node.func
                name = names.get(called.id) if isinstance(called, ast.Name) else None
                if isinstance(called, ast.Attribute) and ast.unparse(called.value) in modules:
                    name = called.attr
                given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "answer")]
                if name is not None and name in exercises and given:
                    yield number, name, given[0]


def answer(found: list[ast.stmt], number: int, given: ast.expr) -> Answer:
    """Return the Answer that statement `number` passes to a check as `given`."""
    before = [taken for statement in found[:number] if (taken := _taken(statement))]
    needed = _Needed(before)
    passed = {name for name, _ in _names(compile(ast.Expression(given), "<answer>", "eval"))}
    for name in passed:
        needed.add(name, len(before))
    future = [s for s in before if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    stars = (
        [s for s in before if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"] if needed.unknown else []
    )
    chosen = [before[n] for n in sorted(needed.chosen)]
    lines = [ast.unparse(s) for s in dict.fromkeys([*future, *stars, *chosen])]
    made = {name for s in found[:number] for n in ast.walk(s) if (name := _made(n))}
    missing = () if stars else tuple(sorted(needed.unknown & made))
    undefined = () if stars else tuple(sorted(needed.unknown & passed))
    return Answer("\n\n".join(lines) + "\n", ast.unparse(given), missing, undefined)


def _made(node):
    """Return the name that a part of a statement defines, or None."""
    if isinstance(node, DEFINITIONS):
        return node.name
    return node.id if isinstance(node, ast.Name) and _stored(node) else None


def _stored(node):
    return isinstance(node.ctx, ast.Store)


def _taken(statement):
    """Return what is taken from a statement: itself, an `if` or `try` without its other code, or None."""
    if isinstance(statement, DEFINITIONS + IMPORTS):
        return statement
    if isinstance(statement, ASSIGNMENTS):
        return statement if _binds([statement]) else None
    if not isinstance(statement, ast.If | ast.Try):
        return None
    parts = {part: [t for s in getattr(statement, part, []) if (t := _taken(s))] for part in ("body", "orelse")}
    made = type(statement)(**{name: getattr(statement, name, []) for name in statement._fields})
    made.body, made.orelse = parts["body"] or [ast.Pass()], parts["orelse"]
    if isinstance(statement, ast.Try):
        bodies = [[t for s in handler.body if (t := _taken(s))] for handler in statement.handlers]
        kept = zip(statement.handlers, bodies, strict=True)
        made.handlers = [ast.ExceptHandler(h.type, h.name, body or [ast.Pass()]) for h, body in kept]
        made.finalbody = []
        if not made.handlers:
            made = ast.If(ast.Constant(True), made.body, made.orelse)
    return ast.fix_missing_locations(ast.copy_location(made, statement)) if _binds([made]) else None


def _binds(body):
    """Return {name: whether it gets a new value, rather than an addition} for the names that statements bind."""
    found = {}
    for s in body:
        if isinstance(s, DEFINITIONS):
            found[s.name] = True
            roots = (_root(d.func if isinstance(d, ast.Call) else d) for d in s.decorator_list)
            found |= {root: False for root in roots if root and root != s.name}  # such as f.register
        elif isinstance(s, IMPORTS):
            for a in s.names:
                found[a.asname or a.name.partition(".")[0]] = bool(a.asname) or "." not in a.name
        elif isinstance(s, ASSIGNMENTS):
            targets = s.targets if isinstance(s, ast.Assign) else [s.target]
            for target in targets:
                stored = {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and _stored(n)}
                found |= dict.fromkeys(stored, not isinstance(s, ast.AugAssign))
                found |= {root: False for root in [_root(target)] if root}
        elif isinstance(s, ast.If | ast.Try):
            inner = [*s.body, *s.orelse, *(x for h in getattr(s, "handlers", []) for x in h.body)]
            found |= dict.fromkeys(_binds(inner), False)
    return found


def _root(node):
    """Return the name that an attribute or an element belongs to, or None."""
    if not isinstance(node, ast.Attribute | ast.Subscript):
        return None
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _names(code, at_once=True):
    """Yield (name, whether it is used at once, not in a later call) for each global that code uses."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"):
            yield step.argval, at_once
    for inner in code.co_consts:
        if hasattr(inner, "co_code"):
            is_class = not inner.co_flags & 1
            yield from _names(inner, at_once and (is_class or inner.co_name in AT_ONCE))


class _Needed:
    """The numbers of the statements that are needed, and the names that no statement binds."""

    def __init__(self, before):
        self.before, self.binds = before, [_binds([s]) for s in before]
        self.chosen, self.unknown, self.seen = set(), set(), set()

    def add(self, name, end):
        """Add the statements that give a name its value before statement `end`, and all that these need."""
        left = [(name, end)]
        while left:
            name, end = left.pop()
            if (name, end) in self.seen:
                continue
            self.seen.add((name, end))
            for n in self._givers(name, end):
                self.chosen.add(n)
                code = _compiled([self.before[n]])
                left += [(used, n if at_once else end) for used, at_once in _names(code)]

    def _givers(self, name, end):
        found = [n for n in range(end) if name in self.binds[n]]
        anew = [n for n in found if self.binds[n][name]]
        first = anew[-1] if anew else -1
        found = [n for n in found if n >= first]
        if not found and not hasattr(builtins, name):
            self.unknown.add(name)
        imported = [n for n in found if isinstance(self.before[n], IMPORTS)]
        return imported or found  # statements that change a module are not taken
