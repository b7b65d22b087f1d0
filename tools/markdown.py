"""Tables in Markdown, and the marked places in a text where they belong."""


def table(titles, rows) -> str:
    """Return a table from titles and rows of cells; None becomes a dash."""
    cells = [["-" if cell is None else cell for cell in row] for row in rows]
    lines = ["| " + " | ".join(map(str, row)) + " |\n" for row in (titles, *cells)]
    return "".join([lines[0], "|---" * len(titles) + "|\n", *lines[1:]])


def number(value, digits=0) -> str | None:
    """Return a number with so many digits after the point; None for None."""
    return None if value is None else f"{value:,.{digits}f}"


def replaced(text, name, made) -> str:
    """Return the text with `made` between the two comments of that name."""
    before, _, rest = text.partition(_start(name))
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    if not end:
        raise ValueError(f"there are no lines {_start(name)!r} and '<!-- end of {name} -->' in the text")
    return f"{before}{_start(name)}\n{made}{end}{after}"


def holds(text, name) -> bool:
    """Return whether a text has the comments of that name."""
    return _start(name) in text


def _start(name):
    return f"<!-- {name}: made by tools/tables.py -->"
