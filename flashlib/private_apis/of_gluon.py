"""Private parts of Gluon: an instruction that it lacks, and launches that are taken over."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
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


def gluon_launches_taken(run: Callable[[Any, tuple, Any, dict], object]) -> AbstractContextManager:
    """Return a context in which run(kernel, arguments, grid, options) replaces launches in Gluon."""
    launch = JITFunction.run

    def taken(self, *arguments, grid, warmup, **options):
        if not is_gluon(self):
            return launch(self, *arguments, grid=grid, warmup=warmup, **options)
        return run(self, arguments, grid, options)

    return mock.patch.object(JITFunction, "run", taken)
