"""The texts of a Python module: strings and f-strings that read as words, except docstrings and patterns."""

import ast
from collections.abc import Iterator, Mapping

from flashlib.language import reading

Text = ast.Constant | ast.JoinedStr
READS = {  # functions that take file names or code
    *("startswith", "endswith", "removeprefix", "removesuffix", "split", "rsplit", "partition", "rpartition"),
    *("edited", "replace", "strip", "lstrip", "rstrip", "index", "find", "count"),
}
BARE = (ast.Name, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.alias)
SAY = "__say__"  # looks up a value, in a translated module
IMPORT = f"from flashlib.language.texts import say_value as {SAY}"


def found(tree: ast.AST) -> Iterator[tuple[str, Text]]:
    """Yield each string of a module with its template, except those that no reader sees."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.JoinedStr):
            yield _template(node), node
            left += [part.value for part in reversed(node.values) if isinstance(part, ast.FormattedValue)]
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.value, node
        else:
            left += reversed(_seen(node))


def _seen(node):
    """Return the children of a node that may contain texts."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
            return [part for part in node.args if not isinstance(part, Text)]
        case ast.Call(func=ast.Attribute(attr=name)) if name in READS:
            return [node.func, *(part for part in node.args if not isinstance(part, Text))]
        case ast.Call() | ast.Attribute():  # the most frequent
            return _children(node)
        case ast.Expr(value=ast.Constant()):  # a docstring
            return []
        case ast.ClassDef(bases=[*_, ast.Name(id=name)]) if name.endswith("Enum"):
            return []  # their names in a program; they are looked up where they are shown
        case ast.Compare():
            return [part for part in (node.left, *node.comparators) if not isinstance(part, ast.Constant)]
        case ast.Assign(targets=[ast.Tuple()], value=ast.Constant()):
            return []  # one name for each letter
        case ast.AnnAssign():
            return [node.value] if node.value else []
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.decorator_list, node.args, *node.body]
        case ast.arg():
            return []
    return _children(node)


def _children(node):
    """Return the children of a node, except names and operators, which are half of a tree."""
    children = []
    for name in node._fields:
        value = getattr(node, name)
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST) and not isinstance(child, BARE):
                children.append(child)
    return children


def _template(joined):
    parts = [""]
    for part in joined.values:
        if isinstance(part, ast.Constant):
            parts[-1] += part.value
        else:
            parts.append("")
    return reading.template(parts)


def translated(source: str, texts: Mapping[str, str], name: str = "<module>") -> ast.Module:
    """Return the tree of a module with its texts translated; raise ValueError for one that does not fit."""
    tree = ast.parse(source, name)
    new = {}
    for template, node in found(tree):
        if template in texts and reading.is_text(template):
            new[id(node)] = _made(node, texts[template])
        elif texts and isinstance(node, ast.JoinedStr) and reading.is_frame(template):
            new[id(node)] = _made(node, template)
    tree = _Replaced(new).visit(tree)
    if any(isinstance(node, ast.JoinedStr) for node in new.values()):
        tree.body[_first(tree) : _first(tree)] = ast.parse(IMPORT).body
    return ast.fix_missing_locations(tree)


def _first(tree):
    """Return the number of the first statement after a docstring and `from __future__`."""
    return next(
        (n for n, node in enumerate(tree.body)
         if not (isinstance(node, ast.Expr) or isinstance(node, ast.ImportFrom) and node.module == "__future__")),
        len(tree.body),
    )  # fmt: skip


def _made(node, text):
    if isinstance(node, ast.Constant):
        return ast.copy_location(ast.Constant(text), node)
    values = [_looked_up(part) for part in node.values if isinstance(part, ast.FormattedValue)]
    parts = [
        values[one] if isinstance(one, int) else ast.Constant(one) for one in reading.pieces(text, len(values))
    ]
    return ast.copy_location(ast.JoinedStr(parts), node)


def _looked_up(value):
    """Make a value of a text be looked up when it is filled in, if it may be a word."""
    if value.conversion == -1 and value.format_spec is None:
        value.value = ast.Call(ast.Name(SAY, ast.Load()), [value.value], [])
    return value


class _Replaced(ast.NodeTransformer):
    def __init__(self, new):
        self.new = new

    def visit(self, node):
        node = self.generic_visit(node)  # the values of a text may contain texts
        return self.new.get(id(node), node)
