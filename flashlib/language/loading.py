"""Translate modules of flashlib that contain texts as they are imported.

Nothing is cached beside the source, as Python's own bytecode is that of the English text.
"""

import importlib.machinery
import sys

from flashlib.language import python, texts

ROOMS = (
    "widgets", "checks", "pictures", "learner", "inputs", "masks", "cache", "ring", "pipeline", "lowbit", "splits",
    "kernels.compiler", "language.phrases",
)  # fmt: skip
WITHOUT = ("solutions",)  # code that is read by a check


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        source = self.get_source(fullname)
        return compile(python.translated(source, texts.texts(), self.path), self.path, "exec", dont_inherit=True)


class _Finder(importlib.machinery.PathFinder):
    """Finds modules as Python does, and translates the texts in them."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        package, _, name = fullname.partition(".")
        if package != "flashlib" or not any(f"{name}.".startswith(f"{room}.") for room in ROOMS):
            return None
        if name.rpartition(".")[2] in WITHOUT:
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def begin() -> None:
    """Translate what is imported from now on, if a language other than English is chosen."""
    if texts.chosen() and _Finder not in sys.meta_path:
        texts.texts()  # so that a missing file is reported at once
        sys.meta_path.insert(0, _Finder)
