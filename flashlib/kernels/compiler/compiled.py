"""What the compiler makes of a kernel, for any GPU by NVIDIA or AMD, present or not.

>>> from flashlib.kernels.compiler import compiled
>>> compiled.report(d=64, dtype="float16", B_r=64, B_c=64, num_warps=4).registers  # doctest: +SKIP
128
"""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flashlib.kernels.compiler import client, listings, registry
from flashlib.kernels.compiler.makers import Maker, maker_of
from flashlib.kernels.compiler.occupancy import (  # Speed names compiled.programs
    MULTIPROCESSORS,
    Programs,
    programs,
)


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel.

    kernel, d, dtype, causal, capability  as given
    B_r, B_c, num_warps, num_stages, descriptors  as given or as the kernel chose; None if it has no such option.
               A kernel in Gluon has as many stages as its ring has slots, and num_warps counts all its roles
    registers  of a thread, 32 bits each; at the start, if roles exchange them. AMD's: VGPRs and AGPRs
    agprs      how many of them are AGPRs, which only products read and write directly; 0 on NVIDIA's GPUs
    spilled    bytes of a thread for which no register was left: they move to memory and back
    shared     bytes of shared memory that a program takes, of LDS on AMD's GPUs
    notes      messages about performance of ptxas, which makes SASS from PTX
    compile_options  the options of the launch that only the compiler sees: (name, value)
    ttgir, ptx, sass, amdgcn  the listings, see `listings`; "" for those of the other maker's GPUs. sass is also ""
               if not requested, or without a disassembler
    """

    kernel: str
    d: int
    dtype: str
    causal: bool
    capability: int | str
    B_r: int | None
    B_c: int | None
    num_warps: int
    num_stages: int
    descriptors: bool | None
    registers: int
    agprs: int
    spilled: int
    shared: int
    notes: tuple[str, ...] = field(repr=False)
    compile_options: tuple = field(repr=False)
    ttgir: str = field(repr=False)
    ptx: str = field(repr=False)
    sass: str = field(repr=False)
    amdgcn: str = field(repr=False)

    @property
    def maker(self) -> Maker:
        """The maker of the GPU, with its terms and kinds of listings."""
        return maker_of(self.capability)

    @property
    def fits(self) -> bool:
        """Whether the GPU has enough shared memory for a program."""
        return self.shared <= MULTIPROCESSORS[self.capability].gpu.block_sram

    @property
    def room(self) -> Programs:
        """How many programs fit on a multiprocessor as far as registers, shared memory and warps go, each."""
        return programs(self.registers, self.shared, self.num_warps, self.capability)

    @property
    def programs(self) -> int:
        """How many programs one multiprocessor can hold at a time."""
        return min(self.room)

    @property
    def limited_by(self) -> list[str]:
        """The resources that leave no room for one more program, in the maker's terms."""
        names = self.maker.registers, self.maker.shared, self.maker.warps
        return [name for name, n in zip(names, self.room, strict=True) if n == self.programs]

    @property
    def fingerprint(self) -> str:
        """A short hash of the GPU's code, which names and comments do not change; "" without SASS."""
        return fingerprint(self.sass or self.amdgcn)

    @property
    def roles(self) -> list[listings.WarpRole]:
        """The roles of warps, with the registers of each; `registers` is the number at the program's start."""
        return listings.roles(self.sass)

    @property
    def has_roles(self) -> bool:
        """Whether the program's warps have roles."""
        return "ttg.warp_specialize" in self.ttgir

    def listing(self, kind: str) -> str:
        """Return a listing; kind: one of `maker.kinds`. "" if it is missing."""
        return getattr(self, kind)

    def loop(self, kind: str) -> str:
        """Return the loop over tiles in a listing; kind: one of `maker.kinds`. "" if there is none."""
        return listings.inner_loop(kind, self.listing(kind))

    def counts(self, kind: str, *, loop: bool = False) -> dict[str, int]:
        """Return how often each of listings.INSTRUCTIONS[kind] occurs in a listing, or in its loop over tiles."""
        return listings.counts(kind, self.loop(kind) if loop else self.listing(kind))


class CompiledLaunch(NamedTuple):
    """What a call launches: its Config, [B_r, B_c, num_warps, num_stages], and hashes of the compiled code.

    The first hash is of the TTGIR and the compile options: in one version of Triton, if these are equal, so is the
    SASS. None: not requested.
    """

    config: list
    ttgir: str | None
    sass: str | None


def fingerprint(listing: str) -> str:
    """Return the first 12 hex digits of a listing's SHA-256 without its names; "" for no listing."""
    return hashlib.sha256(listings.without_names(listing).encode()).hexdigest()[:12] if listing else ""


