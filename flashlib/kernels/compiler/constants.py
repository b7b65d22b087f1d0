"""Explain the compiler's errors about sizes and layouts that it does not know, with the names in the line.

A size that a kernel assigns to a name is known only to the GPU, unless the name is annotated as constexpr.
"""

import ast
import re
import textwrap

from flashlib.language.phrases import and_list

# A size in a shape or a layout; a layout that gets a name.
UNKNOWN = re.compile(r"(?:shape|constexpr\[|Layout\().*core\.tensor|cannot convert \w*Layout\(.* to tensor", re.I)


def in_words(because: str, at: list[tuple[str, int]]) -> str:
    """Return the compiler's message, or an explanation if a name in the line lacks its annotation.

    at: the lines that led there, the innermost last, (text of a function, line).
    """
    for text, number in reversed(at) if UNKNOWN.search(because) else ():
        function = ast.parse(textwrap.dedent(text)).body[0]
        if isinstance(function, ast.FunctionDef) and (names := _without(function, number)):
            one, which = names[0], and_list(names)
            written = f"{one}: {'gl' if 'gl.' in text else 'tl'}.constexpr"
            said = f"it must know {which}, and without an annotation only the GPU does: write {written}"
            return f"{said} = ..." if one in _assigned(function) else f"{said} in the list of parameters"
    return because


def _without(function, number):
    """Return the names in the statement at a line that are sizes or layouts without an annotation."""
    there = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Assign | ast.Expr | ast.Return) and one.lineno <= number <= (one.end_lineno or 0)
    ]  # fmt: skip
    if not there:
        return []
    shapes = [x for part in ast.walk(there[-1]) if isinstance(part, ast.List | ast.Tuple) for x in part.elts]
    calls = [part for part in ast.walk(there[-1]) if isinstance(part, ast.Call)]
    given = [x for call in calls if not ast.unparse(call.func).startswith(("gl.", "tl.")) for x in call.args]
    named = [] if not isinstance(there[-1], ast.Assign) else _of_layout(there[-1])
    parameters = {one.arg for one in function.args.args if one.annotation is None}
    loose = (_assigned(function) | parameters) - _objects(function)
    for parts in (shapes, given):  # an argument of a function may be a size in a shape there
        used = dict.fromkeys([*named, *(x for part in parts for x in _in_arithmetic(part))])
        if found := [name for name in used if name in loose]:
            return found
    return []


def _in_arithmetic(part):
    """Return the names in a part of an expression that is a name, or arithmetic with names."""
    if isinstance(part, ast.BinOp):
        return [*_in_arithmetic(part.left), *_in_arithmetic(part.right)]
    return [part.id] if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) else []


def _objects(function):
    """Return the names that are not sizes: they have attributes, or are called desc or ptr."""
    names = {x.id for x in ast.walk(function) if isinstance(x, ast.Name)}
    of_attributes = {
        x.value.id for x in ast.walk(function) if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name)
    }
    return of_attributes | {name for name in names if name.endswith(("desc", "ptr"))}


def _of_layout(statement):
    """Return the names to which a statement assigns a layout."""
    said = ast.unparse(statement.value)
    is_layout = re.match(r"[\w.]*Layout\(", said) or said.endswith(".layout")
    return [one.id for one in statement.targets if isinstance(one, ast.Name)] if is_layout else []


def _assigned(function):
    """Return the names that are assigned without an annotation."""
    return {
        name.id
        for one in ast.walk(function)
        if isinstance(one, ast.Assign)
        for target in one.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
