"""Private parts of Gluon: an instruction that it lacks, and launches that are taken over."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from triton import JITFunction
from triton._C.libtriton import ir
from triton.experimental.gluon.language import _core as gluon_core

from flashlib.private_apis.of_kernels import is_gluon


@gluon_core.builtin
def async_add_shared_to_global(tensor_desc: Any, coord: Any, src: Any, _semantic: Any = None) -> None:
    """Have the copy unit add a slot of shared memory to a tile in HBM, the only TMA instruction Gluon lacks."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, tensor_desc.handle, coord, src.handle)


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


def gluon_launches_taken(run: Callable[[Any, tuple, Any, dict], object]) -> AbstractContextManager:
    """Return a context in which run(kernel, arguments, grid, options) replaces launches in Gluon."""
    launch = JITFunction.run

    def taken(self, *arguments, grid, warmup, **options):
        if not is_gluon(self):
            return launch(self, *arguments, grid=grid, warmup=warmup, **options)
        return run(self, arguments, grid, options)

    return mock.patch.object(JITFunction, "run", taken)
