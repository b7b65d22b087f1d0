"""The private parts of Triton and torch that flashlib uses, which any new version may change: all are here.

`private_apis_tried` lists them, says with which versions they were tried, and what to do on a new one.
"""

import atexit
import copy
import dataclasses
import functools
import inspect
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import numpy as np
import torch
import triton
import triton.language as tl
from torch.autograd import forward_ad
from triton import JITFunction, knobs
from triton._C.libtriton import ir
from triton.compiler.errors import CompilationError
from triton.experimental.gluon.language import _core as gluon_core
from triton.runtime import Autotuner, cache, driver, interpreter

if TYPE_CHECKING:
    from triton.compiler import CompiledKernel

    from flashlib.checks.harness.watch import Watch

# --- torch ---


def in_forward_mode() -> bool:
    """Return whether tensors may carry tangents, inside of torch.func.jvp or torch.autograd.forward_ad."""
    return forward_ad._current_level >= 0


def is_transformed() -> bool:
    """Return whether torch.func transforms what is called."""
    return torch._C._are_functorch_transforms_active()


def is_dispatched() -> bool:
    """Return whether a mode of torch's dispatcher is on, which may replace tensors by others."""
    return bool(torch._C._len_torch_dispatch_stack())


def untransformed(function: type[torch.autograd.Function]) -> Callable:
    """Return its `apply` for where torch.func transforms nothing, which is 2 us faster.

    Torch's own looks for tensors that a transform left behind. They have no memory, so a call that has looked for
    that has met none.
    """
    return super(torch.autograd.Function, function).apply  # type: ignore[misc]


def times_written(X: torch.Tensor) -> int:
    """Return how often torch wrote to a tensor."""
    return X._version


def let_flex_recompile() -> None:
    """Let torch.compile make flex_attention for each shape, and its backward pass run more than once."""
    from torch._dynamo import config as dynamo
    from torch._functorch import config as functorch

    functorch.donated_buffer = False
    dynamo.recompile_limit = 100  # else it goes back to eager and does not say so


def graphs_made() -> tuple[int, int]:
    """Return how many graphs torch.compile has made in this process, and how often it broke off a graph."""
    from torch._dynamo.utils import counters

    return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())


def symmetric_memory(n_bytes: int, device: torch.device, group: Any) -> tuple[torch.Tensor, Any]:
    """Return memory of a GPU that every rank of a group can read, and its handle.

    All ranks of the group ask at once, and for as much. handle: has get_buffer(rank, sizes, dtype, offset).
    """
    from torch.distributed import _symmetric_memory as symmetric

    memory = symmetric.empty(n_bytes, dtype=torch.uint8, device=device)
    return memory, symmetric.rendezvous(memory, group)


def rotate_context_parallel(method: str) -> None:
    """Choose how torch's context_parallel moves K and V: "allgather" or "alltoall"."""
    from torch.distributed.tensor.experimental import _attention

    _attention.set_rotate_method(method)


# --- launches ---


def interpreted() -> bool:
    """Return whether Triton interprets the kernels that are decorated now."""
    return bool(knobs.runtime.interpret)


def relaunch(compiled: "CompiledKernel", grid: tuple[int, int, int], last: tuple) -> Callable[..., None]:
    """Return launch(given, sizes, stream), which launches a compiled kernel with these arguments, and then `last`.

    Without hooks it leaves out their arguments, which saves the CPU a third of the time. stream: see
    `current_stream`; None for that of the current device.
    """
    begin, before = _launcher(compiled, grid)
    hooks = knobs.runtime

    def launch(given, sizes, stream=None):
        if hooks.launch_enter_hook.calls or hooks.launch_exit_hook.calls:
            compiled[grid](*given, *sizes, *last)
        else:
            if stream is None:
                stream = current_stream(driver.active.get_current_device())
            begin(*grid, stream, *before, (*given, *sizes, *last))

    return launch


