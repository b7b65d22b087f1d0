"""A kernel's source as the compiler sees it once some of its constants are known.

One kernel serves masks, scores and sizes of many kinds: constants of the launch decide which of its lines a
program has. To show it for one case, `source` leaves out the lines that this case does not reach, and everything
that only they need.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable

WIDTH = 115  # of a line, as in pyproject.toml


class _Unknown(Exception):
    """The value of an expression is not known."""


def source(function: Callable, known: dict[str, object]) -> str:
    """Return the source of a function or kernel for the case in which these expressions have these values.

    known: such as {"MASK.variant": None, "MASKED": True}. Branches that are not taken are left out; comments in
    the others stay. Parameters that are known, or no longer read, are left out, and so are the arguments for known
    ones. The docstring is left out, since it describes all cases.
    """
    text = textwrap.dedent(inspect.getsource(getattr(function, "fn", function)))
    while (edited := _edited(text, known)) != text:
        text = edited
    return text.rstrip()


def _edited(text, known):
    """Return the text after the first edit that applies, or as it was."""
    (tree,) = ast.parse(text).body
    for edit in (_docstring, _branch, _operand, _choice, _call, _loop, _header):
        for node in ast.walk(tree):
            if (found := edit(text, node, tree, known)) is not None:
                return found
    return text


def _docstring(text, node, tree, known):
    if node is tree and ast.get_docstring(node) is not None:
        return _lines(text, node.body[0].lineno, node.body[0].end_lineno, [])
    return None


def _branch(text, node, tree, known):
    """Replace an `if` whose test is known by the branch that is taken."""
    if not isinstance(node, ast.If) or (taken := _value(node.test, known)) is None:
        return None
    lines = text.splitlines()
    if taken:
        kept = lines[node.test.end_lineno : node.body[-1].end_lineno]
    else:
        kept = lines[node.body[-1].end_lineno : node.end_lineno]  # from its else or elif on
    if lines[node.lineno - 1].lstrip().startswith("elif"):  # of an `if` that stays
        return _lines(
            text, node.lineno, node.end_lineno, ["else:".rjust(5 + node.col_offset), *kept] if taken else kept
        )
    if not taken and kept and kept[0].lstrip().startswith("elif"):
        kept[0] = kept[0].replace("elif", "if", 1)
    elif kept:
        block = textwrap.dedent("\n".join(kept if taken else kept[1:]))
        kept = textwrap.indent(block, " " * node.col_offset).splitlines()
    return _lines(text, node.lineno, node.end_lineno, kept)


def _operand(text, node, tree, known):
    """Leave out the operand of `a and b` or `a or b` that does not matter."""
    if not isinstance(node, ast.BoolOp) or _value(node, known) is not None:
        return None
    kept = [one for one in node.values if _value(one, known) is None]
    if kept == node.values:
        return None
    return _replaced(text, node, ast.unparse(ast.BoolOp(node.op, kept)))


def _choice(text, node, tree, known):
    """Replace `a if test else b` whose test is known by the side that is taken."""
    if not isinstance(node, ast.IfExp) or (taken := _value(node.test, known)) is None:
        return None
    return _replaced(text, node, ast.get_source_segment(text, node.body if taken else node.orelse))


def _call(text, node, tree, known):
    """Leave out the argument for a known parameter in a call."""
    if not isinstance(node, ast.Call) or not any(_names(x, known) for x in node.args):
        return None
    node.args = [x for x in node.args if not _names(x, known)]
    return _replaced(text, node, ast.unparse(node))


def _loop(text, node, tree, known):
    """Give the variable of a loop the name that its body assigns it to, as in `for at in ...: start = at`."""
    if not isinstance(node, ast.For) or not isinstance(node.body[0], ast.Assign):
        return None
    first, old = node.body[0], node.target
    new = first.targets[0]
    if not (isinstance(new, ast.Name) and isinstance(old, ast.Name) and _names(first.value, {old.id})):
        return None
    if sum(_names(one, {old.id}) for one in ast.walk(node)) != 2:  # the target, and this line
        return None
    text = _lines(text, first.lineno, first.end_lineno, [])
    return _replaced(text, old, new.id)


def _header(text, node, tree, known):
    """Leave out the parameters that nothing reads, such as those that are known."""
    if node is not tree:
        return None
    read = {one.id for part in tree.body for one in ast.walk(part) if isinstance(one, ast.Name)}
    kept = [one for one in tree.args.args if one.arg in read]
    if kept == tree.args.args:
        return None
    lines = [f"def {tree.name}({', '.join(map(ast.unparse, kept))}):"]
    if len(lines[0]) > WIDTH:
        whole = " ".join(ast.unparse(one).replace(" ", "\0") + "," for one in kept)  # no break within a parameter
        inside = textwrap.indent(textwrap.fill(whole, WIDTH - 4), "    ").replace("\0", " ")
        lines = [f"def {tree.name}(", *inside.splitlines(), "):"]
    return _lines(text, tree.lineno, _end_of_header(text, tree), lines)


def _end_of_header(text, tree):
    """Return the last line of the header: the one before the body and the comments above it."""
    lines, last = text.splitlines(), tree.body[0].lineno - 1
    while not lines[last - 1].split("#")[0].rstrip().endswith(":"):
        last -= 1
    return last


def _names(node, names):
    return isinstance(node, ast.Name) and node.id in names


def _value(node, known):
    """Return the truth of an expression, None if it is not known."""
    try:
        return bool(_known(node, known))
    except _Unknown:
        return None


def _known(node, known):
    """Return the value of an expression of known ones; raise _Unknown if it is not known."""
    if (written := ast.unparse(node)) in known:
        return known[written]
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp(op=ast.Not()):
            return not _known(node.operand, known)
        case ast.BoolOp():
            decides = isinstance(node.op, ast.Or)  # one value of this kind decides, whatever the others are
            truths = [_value(one, known) for one in node.values]
            if decides in truths:
                return decides
            if None not in truths:
                return not decides
        case ast.Compare(ops=[ast.Is() | ast.IsNot() as op]):
            same = _known(node.left, known) is _known(node.comparators[0], known)
            return same == isinstance(op, ast.Is)
    raise _Unknown


def _lines(text, first, last, new):
    """Return the text with lines, counted from 1, replaced."""
    lines = text.splitlines()
    return "\n".join([*lines[: first - 1], *new, *lines[last:]]) + "\n"


def _replaced(text, node, new):
    """Return the text with the source of a node replaced."""
    lines = text.splitlines()
    before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
    return _lines(text, node.lineno, node.end_lineno, [before + new + after])