def report(
    *, kernel: str = "forward", d: int = 128, dtype: str = "bfloat16", causal: bool = False,
    B_r: int | None = None, B_c: int | None = None, num_warps: int | None = None, num_stages: int | None = None,
    descriptors: bool | None = None, capability: int | str = 90, sass: bool = True,
    shape: Sequence[int] | None = None,
) -> Compiled:  # fmt: skip
    """Compile a kernel for a GPU and report the result; takes a second, three the first time, none if repeated.

    kernel: one of `registry.all_kernels()`: "forward"; "backward_dkv" and "backward_dq", the two passes that
    `backward` makes by default, or "backward_fused", the single pass with deterministic=False; "softmax"; "merge",
    whose result has the dtype; a rung of `ladder`; for 89 and 90 "eight_bits" and "eight_bits_int8"; for
    capability 90 only "hopper_forward", "hopper_fp8", "hopper_int8", "hopper_backward", which at d = 256 is
    "hopper_dkv_256" and "hopper_dq_256", and the rungs of `hopper.ladder` and `hopper.backward_ladder`, such as
    "hopper_r1_alike" and "hopper_backward_r1_alike".
    d: its head size, for "softmax" the length of a row. dtype: "float16", "bfloat16" or "float32". B_r, B_c: rows
    and keys of a tile; num_warps, num_stages, descriptors: as in the kernel's `attention` or `backward`; None, the
    default, lets the kernel choose. capability: of the GPU, ten times NVIDIA's number: 75, 80, 89 or 90; or AMD's
    name of its architecture, "gfx942" for an MI300X or "gfx950" for an MI355X. sass: whether to disassemble
    NVIDIA's code. shape: (B, H_q, H_k, N) of the tensors, which the compiler uses, and from which a kernel makes
    its choices for the full GPU; default: as many heads of Q as of K and V, a long sequence, and enough programs.
    Raises TypeError or ValueError for what the kernel does not take, before any work if that can be known, and
    CompileError if the compiler cannot do it or takes longer than a minute.
    """
    sizes = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    asked = _checked(kernel, d, dtype, causal, capability, shape, descriptors=descriptors, **sizes)
    return _report(*asked, bool(sass))


def launch(
    *, kernel: str, d: int, shape: Sequence[int] | None, dtype: str = "bfloat16", causal: bool = False,
    B_r: int | None = None, B_c: int | None = None, num_warps: int | None = None, num_stages: int | None = None,
    descriptors: bool | None = None, capability: int | str = 90, until: str = "sass",
) -> CompiledLaunch:  # fmt: skip
    """Return what a call would launch; arguments and errors as in `report`.

    until: "config", without compiling; "ttgir", a fifth of a second; "sass", two seconds.
    """
    sizes = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    registry.check_choice(until=(until, ("config", "ttgir", "sass")))
    asked = *_checked(kernel, d, dtype, causal, capability, shape, descriptors=descriptors, **sizes), until
    found = _ask(*asked)
    if until == "config":
        return CompiledLaunch(found["config"], None, None)
    sass = fingerprint(found["sass"] or found["amdgcn"]) if until == "sass" else None
    return CompiledLaunch(found["config"], hash_of(found["ttgir"], found["compile_options"]), sass)


def hash_of(ttgir: str, compile_options: Iterable[tuple[str, object]]) -> str:
    """Return the fingerprint of TTGIR and of the options that only the compiler sees, (name, value) in order."""
    return fingerprint("\n".join([ttgir, *(f"{name}={value}" for name, value in compile_options)]))


def _checked(kernel, d, dtype, causal, capability, shape, **options) -> tuple:
    """Return all arguments of `_ask` except the last; raise for what the kernel does not take."""
    options = {name: value for name, value in options.items() if value is not None}
    registry.check(kernel, d, dtype, causal, capability, options, shape)
    options = tuple((name, value if name == "descriptors" else int(value)) for name, value in options.items())
    shape = None if shape is None else tuple(map(int, shape))
    capability = capability if isinstance(capability, str) else int(capability)
    return kernel, int(d), dtype, bool(causal), capability, options, shape


@functools.lru_cache(maxsize=64)
def _report(kernel, d, dtype, causal, capability, options, shape, sass):
    became = _ask(kernel, d, dtype, causal, capability, options, shape, "sass" if sass else "cubin")
    asked = {"kernel": kernel, "d": d, "dtype": dtype, "causal": causal, "capability": capability}
    return from_answer(became, **asked)


def from_answer(became: dict, **asked: str | int | bool) -> Compiled:
    """Return an answer as a Compiled. asked: kernel, d, dtype, causal and capability."""
    lists = {"notes": tuple(became["notes"]), "compile_options": tuple(map(tuple, became["compile_options"]))}
    rest = {name: value for name, value in became.items() if name not in ("config", "names")}
    fields: dict = asked | rest | lists
    return Compiled(**fields)


def _ask(kernel, d, dtype, causal, capability, options, shape, until) -> dict:
    """Return the answer of the process that compiles; until: "config", "ttgir", "cubin" or "sass"."""
    asked = {"kernel": kernel, "d": d, "dtype": dtype, "causal": causal, "capability": capability}
    call, launched, fixed = registry.all_kernels()[kernel]
    called = {"module": call.__module__, "call": call.__name__, "launched": launched}
    rest = {"options": dict(options) | fixed, "shape": shape, "until": until}
    return client.compile_for_gpu(asked | called | rest)
