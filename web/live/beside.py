"""The stand-ins of a page, loaded next to what they stand in for: as `page_torch` and `page_libtriton`."""

import importlib.util
import sys
from functools import cache

from web.live.kernel_files import STAND_INS

FILES = {
    "page_memory": "page_memory.py",  # its name on a page too: the others import it
    "page_torch": "torch/__init__.py",
    "page_libtriton": "libtriton/__init__.py",
}


@cache
def loaded(name):
    """Return the module with a stand-in; all callers share it."""
    if name != "page_memory":
        loaded("page_memory")
    path = STAND_INS / FILES[name]
    folder = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folder)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
