"""Join a widget's ES modules into one script, which is all that a bundler would do.

A module has `import { a, b } from "./other.js";` at its head and `export` before a name. Only the first module of
a widget has `export default`. In the script all names share one scope, so no two modules may declare the same
name. JSDoc, with the types, is for readers of the files and left out of the script.
"""

import os
import re
from pathlib import Path

from flashlib.language import script, texts

IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";\n+', re.M)
DECLARED = re.compile(r"^(export )?(?:async )?(?:function\*? ?|class |const |let )(\w+)", re.M)
JSDOC = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n", re.M | re.S)
REST = re.compile(r"^(?:import\b.*|export\b(?! default).*)", re.M)


def join(entry: Path) -> str:
    """Return the text of the module `entry`, preceded by those it imports, each once, in a browser's order.

    Raises ValueError for an import that is missing or circular, for a name declared twice, and for any form of
    import or export other than those above.
    """
    modules, declared = {}, {}  # path: (its text, the names it exports); name: where it is declared
    _add(os.path.normpath(entry), modules, declared, ())
    return "\n".join(text for text, _ in modules.values())


def _add(path, modules, declared, importers):
    if path in modules:
        return
    if path in importers:
        raise ValueError(f"{path} imports itself, by way of {importers[-1]}: move what both need to a third file")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        raise ValueError(
            f"{importers[-1] if importers else 'A widget'} imports {path}, which is not there"
        ) from None
    for names, other in IMPORT.findall(text):
        other = os.path.normpath(os.path.join(os.path.dirname(path), other))
        _add(other, modules, declared, (*importers, path))
        for name in filter(None, map(str.strip, names.split(","))):
            if name not in modules[other][1]:
                raise ValueError(f"{path} imports {name} from {other}, which does not export it")
    modules[path] = (
        script.translated(plain(text), texts.texts()),
        _exported(path, text, declared, entry=not importers),
    )


def plain(text: str) -> str:
    """Return the text of a module as it appears in a script: without its imports, `export` and JSDoc."""
    return DECLARED.sub(lambda found: found[0].removeprefix("export "), JSDOC.sub("", IMPORT.sub("", text)))


def _exported(path, text, declared, entry):
    """Return the names that a module exports; raise ValueError if something prevents joining it."""
    exported = set()
    for export, name in DECLARED.findall(text):
        if name in declared:
            raise ValueError(f"{path} and {declared[name]} both declare {name}: give one of them another name")
        declared[name] = path
        exported |= {name} if export else set()
    if not entry and "\nexport default" in text:
        raise ValueError(f"{path} is imported, so it cannot have an export default: export a name")
    if rest := REST.search(plain(text)):
        raise ValueError(
            f"{path}: cannot join {rest[0]!r}; accepted are import {{ a, b }} and export before a name"
        )
    return exported