def _launcher(compiled, grid):
    """Return begin, and what it takes between grid and stream and the kernel's arguments, in one tuple; no hooks.

    Where no scratch memory is to be found, that is what Triton's launcher for NVIDIA's GPUs calls in the end, with
    what it was seen to hand on: to leave the launcher out saves half a us.
    """
    run, nothing = compiled.run, (None, None, None)  # what hooks get, and those before and after
    before, args, stream, seen = (compiled.function, compiled.packed_metadata, *nothing), ("args",), object(), []
    if type(run).__name__ == "CudaLauncher" and not (run.global_scratch_size or run.profile_scratch_size):
        alike = copy.copy(run)
        alike.launch = lambda *handed: seen.append(handed)
        alike(*grid, stream, *before, *args)
        (handed,) = seen
        if handed[:4] == (*grid, stream) and handed[-1] == args:  # before Triton 3.7 it was otherwise
            return run.launch, handed[4:-1]
    return lambda *given: run(*given[:-1], *given[-1]), before


def current_stream(index: int) -> int:
    """Return the stream on which torch works on a GPU now, for several launches of one call."""
    return driver.active.get_current_stream(index)


def device_properties(index: int) -> dict:
    """Return what the driver says of a GPU."""
    return driver.active.utils.get_device_properties(index)


def unchecked(descriptor: type) -> type:
    """Return a kind of tensor descriptor that is not checked as it is made, which takes the CPU 4 us."""
    return type(f"Unchecked{descriptor.__name__}", (descriptor,), {"__post_init__": lambda self: None})


# --- reports on compiled kernels ---


class _NoDevice:
    """What Triton asks of a driver while it compiles."""

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
    """Let kernels be compiled for a GPU that need not be there.

    capability: ten times NVIDIA's number, or the name of an architecture of AMD's with wavefronts of 64.
    """
    driver.set_active(_NoDevice(capability))


def replace_run(run: Callable) -> Callable:
    """Let run(kernel, *args, grid, warmup, **options) take the place of every launch; return what it replaced."""
    before, JITFunction.run = JITFunction.run, run
    return before


def stopped_at_ttgir(stop: Callable[[object], object]) -> AbstractContextManager:
    """Return a context in which stop(ttgir) takes the place of what makes LLVM's code from TTGIR."""
    from triton.backends.amd.compiler import HIPBackend
    from triton.backends.nvidia.compiler import CUDABackend

    context = ExitStack()
    for backend in (CUDABackend, HIPBackend):
        context.enter_context(mock.patch.object(backend, "make_llir", lambda _, ttgir, *__: stop(ttgir)))
    return context


def stopped_at_shared_memory(stop: Callable[[int], object]) -> AbstractContextManager:
    """Return a context in which stop(shared) takes the place of what makes LLVM's code, which may take a minute.

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
    """Let a kernel be compiled anew."""
    kernel.device_caches.clear()


def show_ptxas() -> None:
    """Compile all anew, since Triton's cache does not keep what ptxas says, and print that."""
    knobs.compilation.always_compile = knobs.nvidia.dump_ptxas_log = True


def compiles_always() -> bool:
    """Return whether nothing that was compiled before is used, as TRITON_ALWAYS_COMPILE=1 asks."""
    return knobs.compilation.always_compile


def ptxas() -> str:
    """Return where NVIDIA's assembler is; raise RuntimeError if it is missing."""
    return knobs.nvidia.ptxas.path


def located(error: BaseException) -> tuple[str, int] | None:
    """Return the text of a function and which of its lines the compiler refuses, from 1; None if not known."""
    line = getattr(getattr(error, "node", None), "lineno", None)
    return (error.src, line) if isinstance(error, CompilationError) and error.src and line else None


def refusal(error: BaseException) -> str:
    """Return what an error of Triton's says, without the lines of the program."""
    said = error.error_message if isinstance(error, CompilationError) else str(error)
    return (said or "").strip()


