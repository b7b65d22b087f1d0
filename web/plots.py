"""A description of a plot for those who cannot see it, from the texts in the code that draws it."""

import ast
import re

NAMED = {"set_title": "title", "suptitle": "title", "set_xlabel": "xlabel", "set_ylabel": "ylabel", "text": "text"}
MOST = 8  # named curves or texts


def of_plot(source):
    """Return what the code of a plot writes on it: titles, axes and names of curves.

    If there is nothing, return the docstring of the first function there, or "". A … stands for computed values.
    """
    found = {"title": [], "xlabel": [], "ylabel": [], "label": [], "text": []}
    tree = ast.parse(re.sub(r"^[%!].*", "", source, flags=re.M))
    for node in ast.walk(tree):
        for name, value in _written(node) if isinstance(node, ast.Call) else ():
            if (text := _plain(value)) and text not in found[name]:
                found[name].append(text)
    axes = [" over ".join(filter(None, [_any(found["ylabel"]), _any(found["xlabel"])]))]
    curves = found["label"][:MOST] or ([] if found["title"] else found["text"][:MOST])
    parts = [", ".join(part) for part in (found["title"], axes, curves) if any(part)]
    if not parts:
        parts = [ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)][:1]
    return f"Plot: {'; '.join(parts)}" if any(parts) else ""


def _written(call):
    """Yield (kind, expression) for each text that a call writes on a plot."""
    name = getattr(call.func, "attr", "")
    if name in NAMED:
        strings = [one for one in call.args if isinstance(one, ast.Constant | ast.JoinedStr | ast.IfExp)]
        yield from [(NAMED[name], one) for one in strings[-1:]]
    for given in call.keywords:
        if given.arg in ("title", "xlabel", "ylabel", "label"):
            yield given.arg, given.value


def _plain(value):
    """Return the value of an expression that is a text, or ""."""
    if isinstance(value, ast.IfExp):
        value = value.body
    if isinstance(value, ast.JoinedStr):
        pieces = [one.value if isinstance(one, ast.Constant) else "…" for one in value.values]
        text = "".join(pieces) if any(piece.strip("… ") for piece in pieces) else ""
    else:
        text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
    text = re.sub(r"\\mathrm\{(.*?)\}", r"\1", text).replace("$", "")
    return " ".join(re.sub(r"[{}\\]", "", text).split())


def _any(texts):
    return " or ".join(texts)
