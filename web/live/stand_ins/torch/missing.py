"""The error of a name that the stand-in lacks."""

import difflib
import opcode
import sys


class Missing(AttributeError):
    """The stand-in has no such name; the nearest one is looked for only when somebody reads the error."""

    def __init__(self, name, of, here):
        super().__init__(name)
        self.missing, self.of, self.here = name, of, here

    def __str__(self):
        said = f"the stand-in for torch in this page has no {self.of}.{self.missing}"
        names = [name for name in self.here if not name.startswith("_")]
        near = difflib.get_close_matches(self.missing, names, n=1, cutoff=0.5)
        return f"{said}; the nearest name that it has is {self.of}.{near[0]}" if near else said

    def __reduce__(self):
        return Missing, (self.missing, self.of, list(self.here))


def refuse(name, of, here):
    """Raise the error of a missing name: a plain one for names that Python itself looks for."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise Missing(name, of, here)


def module(of, here):
    """Return the `__getattr__` of a module with the names `here`."""

    def missing(name):
        try:
            refuse(name, of, here)
        except Missing as error:
            if _imports(sys._getframe(1)):  # Python would replace the error by one that says less
                raise ImportError(str(error)) from None
            raise

    return missing


def _imports(frame):
    """Return whether a frame is at `from module import name`."""
    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def no_gradients():
    """Raise the error of whoever asks for gradients."""
    raise RuntimeError("the stand-in for torch in this page computes no gradients")


def unless_plain(what, options):
    """Raise TypeError for options of a function that the stand-in lacks, other than None and False."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise TypeError(f"the stand-in for torch in this page has no {name}= in {what}")