def nvdisasm() -> str:
    """Return where NVIDIA's disassembler is; raise RuntimeError if it is missing."""
    return knobs.nvidia.nvdisasm.path


def cache_of(key: str) -> "cache.CacheManager":
    """Return a folder of Triton's cache, with get_file(name) and put(data, name, binary)."""
    return cache.get_cache_manager(key)


def ensure_cache() -> None:
    """Have Triton keep what it compiles in a temporary folder, until Python ends, where it cannot in its own.

    Its own is in the home folder, which a user may not have, or what TRITON_CACHE_DIR names.
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


# --- kernels in the interpreter ---


def interpret_language() -> None:
    """Replace Triton's own functions that were made for the compiler, as Triton was imported early.

    They are replaced in all modules that are loaded: whoever imported `cdiv` before has the same one as Triton.
    """
    modules = {name: vars(module) for name, module in list(sys.modules.items()) if isinstance(module, ModuleType)}
    own = [names for module, names in modules.items() if module.startswith("triton.")]
    compiled = {id(f): f for names in own for f in names.values() if type(f) is JITFunction}
    made = {key: triton.jit(f.fn) for key, f in compiled.items()}
    for names in modules.values() if made else ():
        names.update({name: made[id(value)] for name, value in list(names.items()) if id(value) in made})
    for key, function in compiled.items():
        if vars(tl.tensor).get(function.__name__) is function:
            tl.core._tensor_member_fn(made[key])


def replace_in_interpreter(
    *, patch_lang: Callable, np_dtype: Callable, block_type: Callable, tensor: Callable, handle: Callable,
    builtins: Callable, cast: Callable, broadcast: Callable, operands: Callable,
) -> None:  # fmt: skip
    """Replace parts of the interpreter by what these functions make of them, and leave out a test of integers.

    One thread launches at a time, since a launch changes `triton.language` for all of them.

    patch_lang: takes what prepares `triton.language` for a function; np_dtype: takes what gives the NumPy dtype of
    a type; block_type: takes the __init__ of block types and returns __new__ and __init__; tensor: the __init__ of
    tensors; handle: takes the __init__ of their handles. builtins: takes what finds (name, function) of the
    builtins of a module or a class, and returns what finds those to put there. cast, broadcast, operands: take
    what makes of tensors those of another type, of one shape, and of one type and shape; operands also gets the
    new broadcast.
    """
    kernels, turn = interpreter.InterpretedFunction, threading.RLock()
    kernels.run = _in_turn(kernels.run, turn)
    interpreter._patch_lang = patch_lang(interpreter._patch_lang)
    builder = interpreter.interpreter_builder
    # Whether a sum of integers leaves its type: eight operations on each, and nobody reads their result.
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    interpreter._get_np_dtype = np_dtype(interpreter._get_np_dtype)
    tl.block_type.__new__, tl.block_type.__init__ = block_type(tl.block_type.__init__)
    tl.tensor.__init__ = tensor
    Handle.__init__ = handle(Handle.__init__)
    called = builtins(_builtins)
    interpreter._patch_builtin = lambda part, _, scope: [scope.set_attr(part, *pair) for pair in called(part)]
    semantic = interpreter.interpreter_semantic
    semantic.cast = cast(semantic.cast)
    semantic.broadcast_impl_value = broadcast(semantic.broadcast_impl_value)
    semantic.binary_op_type_checking_impl = operands(
        semantic.binary_op_type_checking_impl, semantic.broadcast_impl_value
    )


def _builtins(part):
    return [(name, member) for name, member in inspect.getmembers(part) if tl.core.is_builtin(member)]


def interpreted_call(builtin: Callable) -> Callable:
    """Return a builtin of `triton.language` as the interpreter calls it."""
    f, semantic = getattr(builtin, "__wrapped__", builtin), interpreter.interpreter_semantic

    def call(*arguments, **options):
        options["_semantic"] = semantic
        return f(*arguments, **options)

    return call


Handle: Any = interpreter.TensorHandle  # of numbers, as an array, and their type: what a tensor is made of


class _Shape(NamedTuple):
    """What create_splat asks of a type."""

    shape: tuple[int, ...]


def widened_handle(x: tl.tensor, dims: tuple[int, ...]) -> object:
    """Return the handle of a tensor that is repeated to a shape, which has as many axes as x, or x has none."""
    builder = interpreter.interpreter_builder
    if x.type.is_block():
        return builder.create_broadcast(x.handle, dims)
    return builder.create_splat(_Shape(dims), x.handle)


def _in_turn(launch, turn):
    @functools.wraps(launch)
    def run(*arguments, **options):
        with turn:
            return launch(*arguments, **options)

    return run


def nothing_to_restore() -> object:
    """Return what `patch_lang` returns where it has changed nothing."""
    return interpreter._LangPatchScope()


# --- kernels in Gluon ---


@gluon_core.builtin
def async_add_shared_to_global(tensor_desc: Any, coord: Any, src: Any, _semantic: Any = None) -> None:
    """Have the copy unit add a slot of shared memory to a tile in HBM: of TMA, Gluon lacks only this one."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, tensor_desc.handle, coord, src.handle)


