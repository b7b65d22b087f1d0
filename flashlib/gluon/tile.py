"""A tile in registers with its layout, as kernels in Gluon compute with it.

The compiler refuses an operation on tiles of different layouts, or crashes without a message. So each operation
here accepts tiles of one layout only, and names the layouts in its error.
"""

import operator
from typing import Any, NamedTuple

import torch
from triton.experimental.gluon import language as gl

from flashlib.gluon.integers import quotient, remainder
from flashlib.gluon.refused import Wrong


class Begun:
    """A product that was begun; its tile can be used once the role has waited for it."""

    def __init__(self, layout: object, shape: tuple) -> None:
        self.result: Any = None
        self.layout, self.shape = layout, shape

    @property
    def type(self) -> "Type":
        return Type(self.shape, self.layout)

    def __getattr__(self, name):
        raise Wrong("unwaited", what=f".{name}")


class Type(NamedTuple):
    shape: tuple
    layout: Any


class Tile:
    """Numbers, and the layout in which threads hold them; None: the compiler chooses it."""

    def __init__(self, data: torch.Tensor, layout: Any) -> None:
        self.data, self.layout = data, layout

    @property
    def type(self) -> Type:
        return Type(tuple(self.data.shape), self.layout)

    @property
    def shape(self) -> list[int]:
        return list(self.data.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.data.dtype

    def to(self, dtype: torch.dtype, bitcast: bool = False) -> "Tile":
        return Tile(self.data.view(dtype) if bitcast else self.data.to(dtype), self.layout)

    def reshape(self, *shape: Any) -> "Tile":
        return Tile(self.data.reshape(*shape), None)  # the compiler computes the layout

    def permute(self, *axes: Any) -> "Tile":
        return Tile(self.data.permute(*axes), None)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        new = [at for at, one in enumerate(index) if one is None]
        if not new or any(one is not None and not _is_all(one) for one in index):
            raise Wrong("index", given=index)
        layout = self.layout
        for axis in new:  # one at a time, as the compiler expands axes
            if layout is not None:
                if not isinstance(layout, gl.SliceLayout) or layout.dim != axis:
                    raise Wrong("no_slice", layout=told(layout), dim=axis)
                layout = layout.parent
        return Tile(self.data[index], layout)

    def __bool__(self):
        raise Wrong("tile_in_if")

    def __neg__(self):
        return Tile(-self.data, self.layout)

    def __invert__(self):
        return Tile(~self.data, self.layout)


def _is_all(index):
    return isinstance(index, slice) and index == slice(None)


def told(layout: Any) -> str:
    """Return a layout in one line."""
    if isinstance(layout, gl.SliceLayout):
        return f"SliceLayout({layout.dim}, {told(layout.parent)})"
    if isinstance(layout, gl.DotOperandLayout):
        return f"DotOperandLayout({layout.operand_index}, {told(layout.parent)}, {layout.k_width})"
    if isinstance(layout, gl.NVMMADistributedLayout):
        return f"NVMMADistributedLayout({layout.version}, {layout.warps_per_cta}, {layout.instr_shape})"
    return type(layout).__name__


def common(*operands: Any) -> Any:
    """Return the layout of the tiles among operands; raise Wrong if they have several, or if one is not done."""
    found = None
    for one in operands:
        if isinstance(one, Begun):
            raise Wrong("unwaited", what="arithmetic")
        if not isinstance(one, Tile) or one.layout is None:
            continue
        if found is not None and one.layout != found:
            raise Wrong("layouts", one=told(found), other=told(one.layout))
        found = one.layout
    return found


def applied(function: Any, *operands: Any) -> Any:
    """Apply a function to the numbers of tiles and scalars; return a Tile if any of them is one."""
    layout = common(*operands)
    if not any(isinstance(one, Tile) for one in operands):
        return function(*operands)
    return Tile(function(*(one.data if isinstance(one, Tile) else one for one in operands)), layout)


def _either_way(function):
    """Return the methods for an operator and for its reflected form."""
    return lambda self, other: applied(function, self, other), lambda self, other: applied(function, other, self)


_OWN = {"floordiv": quotient, "mod": remainder}  # Python's operators round down
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    _here, _there = _either_way(_OWN.get(_name) or getattr(operator, f"__{_name}__"))
    for _class in (Tile, Begun):
        setattr(_class, f"__{_name}__", _here)
        setattr(_class, f"__r{_name}__", _there)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _here, _ = _either_way(getattr(operator, f"__{_name}__"))
    for _class in (Tile, Begun):
        setattr(_class, f"__{_name}__", _here)
