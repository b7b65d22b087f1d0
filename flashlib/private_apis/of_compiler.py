"""Private parts of Triton's compiler, for reports on compiled kernels."""

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from unittest import mock

from triton import JITFunction, knobs
from triton.compiler.errors import CompilationError
from triton.runtime import cache, driver


class _NoDevice:
    """What Triton needs from a driver while it compiles."""

    def __init__(self, capability):
        self.capability = capability

    def get_current_device(self):
        return self.capability  # the key of Triton's kernels in memory

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        of_amd = isinstance(self.capability, str)
        return GPUTarget(*("hip", self.capability, 64) if of_amd else ("cuda", self.capability, 32))


def pretend_gpu(capability: int | str) -> None:
    """Make Triton compile kernels for a GPU that need not be present.

    capability: ten times NVIDIA's number, or the name of an AMD architecture with wavefronts of 64.
    """
    driver.set_active(_NoDevice(capability))


def replace_run(run: Callable) -> Callable:
    """Replace every launch by run(kernel, *args, grid, warmup, **options); return the function it replaces."""
    before, JITFunction.run = JITFunction.run, run
    return before


def stopped_at_ttgir(stop: Callable[[object], object]) -> AbstractContextManager:
    """Return a context in which stop(ttgir) replaces the step from TTGIR to LLVM's code."""
    from triton.backends.amd.compiler import HIPBackend
    from triton.backends.nvidia.compiler import CUDABackend

    context = ExitStack()
    for backend in (CUDABackend, HIPBackend):
        context.enter_context(mock.patch.object(backend, "make_llir", lambda _, ttgir, *__: stop(ttgir)))
    return context


def stopped_at_shared_memory(stop: Callable[[int], object]) -> AbstractContextManager:
    """Return a context in which stop(shared) replaces the step to LLVM's code, which may take a minute.

    shared: bytes of shared memory that a program takes.
    """
    from triton.backends.nvidia import compiler

    def allocated(backend, ttgir, metadata, options, capability):
        passes = compiler.ir.pass_manager(ttgir.context)
        compiler.passes.ttgpuir.add_allocate_warp_groups(passes)
        compiler.passes.convert.add_scf_to_cf(passes)
        compiler.passes.gluon.add_inliner(passes)
        version = compiler.get_ptx_version_from_options(options, backend.target.arch)
        compiler.nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(passes, capability, version)
        passes.run(ttgir, "allocate")
        stop(ttgir.get_int_attr("ttg.shared"))

    return mock.patch.object(compiler.CUDABackend, "make_llir", allocated)


def forget_compiled(kernel: JITFunction) -> None:
    """Forget the compiled forms of a kernel, so that it is compiled anew."""
    kernel.device_caches.clear()


def show_ptxas() -> None:
    """Compile everything anew and print ptxas's messages, which Triton's cache does not keep."""
    knobs.compilation.always_compile = knobs.nvidia.dump_ptxas_log = True


def compiles_always() -> bool:
    """Return whether compiled kernels are never reused, as TRITON_ALWAYS_COMPILE=1 requests."""
    return knobs.compilation.always_compile


def ptxas() -> str:
    """Return the path of NVIDIA's assembler; raise RuntimeError if it is missing."""
    return knobs.nvidia.ptxas.path


def located(error: BaseException) -> tuple[str, int] | None:
    """Return the text of a function and which of its lines, from 1, the compiler refuses.

    Return None if it is unknown, or in a function of Triton.
    """
    line = getattr(getattr(error, "node", None), "lineno", None)
    if not isinstance(error, CompilationError) or not error.src or not line or error.src in _own_texts():
        return None
    return error.src, line


@functools.cache
def _own_texts():
    """Return the texts of Triton's own functions that are compiled as a kernel is, such as `zeros`."""
    from triton.experimental.gluon.language import _standard as of_gluon
    from triton.language import standard

    found = (one for module in (standard, of_gluon) for one in vars(module).values())
    return {one.src for one in found if isinstance(one, JITFunction)}


def refusal(error: BaseException) -> str:
    """Return the message of an error from Triton, without the lines of the program."""
    said = error.error_message if isinstance(error, CompilationError) else str(error)
    return (said or "").strip()


def nvdisasm() -> str:
    """Return the path of NVIDIA's disassembler; raise RuntimeError if it is missing."""
    return knobs.nvidia.nvdisasm.path


def cache_of(key: str) -> "cache.CacheManager":
    """Return a folder of Triton's cache, with get_file(name) and put(data, name, binary)."""
    return cache.get_cache_manager(key)


def ensure_cache() -> None:
    """Make Triton cache compiled kernels in a temporary folder, until Python ends, if it cannot use its own.

    Its own is in the home folder, which a user may not have, or the one that TRITON_CACHE_DIR names.
    """
    folder = knobs.cache.dir
    try:
        os.makedirs(folder, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        os.environ["TRITON_CACHE_DIR"] = _temporary_cache()


@functools.cache
def _temporary_cache():
    folder = tempfile.mkdtemp(prefix="triton-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
