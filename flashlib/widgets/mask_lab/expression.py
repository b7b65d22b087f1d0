"""A mask written as a line of Python, such as (r - c) % 3 == 0, read and computed without running any of it."""

import ast
import operator
import re
import warnings

LONGEST = 200  # characters
LARGEST = 1_000_000  # of numbers
NAMES = "r", "c", "N_q", "N_k"
COMPARED = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
COMPUTED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
DIVIDES = ast.Div, ast.FloorDiv, ast.Mod
SIGNED = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
ACCEPTED = "comparisons, + - * / // %, & | ~, numbers, r, c, N_q, N_k, abs, min and max"


def _less(a, b):
    return a + (b - a) * (b < a)  # of arrays and tensors alike


def _more(a, b):
    return a + (b - a) * (b > a)


FUNCTIONS = {"abs": (abs, "np.abs", 1), "min": (_less, "np.minimum", 2), "max": (_more, "np.maximum", 2)}
FROM_NUMPY = {numpy: name for name, (_, numpy, _) in FUNCTIONS.items()}  # as `code` writes them


def read(text, N_q, N_k):
    """Return what a line says as f(r, c) of positions, arrays or torch tensors of whole numbers, which gives bool.

    Raises ValueError, in a sentence, for all but comparisons of what ACCEPTED names.
    """
    tree = _parse(text)
    _largest(tree, max(N_q, N_k))

    def seen(r, c):
        return _value(tree, {"r": r, "c": c, "N_q": N_q, "N_k": N_k})

    return seen


def code(text, N_q, N_k) -> str:
    """Return a line that `read` accepts as Python that NumPy computes, with the sizes as numbers."""
    _parse(text)
    text = _without_numpy(text)
    names = {name: numpy for name, (_, numpy, _) in FUNCTIONS.items()} | {"N_q": str(N_q), "N_k": str(N_k)}
    bare = " ".join(" ".join(line.partition("#")[0] for line in text.splitlines()).split())  # no text has a #
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], bare)


def _without_numpy(text):
    """Return a line with abs, min and max under those names."""
    return re.sub(r"\bnp\.(abs|minimum|maximum)\b", lambda found: FROM_NUMPY[found[0]], text)


