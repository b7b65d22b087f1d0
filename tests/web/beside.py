"""The stand-ins of a page beside what they stand in for, in one process: `page_torch` and `page_libtriton`."""

import importlib.util
import sys

from web.live.kernel_files import STAND_INS


def _loaded(name, path):
    """Return the module in a file under another name than it has on a page."""
    folder = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folder)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page_memory = _loaded("page_memory", STAND_INS / "page_memory.py")
page_torch = _loaded("page_torch", STAND_INS / "torch" / "__init__.py")
page_libtriton = _loaded("page_libtriton", STAND_INS / "libtriton" / "__init__.py")
