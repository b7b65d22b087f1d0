"""What an answer changed in modules that its check uses too, such as `np.exp = mine`; it is put back."""

import sys
from collections.abc import Iterator

ROOTS = ("builtins", "math", "numpy", "flashlib")  # torch changes others, such as inspect


def kept() -> list[tuple[str, dict, dict]]:
    """Return (name, what it has, a copy of its functions and classes) of each module that is looked at."""
    modules = {name: m for name, m in sys.modules.items() if m and name.split(".")[0] in ROOTS}
    found = [(name, vars(m)) for name, m in modules.items()]
    of_each = [(name, now, {key: x for key, x in now.items() if callable(x)}) for name, now in found]
    return [("sys.modules", sys.modules, modules), *of_each]


def changes(modules: list[tuple[str, dict, dict]]) -> Iterator[str]:
    """Put back what is changed in modules, as `kept` returned them, and yield its names.

    It calls methods alone, as each function, even len, may be one of the answer's.
    """
    for name, now, before in modules:
        for key, value in before.items():
            if now.get(key) is not value:
                now[key] = value
                yield f"{name}.{key}"
