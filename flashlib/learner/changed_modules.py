"""Detect and undo changes that an answer makes in modules that its check uses too, such as `np.exp = mine`."""

import sys
from collections.abc import Iterator

ROOTS = ("builtins", "math", "numpy", "flashlib")  # torch itself changes others, such as inspect


def snapshot() -> list[tuple[str, dict, dict]]:
    """Return (name, its namespace, a copy of its functions and classes) for each module of ROOTS."""
    modules = {name: m for name, m in sys.modules.items() if m and name.split(".")[0] in ROOTS}
    found = [(name, vars(m)) for name, m in modules.items()]
    of_each = [(name, now, {key: x for key, x in now.items() if callable(x)}) for name, now in found]
    return [("sys.modules", sys.modules, modules), *of_each]


def restored(modules: list[tuple[str, dict, dict]]) -> Iterator[str]:
    """Undo the changes since a `snapshot`, and yield the names of what was changed.

    It calls only methods, as any function, even len, may have been replaced by the answer.
    """
    for name, now, before in modules:
        for key, value in before.items():
            if now.get(key) is not value:
                now[key] = value
                yield f"{name}.{key}"