def is_gluon(kernel: Any) -> bool:
    """Return whether a kernel is in Gluon."""
    return type(kernel).__name__ == "GluonJITFunction"


def gluon_launches_taken(run: Callable[[Any, tuple, Any, dict], object]) -> AbstractContextManager:
    """Return a context in which run(kernel, arguments, grid, options) takes the place of launches in Gluon."""
    launch = JITFunction.run

    def taken(self, *arguments, grid, warmup, **options):
        if not is_gluon(self):
            return launch(self, *arguments, grid=grid, warmup=warmup, **options)
        return run(self, arguments, grid, options)

    return mock.patch.object(JITFunction, "run", taken)


# --- checks of kernels ---


def is_kernel(x: object) -> bool:
    """Return whether x is a kernel of Triton, compiled or interpreted."""
    return type(x).__name__ in ("JITFunction", "InterpretedFunction")


def function_of(x: Any) -> FunctionType | None:
    """Return the Python function that a kernel of Triton or Gluon was made of, None for what is not a kernel."""
    return x.fn if is_kernel(x) or is_gluon(x) else None


def is_constant(x: object) -> bool:
    """Return whether x is a constant of a kernel."""
    return isinstance(x, tl.constexpr)


def is_language(x: object) -> bool:
    """Return whether x is marked as a part of Triton's language."""
    return getattr(x, "__triton_builtin__", False) or getattr(x, "__triton_aggregate__", False)


class _Mask(NamedTuple):
    """A mask as the interpreter takes it."""

    data: np.ndarray


def exchanged_in_compiler(watch: "Watch") -> list:
    """Return (class, name, replacement) of each method to exchange so that a Watch sees launches."""
    run = JITFunction.run

    def counted(self, *arguments, grid, warmup, **options):
        if not warmup:
            watch.launched(self.fn)
        return run(self, *arguments, grid=grid, warmup=warmup, **options)

    return [(JITFunction, "run", counted)]


def exchanged_in_interpreter(watch: "Watch") -> list:
    """Return the same for the interpreter, so that a Watch sees launches, loads, stores and products."""
    builder, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
    call, moved = executor.__call__, executor._init_args_hst

    def launch(self, *arguments, **options):
        watch.launched(self.fn)
        return call(self, *arguments, **options)

    def move(self, given, options):
        values, named = moved(self, given, options)
        names = (*self.arg_names[: len(given)], *options)
        watch.let(names, (*given, *options.values()), (*values, *named.values()))
        return values, named

    return [
        (executor, "__call__", launch),
        (executor, "_init_args_hst", move),
        (builder, "set_grid_idx", _program(watch, builder.set_grid_idx)),
        *((builder, name, new) for name, new in _memory(watch, builder).items()),
        (builder, "create_dot", _product(watch, builder.create_dot)),
        (Autotuner, "do_bench", property(lambda self: lambda call, quantiles: [0.0] * len(quantiles))),
    ]


