"""What the compiler makes of a kernel, for any GPU, present or not.

>>> from flashlib.kernels import compiled
>>> compiled.report(d=64, dtype="float16", B_r=64, B_c=64, num_warps=4).registers  # doctest: +SKIP
128
"""

import functools
import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import triton

from flashlib.gpus import GPU, GPUS
from flashlib.kernels import (
    DTYPES,
    backward,
    check_kernel_blocks,
    check_powers_of_two,
    forward,
    forward_ideas,
    ladder,
    listings,
    softmax,
)
from flashlib.kernels.compiler import CompileError, Compiler
from flashlib.kernels.hopper import forward as hopper_forward
from flashlib.kernels.hopper import ladder as hopper_ladder
from flashlib.state import check_causal, check_counts

MAX_STAGES = 8


class Multiprocessor(NamedTuple):
    """What the programs on one multiprocessor share, beside 64K registers, by compute capability.

    Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (gpus, warps,
    programs: the most there can be at a time); cuda_occupancy.h of the CUDA toolkit (unit: bytes, shared memory is
    handed out in multiples of it).
    """

    gpus: tuple[str, ...]
    warps: int
    programs: int
    unit: int

    @property
    def gpu(self) -> GPU:
        return GPUS[self.gpus[0]]


MULTIPROCESSORS = {
    75: Multiprocessor(("T4",), warps=32, programs=16, unit=256),
    80: Multiprocessor(("A100",), warps=64, programs=32, unit=128),
    89: Multiprocessor(("RTX 4090",), warps=48, programs=24, unit=128),
    90: Multiprocessor(("H100", "H200"), warps=64, programs=32, unit=128),
}
REGISTERS = 64 * 1024  # of a multiprocessor, 32 bits each
MAX_REGISTERS = 255  # of a thread


class Programs(NamedTuple):
    """How many programs a multiprocessor can hold at a time, by each of what they share."""

    registers: int
    shared: int
    warps: int


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel.

    kernel, d, dtype, causal, capability  as asked for
    B_r, B_c, num_warps, num_stages, descriptors  as asked for or as the kernel chose; None where it has no such.
               A kernel in Gluon has as many stages as its ring has slots, and num_warps are those of all its roles
    registers  of a thread, 32 bits each; where roles share them in other ways, at first
    spilled    bytes of a thread for which no register was left: they move to memory and back
    shared     bytes of shared memory that a program takes
    notes      what ptxas, which makes SASS from PTX, says about performance
    told       the options of the launch that only the compiler sees: (name, value)
    ttgir, ptx, sass  the listings, see `listings`; sass is "" if not asked for, or without a disassembler
    """

    kernel: str
    d: int
    dtype: str
    causal: bool
    capability: int
    B_r: int | None
    B_c: int | None
    num_warps: int
    num_stages: int
    descriptors: bool | None
    registers: int
    spilled: int
    shared: int
    notes: tuple[str, ...] = field(repr=False)
    told: tuple = field(repr=False)
    ttgir: str = field(repr=False)
    ptx: str = field(repr=False)
    sass: str = field(repr=False)

    @property
    def fits(self) -> bool:
        """Whether the GPU has the shared memory that a program takes."""
        return self.shared <= MULTIPROCESSORS[self.capability].gpu.block_sram

    @property
    def room(self) -> Programs:
        """How many programs fit on a multiprocessor by registers, shared memory and warps."""
        return programs(self.registers, self.shared, self.num_warps, self.capability)

    @property
    def programs(self) -> int:
        """How many programs one multiprocessor can hold at a time."""
        return min(self.room)

    @property
    def fingerprint(self) -> str:
        """A short hash of sass, which a change of names or comments leaves as it is; "" where there is no sass."""
        return fingerprint(self.sass)

    @property
    def roles(self) -> list[listings.Role]:
        """The roles that warps have, with the registers of each; `registers` is what the program starts with."""
        return listings.roles(self.sass)

    def loop(self, kind) -> str:
        """Return the loop over tiles in the listing `kind`, "ttgir", "ptx" or "sass"; "" if there is none."""
        return listings.inner_loop(kind, getattr(self, kind))

    def counts(self, kind, *, loop=False) -> dict[str, int]:
        """Return how often each of listings.INSTRUCTIONS stands in "ptx" or "sass", or in its loop over tiles."""
        return listings.counts(kind, self.loop(kind) if loop else getattr(self, kind))


class Launch(NamedTuple):
    """What a call launches: its Config, [B_r, B_c, num_warps, num_stages], and hashes of what it is compiled to.

    The first is of the TTGIR and of what else the compiler is told: in one version of Triton the same becomes the
    same SASS. None: not asked for.
    """

    config: list
    ttgir: str | None
    sass: str | None


def fingerprint(listing) -> str:
    """Return the first 12 hex digits of a listing's SHA-256, without the kernel's name; "" of no listing."""
    return hashlib.sha256(listings.without_name(listing).encode()).hexdigest()[:12] if listing else ""


def programs(registers, shared, num_warps, capability) -> Programs:
    """Return how many programs fit on one multiprocessor.

    registers: of a thread; shared: bytes of a program. A warp gets registers in multiples of 256, from one of the
    four parts of the multiprocessor, and each program also takes the shared memory that the system keeps.
    Source: cuda_occupancy.h of the CUDA toolkit.
    """
    limits = MULTIPROCESSORS[capability]
    gpu = limits.gpu
    of_warp = _up(registers * 32, 256)
    warps = REGISTERS // 4 // of_warp * 4
    taken = _up(shared + gpu.sram - gpu.block_sram, limits.unit)
    by_shared = gpu.sram // taken if taken else limits.programs
    return Programs(
        registers=warps // _up(num_warps, 4),
        shared=min(by_shared, limits.programs) if shared <= gpu.block_sram else 0,
        warps=min(limits.warps // num_warps, limits.programs),
    )


def _up(n, unit):
    return -(-n // unit) * unit


class Kernel(NamedTuple):
    """How a kernel comes to be launched.

    call: the function of its module that launches it. launched: its name there, where the call launches others
    too. options: with which the call launches it.
    """

    call: Callable
    launched: str | None = None
    options: dict = {}


@functools.cache
def kernels() -> dict[str, Kernel]:
    """Return what can be compiled: both passes, softmax, rungs with a kernel or without one idea; and Hopper's."""
    found = {
        "forward": Kernel(forward.attention),
        "backward_dkv": Kernel(backward.backward, "_dkv"),
        "backward_dq": Kernel(backward.backward, "_dq"),
        "backward_fused": Kernel(backward.backward, "_dkv", {"deterministic": False}),
        "softmax": Kernel(softmax.softmax),
    }
    found |= _rungs(ladder)
    found["without_common_wait"] = Kernel(ladder.r8_descriptors.attention, options={"common_wait": False})
    for idea in ("late_division", "parallel_rows", "split_rows"):
        found[f"without_{idea}"] = Kernel(forward_ideas.attention, options={idea: False})
    found |= {f"hopper_{name}": kernel for name, kernel in _rungs(hopper_ladder).items()}
    return found | {"hopper_forward": Kernel(hopper_forward.attention)}