def _parse(text):
    text = _without_numpy(text.strip())
    if not text:
        raise ValueError("The line is empty; write a comparison of r and c, e.g. c <= r")
    if len(text) > LONGEST:
        raise ValueError(f"The line has {len(text)} characters; at most {LONGEST} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts, which are refused below
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = getattr(error, "msg", "") or "it cannot be read"
        hint = "; = does not compare, == does" if re.search(r"(?<![<>=!:])=(?!=)", text) else ""
        raise ValueError(f"{_quoted(text)} is not a line of Python: {why.rstrip('.')}{hint}") from None
    _check(tree, text)
    if not _is_bool(tree):
        raise ValueError(f"{_quoted(text)} is a number, not a comparison; compare it, e.g. r - c < 8")
    return tree


def _check(node, text):
    """Raise ValueError if a node, or one below it, is not accepted."""
    below = []
    match node:
        case ast.Name(id=name) if name in NAMES:
            return
        case ast.Constant(value=value) if type(value) in (int, float):
            if not value <= LARGEST:
                raise ValueError(
                    f"{_quoted(ast.get_source_segment(text, node))} is too large; numbers go up to {LARGEST}"
                )
        case ast.UnaryOp(op, operand) if type(op) in SIGNED:
            below = [operand]
        case ast.BinOp(left, op, right) if type(op) in COMPUTED:
            below = [left, right]
        case ast.Compare(left, [op], [right]) if type(op) in COMPARED:
            below = [left, right]
        case ast.Call(ast.Name(name), args, []) if name in FUNCTIONS:
            count = FUNCTIONS[name][2]
            if len(args) != count:
                raise ValueError(
                    f"{name} takes {count} argument{'s' * (count > 1)} here, and was given {len(args)}"
                )
            below = args
        case _:
            raise ValueError(_refusal(node, text))
    for one in below:
        _check(one, text)
    _check_kinds(node, below, text)


def _check_kinds(node, below, text):
    """Raise ValueError where NumPy would: for arithmetic on what is true or false, and ~ or & of fractions."""
    kinds = [_is_bool(one) for one in below]
    where = ast.get_source_segment(text, node)
    if isinstance(node, ast.UnaryOp | ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Invert):
        if len(set(kinds)) > 1:
            raise ValueError(
                f"{_quoted(where)} joins a comparison and a number; put brackets around each comparison: "
                "(c <= r) & (c < 8)"
            )
        if any(_is_fraction(one) for one in below):
            raise ValueError(f"{_quoted(where)} needs whole numbers or comparisons, and one side is a fraction")
    elif any(kinds) and not isinstance(node, ast.Compare):
        raise ValueError(f"{_quoted(where)} computes with a comparison; join comparisons by & and |")


def _refusal(node, text):
    """Return why a node is not accepted, and what to write instead."""
    where = _quoted(ast.get_source_segment(text, node))
    match node:
        case ast.BoolOp(op):
            word, sign = ("and", "&") if isinstance(op, ast.And) else ("or", "|")
            return f"`{word}` does not work on arrays; write {sign}, with brackets: (c <= r) {sign} (c < 8)"
        case ast.UnaryOp(ast.Not()):
            return "`not` does not work on arrays; write ~ and brackets: ~(c <= r)"
        case ast.Compare(ops=ops, comparators=parts) if len(ops) > 1:
            joined = [one.op for one in (node.left, *parts) if isinstance(one, ast.BinOp)]
            if any(isinstance(op, ast.BitAnd | ast.BitOr) for op in joined):
                return "& and | bind more tightly than <; put brackets around each comparison: (c <= r) & (c < 8)"
            return f"{where} chains comparisons, not possible with arrays; write (c <= r) & (c < 8), with brackets"
        case ast.Name(name):
            return f"{name} is not a name here; there are r, c, N_q and N_k, and abs, min and max of them"
        case ast.Call(ast.Name(name)) if name in FUNCTIONS:
            return f"{name} takes no named arguments here"
        case ast.Call(function):
            return f"{_quoted(ast.unparse(function))} is not a function here; there are abs, min and max"
    return f"{where} is not accepted; a mask is made of {ACCEPTED}"


def _is_bool(node) -> bool:
    """Return whether an accepted node gives true or false, and not a number."""
    match node:
        case ast.Compare():
            return True
        case ast.UnaryOp(ast.Invert(), operand):
            return _is_bool(operand)
        case ast.BinOp(left, ast.BitAnd() | ast.BitOr()):
            return _is_bool(left)
    return False


def _is_fraction(node) -> bool:
    """Return whether an accepted number is not a whole number."""
    match node:
        case ast.Constant(value):
            return isinstance(value, float)
        case ast.BinOp(op=ast.Div()):
            return True
        case ast.BinOp() | ast.UnaryOp() | ast.Call():
            return any(_is_fraction(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
    return False


def _largest(node, N) -> float:
    """Return a bound on the size of an accepted number, of positions up to N in size.

    Raises ValueError where it is beyond whole numbers of 64 bits, which would begin again from below.
    """
    below = [_largest(one, N) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    match node:
        case ast.Name(name):
            return N if name in NAMES else 0
        case ast.Constant(value):
            return value
        case ast.BinOp(op=ast.Mult()):
            bound = below[0] * below[1]
        case ast.BinOp(op=ast.FloorDiv() | ast.Div()):
            bound = below[0]
        case ast.Compare():
            bound = 1
        case _:
            bound = 2 * sum(below) + 1
    if bound >= 2**63 and not _is_fraction(node):
        raise ValueError(f"{_quoted(ast.unparse(node))} becomes too large")
    return bound


def _value(node, names):
    match node:
        case ast.Name(name):
            return names[name]
        case ast.Constant(value):
            return value
        case ast.UnaryOp(op, operand):
            return SIGNED[type(op)](_value(operand, names))
        case ast.Compare(left, [op], [right]):
            return COMPARED[type(op)](_value(left, names), _value(right, names))
        case ast.Call(ast.Name(name), args):
            return FUNCTIONS[name][0](*(_value(one, names) for one in args))
    left, right = _value(node.left, names), _value(node.right, names)
    if isinstance(node.op, DIVIDES) and _has_zero(right):
        raise ValueError(f"{_quoted(ast.unparse(node))} divides by 0 for some r and c")
    return COMPUTED[type(node.op)](left, right)


def _has_zero(x) -> bool:
    zero = x == 0
    return bool(zero.any()) if hasattr(zero, "any") else zero


def _quoted(text):
    return f"`{text}`" if len(text) <= 40 else f"`{text[:40]}…`"