def _memory(watch, builder) -> dict:
    """Return the methods of a builder to exchange, by name, so that a Watch sees loads and stores."""
    load, plain, store = builder.create_masked_load, builder.create_load, builder.create_masked_store
    add, exchange = builder.create_atomic_rmw, builder.create_atomic_cas
    masked = True

    def lanes(pointers, mask, **how):
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        return _Mask(watch.lanes(pointers.data, size, mask, **how))

    def create_load(self, *arguments):
        nonlocal masked
        masked = False
        try:
            return plain(self, *arguments)
        finally:
            masked = True

    def create_masked_load(self, ptrs, mask, other, *others, **options):
        if masked and other is None:
            type = ptrs.get_element_ty()
            held = watch.hidden(ptrs.data, mask.data, interpreter._get_np_dtype(type), type.name)
            other = other if held is None else Handle(held, type)
        return load(self, ptrs, lanes(ptrs, mask.data, masked=masked), other, *others, **options)

    def create_masked_store(self, ptrs, value, mask, *others):
        return store(self, ptrs, value, lanes(ptrs, mask.data, store=True), *others)

    def create_atomic_rmw(self, operation, ptr, value, mask, *others):
        return add(self, operation, ptr, value, lanes(ptr, mask.data, store=True), *others)

    def create_atomic_cas(self, ptr, *others):
        if not lanes(ptr, np.ones_like(ptr.data, bool), store=True).data.all():
            raise ValueError("atomic_cas on memory that belongs to no tensor")
        return exchange(self, ptr, *others)

    made = create_load, create_masked_load, create_masked_store, create_atomic_rmw, create_atomic_cas
    return {function.__name__: function for function in made}


def _program(watch, begin):
    def set_grid_idx(self, *at):
        watch.programs += 1
        return begin(self, *at)

    return set_grid_idx


def _product(watch, dot):
    def create_dot(self, a, b, d, precision, *others):
        watch.products[(*a.data.shape[-2:], b.data.shape[-1])] += 1
        if "fp32" in (a.dtype.scalar.name, b.dtype.scalar.name) and precision.name != "IEEE":
            watch.tf32 = True
        return dot(self, a, b, d, precision, *others)

    return create_dot


def launches_seen(see: Callable[[Any, tuple, dict], object]) -> AbstractContextManager:
    """Return a context in which see(kernel, arguments, options) is called before a launch in the interpreter."""
    kernels = interpreter.InterpretedFunction
    run = kernels.run

    def seen(self, *arguments, grid, warmup, **options):
        see(self, arguments, options)
        return run(self, *arguments, grid=grid, warmup=warmup, **options)

    return mock.patch.object(kernels, "run", seen)


def selections_seen(see: Callable[[np.ndarray], object]) -> AbstractContextManager:
    """Return a context in which see(condition) is called for each tl.where in the interpreter; it is an array."""
    builder = interpreter.InterpreterBuilder
    select = builder.create_select

    def create_select(self, condition, *others):
        see(condition.data)
        return select(self, condition, *others)

    return mock.patch.object(builder, "create_select", create_select)


def conditions_refused(refuse: Callable[[], object]) -> AbstractContextManager:
    """Return a context in which refuse() is called for an `if` on a tile in the interpreter, to which it is True.

    Triton itself may ask.
    """
    prepare, triton_files = interpreter._patch_lang_tensor, os.path.dirname(triton.__file__)

    def prepared(tensor, scope):
        prepare(tensor, scope)
        truth = tensor.__bool__

        def of_one(self):
            if self.handle.data.size > 1 and not sys._getframe(1).f_code.co_filename.startswith(triton_files):
                refuse()
            return truth(self)

        scope.set_attr(tensor, "__bool__", of_one)

    return mock.patch.object(interpreter, "_patch_lang_tensor", prepared)
