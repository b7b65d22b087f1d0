"""Tensors, with all their methods."""

from types import FunctionType

from .arithmetic import Arithmetic
from .core import Core
from .modes import seen
from .reading import Reading
from .reductions import Reductions
from .views import Views
from .writing import Writing

PLAIN = "__format__ __hash__ __iter__ __len__ __reduce__ __repr__ set_"  # and what only says what a tensor is


class Tensor(Views, Reading, Arithmetic, Reductions, Writing, Core):
    """Numbers of one type, with a shape."""

    __module__, __hash__ = __package__, Reading.__hash__


def _watch():
    """Let modes see the calls of all methods but the plain ones."""
    for kind in Views, Reading, Arithmetic, Reductions, Writing:
        for name, method in vars(kind).items():
            ours = name.startswith("_") and not name.startswith("__")
            if isinstance(method, FunctionType) and not ours and name not in PLAIN.split():
                setattr(Tensor, name, seen(method))


_watch()