def _rungs(package):
    """Return the rungs of a ladder that have a kernel."""
    found = {}
    for rung in pkgutil.iter_modules(package.__path__):
        module = vars(importlib.import_module(f"{package.__name__}.{rung.name}"))
        if "attention" in module and any(isinstance(x, triton.runtime.KernelInterface) for x in module.values()):
            found[rung.name] = Kernel(module["attention"])
    return found


def options_of(kernel) -> frozenset[str]:
    """Return which of causal, B_r, B_c, num_warps, num_stages and descriptors a kernel takes."""
    taken = inspect.signature(kernels()[kernel].call).parameters
    return frozenset(taken) & {"causal", "B_r", "B_c", "num_warps", "num_stages", "descriptors"}


def report(
    *, kernel="forward", d=128, dtype="bfloat16", causal=False, B_r=None, B_c=None, num_warps=None,
    num_stages=None, descriptors=None, capability=90, sass=True, shape=None,
) -> Compiled:  # fmt: skip
    """Compile a kernel for a GPU, and report the result; takes a second, the first time three, again none.

    kernel: one of `kernels()`: "forward"; "backward_dkv" and "backward_dq", the two passes that `backward` makes
    by default, or "backward_fused", the one in their place if deterministic=False; "softmax"; a rung of `ladder`;
    for capability 90 alone "hopper_forward" and the rungs of `hopper.ladder`, as "hopper_r1_alike".
    d: its head size, for "softmax" the length of a row. dtype: "float16", "bfloat16" or "float32". B_r, B_c: rows
    and keys of a tile; num_warps, num_stages, descriptors: as in the kernel's `attention` or `backward`; None, the
    default, lets the kernel choose. capability: of the GPU, ten times NVIDIA's number: 75, 80, 89 or 90. sass:
    whether to disassemble what the GPU would run. shape: (B, H_q, H_k, N) of the tensors, of which the compiler
    makes use, and by which a kernel chooses on a GPU as large as there is; default: as many heads of Q as of K and
    V, a long sequence, and programs enough.
    Raises TypeError or ValueError for what the kernel does not take, before any work where that can be known, and
    CompileError where the compiler cannot do it or takes longer than a minute.
    """
    sizes = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    asked = _checked(kernel, d, dtype, causal, capability, shape, descriptors=descriptors, **sizes)
    return _report(*asked, bool(sass))


