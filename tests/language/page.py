"""Write a page with every widget in it, and a card of each kind: python -m tests.language.page FOLDER"""

import json
import sys
from pathlib import Path

from flashlib import checks, widgets
from flashlib.checks.engine import prediction
from flashlib.widgets import modules
from flashlib.widgets.compiler_lab import CompilerLab
from web import build, scripts, states

HEAD = """<!DOCTYPE html><meta charset="utf-8"><body data-jp-theme-light="true">
<script>globalThis.flashSite = { widgets: {}, recorded: {} };</script>"""


def shown():
    """Yield the name and the widget of each place."""
    for name in widgets.__all__:
        yield name, getattr(widgets, name)()
    yield "CompilerLab", CompilerLab()
    kinds = {}
    for name in prediction.questions():
        card = checks.predict(name)
        kinds.setdefault((card.card["fields"][0]["kind"], len(card.card["fields"]) > 1), (name, card))
    yield from kinds.values()


def main():
    folder = Path(sys.argv[1])
    told = {name: states.for_page(widget) for name, widget in shown()}
    for name, text in scripts.files().items():
        (folder / name).write_text(text, encoding="utf-8")
    site = modules.join(build.HERE / "page" / "main.js")
    (folder / "site.js").write_text(f'"use strict";\n(() => {{\n{site}\n}})();\n', encoding="utf-8")
    used = sorted({one["class"] for one in told.values()})
    text = json.dumps(told, ensure_ascii=False).replace("</", "<\\/")
    parts = [
        HEAD,
        *(f'<div class="widget" data-place="{name}"></div>' for name in told),
        f'<script id="states" type="application/vnd.jupyter.widget-state+json">{text}</script>',
        *(f'<link rel="stylesheet" href="{name}">' for name in (scripts.SHARED, *(f"{one}.css" for one in used))),
        *(f'<script src="{name}.js"></script>' for name in (*used, "site")),
    ]
    (folder / "index.html").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
