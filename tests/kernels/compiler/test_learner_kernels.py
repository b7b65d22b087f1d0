"""Gluon kernels that are written in a notebook are compiled for a Hopper GPU, which need not be present."""

import importlib
import linecache
import sys
import zlib

import pytest

pytest.importorskip("cloudpickle")

import cloudpickle

from flashlib.kernels.compiler import learner_kernels
from flashlib.kernels.compiler.client import CompileError

CELL = '''
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

REGISTERS = gl.constexpr(gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]))


@gluon.jit
def arrived(desc, slot):
    """Have the copy unit bring the first tile, and wait for it."""
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    fence_async_shared()
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, [0, 0], full, slot)
    mbarrier.wait(full, 0)
    return slot.load(REGISTERS)


@gluon.jit
def copy_tile(desc, X_ptr):
    slot = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    tile = arrived(desc, slot)
    rows = gl.arange(0, desc.block_shape[0], layout=gl.SliceLayout(1, REGISTERS))
    cols = gl.arange(0, desc.block_shape[1], layout=gl.SliceLayout(0, REGISTERS))
    gl.store(X_ptr + rows[:, None] * desc.block_shape[1] + cols[None, :], tile)


def call(Q, K, V, causal):
    layout = gl.NVMMASharedLayout.get_default_for([64, Q.shape[-1]], gl.bfloat16)
    desc = TensorDescriptor.from_tensor(Q[0, 0], [64, Q.shape[-1]], layout)
    copy_tile[(1,)](desc, V)
'''


def defined(cell):
    """Return what a cell defines, run as in a notebook: Triton finds its lines in linecache, not in a file."""
    name = f"cell {zlib.crc32(cell.encode())}"  # other lines, another name
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    names = {"__name__": "__main__"}
    exec(compile(cell, name, "exec"), names)
    return names


@pytest.mark.compiles
@pytest.mark.parametrize("d", [64, 128])
def test_a_gluon_kernel_and_what_it_calls_are_compiled(d):
    (report,) = learner_kernels.reports(defined(CELL)["call"], "attention", d=d)
    assert report.kernel == "copy_tile" and report.shared >= 64 * d * 2
    for instruction in ("mbarrier.init", "cp.async.bulk.tensor.2d", "mbarrier.try_wait.parity"):
        assert report.ptx.count(instruction) == 1, instruction
    assert "ttng.async_tma_copy_global_to_local" in report.ttgir


def test_an_error_in_a_gluon_kernel_is_reported_in_a_sentence():
    with pytest.raises(CompileError, match="waits") as told:
        learner_kernels.reports(
            defined(CELL.replace("mbarrier.wait(", "mbarrier.waits("))["call"], "attention", d=64
        )
    assert "\n" not in str(told.value)


def test_a_file_that_only_this_process_finds_is_sent_along(tmp_path, monkeypatch):
    (tmp_path / "my_copying.py").write_text(CELL, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("my_copying")
    try:
        (report,) = learner_kernels.reports(module.call, "attention", d=64)
    finally:
        del sys.modules["my_copying"]
    assert report.kernel == "copy_tile" and "my_copying" not in cloudpickle.list_registry_pickle_by_value()
