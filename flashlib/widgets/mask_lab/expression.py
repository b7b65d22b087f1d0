"""A mask written as a line of Python, such as (r - c) % 3 == 0: a small subset of the language."""

import ast
import re
from collections.abc import Callable

import numpy as np

LONGEST = 200  # characters
ACCEPTED = "comparisons, + - * / // %, & | ~, numbers, r, c, N_q, N_k, abs, min and max"
# No power: with it a short line can compute forever, or fill the memory.
NAMES = "Lt LtE Gt GtE Eq NotEq Add Sub Mult Div FloorDiv Mod BitAnd BitOr USub UAdd Invert"
OPERATORS = tuple(getattr(ast, name) for name in NAMES.split())
NUMPY = {"abs": "np.abs", "min": "np.minimum", "max": "np.maximum"}  # as `code` writes them
FROM_NUMPY = {numpy: name for name, numpy in NUMPY.items()}


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + (b - a) * (b < a)  # of arrays or of tensors


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + (b - a) * (b > a)


FUNCTIONS = {"abs": abs, "min": minimum, "max": maximum}


def read(text: str, N_q: int, N_k: int) -> Callable:
    """Return a line as a function f(r, c) of positions, integer arrays or torch tensors, that returns bools.

    Raises ValueError, with a sentence, for anything but comparisons of what ACCEPTED names. f raises it too if it
    divides by 0.
    """
    text = _without_numpy(text.strip())
    line = compile(_parse(text), "<mask>", "eval")
    sizes = {"N_q": N_q, "N_k": N_k, "__builtins__": {}}

    def seen(r, c):
        try:
            with np.errstate(all="raise", under="ignore"):
                value = eval(line, FUNCTIONS | sizes | {"r": r, "c": c})
        except ArithmeticError as error:
            raise ValueError(f"{_quoted(text)} cannot be computed for some r and c: {error}") from None
        except TypeError as error:
            hint = "comparisons are joined by & and |, with brackets: (c <= r) & (c < 8)"
            raise ValueError(f"{_quoted(text)} cannot be computed: {str(error).rstrip('.')}; {hint}") from None
        if not (isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")):
            raise ValueError(f"{_quoted(text)} is a number, not a comparison; compare it, e.g. r - c < 8")
        return value

    seen(np.array([1009]), np.array([2003]))  # for any numbers, unless a divisor is 0 there
    return seen


def code(text: str, N_q: int, N_k: int) -> str:
    """Return a line that `read` accepts as Python code for NumPy, with the sizes as numbers."""
    names = NUMPY | {"N_q": str(N_q), "N_k": str(N_k)}
    lines = (line.partition("#")[0] for line in _without_numpy(text).splitlines())  # no line contains a #
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], " ".join(" ".join(lines).split()))


def _without_numpy(text):
    """Return a line with NumPy's functions under the names abs, min and max."""
    return re.sub(r"\bnp\.(abs|minimum|maximum)\b", lambda found: FROM_NUMPY[found[0]], text)


def _parse(text):
    if not text:
        raise ValueError("The line is empty; write a comparison of r and c, e.g. c <= r")
    if len(text) > LONGEST:
        raise ValueError(f"The line has {len(text)} characters; at most {LONGEST} are read")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = getattr(error, "msg", "") or "it cannot be read"
        said = f"{_quoted(text)} is not a line of Python: {why.rstrip('.')}"
        if re.search(r"(?<![<>=!:])=(?!=)", text):
            said = f"{said}; = does not compare, == does"
        raise ValueError(said) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and (why := _refusal(node, _quoted(ast.get_source_segment(text, node)))):
            raise ValueError(why)
    return tree


def _refusal(node, where) -> str:
    """Return why a node is not accepted, or "" if it is; `where` is its text."""
    match node:
        case ast.BoolOp(op):
            word, sign = ("and", "&") if isinstance(op, ast.And) else ("or", "|")
            return f"`{word}` does not work on arrays; write {sign}, with brackets: (c <= r) {sign} (c < 8)"
        case ast.UnaryOp(ast.Not()):
            return "`not` does not work on arrays; write ~ and brackets: ~(c <= r)"
        case ast.Compare(ops=[_, _, *_]):
            return (
                f"{where} chains comparisons, not possible with arrays; put brackets around each comparison: "
                "(c <= r) & (c < 8), since & and | bind more tightly than <"
            )
        case ast.Call(ast.Name("abs" | "min" | "max")):
            return ""
        case ast.Call(func):
            return f"{_quoted(ast.unparse(func))} is not a function here; there are abs, min and max"
        case ast.Name(name):
            known = name in (*FUNCTIONS, "r", "c", "N_q", "N_k")
            there_are = "there are r, c, N_q and N_k, and abs, min and max of them"
            return "" if known else f"{name} is not a name here; {there_are}"
        case ast.Constant(value) if type(value) in (int, float):
            return ""
        case ast.UnaryOp(op) | ast.BinOp(op=op) | ast.Compare(ops=[op]) if isinstance(op, OPERATORS):
            return ""
    return f"{where} is not accepted; a mask is made of {ACCEPTED}"


def _quoted(text):
    return f"`{text}`" if len(text) <= 40 else f"`{text[:40]}…`"