def launch(
    *, kernel, d, shape, dtype="bfloat16", causal=False, B_r=None, B_c=None, num_warps=None, num_stages=None,
    descriptors=None, capability=90, until="sass",
) -> Launch:  # fmt: skip
    """Return what a call would launch; arguments and errors as of `report`.

    until: "config", without compiling; "ttgir", a fifth of a second; "sass", two seconds.
    """
    sizes = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    _check_choice(until=(until, ("config", "ttgir", "sass")))
    asked = _checked(kernel, d, dtype, causal, capability, shape, descriptors=descriptors, **sizes)
    config = [_ask(*asked, "config")[name] for name in sizes]  # not of the report: of warps with roles it has more
    if until == "config":
        return Launch(config, None, None)
    found = vars(_report(*asked, True)) if until == "sass" else _ask(*asked, until)
    sass = fingerprint(found["sass"]) if until == "sass" else None
    return Launch(config, hash_of(found["ttgir"], found["told"]), sass)


def hash_of(ttgir, told) -> str:
    """Return the fingerprint of TTGIR and of the options that only the compiler sees, (name, value) in order."""
    return fingerprint("\n".join([ttgir, *(f"{name}={value}" for name, value in told)]))


def _checked(kernel, d, dtype, causal, capability, shape, **options) -> tuple:
    """Return the arguments of `_ask` but the last; raise for what the kernel does not take."""
    options = {name: value for name, value in options.items() if value is not None}
    _check(kernel, d, dtype, causal, capability, options, shape)
    options = tuple((name, value if name == "descriptors" else int(value)) for name, value in options.items())
    shape = None if shape is None else tuple(map(int, shape))
    return kernel, int(d), dtype, bool(causal), int(capability), options, shape


def _check(kernel, d, dtype, causal, capability, options, shape):
    _check_choice(kernel=(kernel, kernels()))
    _check_choice(dtype=(dtype, [str(accepted).removeprefix("torch.") for accepted in DTYPES]))
    _check_choice(capability=(capability, MULTIPROCESSORS))
    check_counts(at_least=1, d=d)
    check_causal(causal)
    taken = options_of(kernel)
    for name in options:
        if name not in taken:
            raise ValueError(f"{name} is {options[name]!r}; {kernel} has no such option: leave it out")
    if causal and "causal" not in taken:
        raise ValueError(f"causal is {causal}; {kernel} has no mask: leave it out")
    check_kernel_blocks(**{name: options[name] for name in ("B_r", "B_c") if name in options})
    if "num_warps" in options:
        check_powers_of_two(1, 16, num_warps=options["num_warps"])
    if "num_stages" in options:
        check_counts(at_least=1, num_stages=options["num_stages"])
        if options["num_stages"] > MAX_STAGES:
            raise ValueError(f"num_stages is {options['num_stages']}; at most {MAX_STAGES} are compiled here")
    if not isinstance(options.get("descriptors", True), bool):
        raise TypeError(f"descriptors is {options['descriptors']!r}; pass True or False, or None to choose")
    if shape is not None:
        if kernel == "softmax":
            raise ValueError(f"shape is {shape}; softmax takes rows of length d: leave it out")
        if len(shape) != 4:
            raise ValueError(f"shape is {shape}; pass (B, H_q, H_k, N)")
        check_counts(at_least=1, **dict(zip(("B", "H_q", "H_k", "N"), shape, strict=True)))


def _check_choice(**choices):
    for name, (value, accepted) in choices.items():
        if isinstance(value, bool) or value not in list(accepted):
            raise ValueError(f"{name} is {value!r}; accepted are {', '.join(map(str, accepted))}")


@functools.lru_cache(maxsize=64)
def _report(kernel, d, dtype, causal, capability, options, shape, sass):
    became = _ask(kernel, d, dtype, causal, capability, options, shape, "sass" if sass else "cubin")
    asked = {"kernel": kernel, "d": d, "dtype": dtype, "causal": causal, "capability": capability}
    return made(became, **asked)


def made(became, **asked) -> Compiled:
    """Return the Compiled of such an answer. asked: kernel, d, dtype, causal and capability."""
    lists = {"notes": tuple(became["notes"]), "told": tuple(map(tuple, became["told"]))}
    return Compiled(**asked, **{name: value for name, value in became.items() if name != "names"} | lists)


def _ask(kernel, d, dtype, causal, capability, options, shape, until) -> dict:
    """Return the answer of the process that compiles; until: "config", "ttgir", "cubin" or "sass"."""
    asked = {"kernel": kernel, "d": d, "dtype": dtype, "causal": causal, "capability": capability}
    call, launched, fixed = kernels()[kernel]
    called = {"module": call.__module__, "call": call.__name__, "launched": launched}
    rest = {"options": dict(options) | fixed, "shape": shape, "until": until}
    return answered(asked | called | rest)


def answered(request) -> dict:
    """Return the answer of `flashlib.kernels.compiling` to a request; raise what it says must be raised."""
    gpu = MULTIPROCESSORS[request["capability"]].gpu
    became = _compiler.ask(request | {"room": gpu.block_sram, "sms": gpu.sms})
    if "error" in became:
        name, sentence = became["error"]
        raise {"TypeError": TypeError, "ValueError": ValueError}.get(name, CompileError)(sentence)
    return became


_compiler = Compiler()
