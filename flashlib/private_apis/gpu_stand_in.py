"""A stand-in for a Hopper GPU, with which launchers of kernels in Gluon take tensors of a CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class StandIn(NamedTuple):
    """A stand-in for a Hopper GPU while launches in Gluon are taken over."""

    multiprocessors: int
    capability: tuple[int, int] = (9, 0)


_stand_in: StandIn | None = None


def stand_in() -> StandIn | None:
    """Return the current stand-in for a GPU, for tensors in the computer's memory, or None."""
    return _stand_in


@contextmanager
def standing_in(gpu: StandIn) -> Iterator[None]:
    """Use a stand-in for a GPU while this lasts: the launchers of kernels in Gluon then take tensors of a CPU."""
    global _stand_in
    before, _stand_in = _stand_in, gpu
    try:
        yield
    finally:
        _stand_in = before
