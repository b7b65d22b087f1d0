"""Devices, of which there is one, and the sizes of tensors."""

import math

NAMES = "cpu", "meta"  # on "meta" torch has tensors without memory, for their strides: here these have memory too


class device:
    """A place for tensors."""

    __module__ = __package__

    def __init__(self, type="cpu", index=None):
        name = type.type if isinstance(type, device) else str(type)
        self.type, self.index = name.partition(":")[0], index
        if self.type not in NAMES:
            raise RuntimeError(f"the stand-in for torch in this page has no device {name!r}: it has the CPU only")

    def __str__(self):
        return self.type

    def __repr__(self):
        return f"device(type={self.type!r})"

    def __eq__(self, other):
        return isinstance(other, device) and other.type == self.type

    def __hash__(self):
        return hash(self.type)


CPU = device()


class Size(tuple):
    """The shape of a tensor."""

    __module__ = __package__

    def numel(self):
        return math.prod(self)

    def __repr__(self):
        return f"torch.Size({list(self)})"


def sizes(given):
    """Return the sizes that a function was given, one by one or in a tuple or list."""
    if len(given) == 1 and isinstance(given[0], tuple | list):
        given = given[0]
    return tuple(int(n) for n in given)
