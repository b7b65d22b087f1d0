"""Lines of code: each is an element that knows its indent, so that it wraps with a hanging one and breaks well."""

import html
import re

TAG = re.compile(r"<[^>]+>")
CODE = re.compile(r"<pre>((?:<span></span>)?(?:<code[^>]*>)?)(.*?)(\n*(?:</code>)?</pre>)", re.DOTALL)
INDENT = re.compile(r"(?:<[^>]+>)*( *)")
PIECE = re.compile(r"(?:<[^>]+>|[^\s<])+")  # up to a space
WHOLE = re.compile(r"(?:<span[^>]*>[^<]*</span>|[^<]+)+")  # tags in pairs
OPENING = re.compile(r"([(\[](?:</span>)?)")
LONG = 20  # characters: on a phone a longer piece is broken


def wrapping(markup):
    """Return highlighted code, as HTML, whose lines wrap; its text stays as it is."""
    return CODE.sub(_lines, markup)


def _lines(found):
    start, code, end = found.groups()
    lines = "\n".join(map(_line, code.split("\n")))
    return f'<pre role="group" aria-label="code">{start}{lines}{end}'


def _line(markup):
    indent = len(INDENT.match(markup)[1])
    style = f' style="--indent:{indent}"' if indent else ""
    return f'<span class="line"{style}>{PIECE.sub(_piece, markup)}</span>' if markup else ""


def _piece(found):
    """Return a piece that breaks after its brackets if it is long, and not after a minus if it is short."""
    markup = found[0]
    text = html.unescape(TAG.sub("", markup))
    if len(text) > LONG:
        return OPENING.sub(r"\1<wbr>", markup)
    return f'<span class="whole">{markup}</span>' if "-" in text and WHOLE.fullmatch(markup) else markup
