"""How the attention kernels are launched: options, descriptors, and plans that are made once.

On a GPU a short call takes a few microseconds, and Python's work before it takes many times as long. Everything
that depends only on shapes, strides and dtypes is therefore decided once and kept: see `Plans` and `Launch`.
"""

import contextlib
import weakref
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
import triton
from triton import KernelInterface
from triton.tools.tensor_descriptor import TensorDescriptor

from flashlib.inputs import check_counts
from flashlib.kernels import INTERPRETED
from flashlib.kernels.launch import tile_sizes
from flashlib.kernels.launch.inputs import check_kernel_blocks, check_powers_of_two
from flashlib.masks import Mask, check_mask
from flashlib.private_apis import of_driver, of_torch

P = TypeVar("P")  # a plan: each module has its own
UNIT = 16  # elements; a kernel that gets strides in units of 16 knows that its loads are aligned


def launch_options(B_r: int | None, B_c: int | None, num_warps: int | None, num_stages: int | None) -> dict:
    """Return the options that are not None, named as in a Config; raise TypeError or ValueError for bad ones."""

    def given(**options):
        return {name: value for name, value in options.items() if value is not None}

    check_kernel_blocks(**given(B_r=B_r, B_c=B_c))
    check_powers_of_two(1, 16, **given(num_warps=num_warps))
    check_counts(at_least=1, **given(num_stages=num_stages))
    options = given(B_R=B_r, B_C=B_c, num_warps=num_warps, num_stages=num_stages)
    return {name: int(value) for name, value in options.items()}  # Triton takes no NumPy integer


def resolve_descriptors(descriptors: bool | None, *tensors: torch.Tensor, worthwhile: bool = True) -> bool:
    """Return whether to use descriptors: as passed, or if worthwhile; raise if True and impossible.

    worthwhile: whether they gain time on a GPU with TMA.
    """
    if descriptors is not None and not isinstance(descriptors, bool):
        raise TypeError(f"descriptors is {descriptors!r}; pass True or False, or None to choose")
    if any(X.numel() == 0 for X in tensors):  # nothing to load, and TMA cannot describe an empty tensor
        return False
    possible = all(map(describable, tensors))
    if descriptors is None:
        # not in fp32, where they spill registers
        return (
            worthwhile
            and possible
            and tensors[0].dtype != torch.float32
            and tile_sizes.room(tensors[0].device).tma
        )
    if descriptors and not possible:
        raise ValueError(
            "descriptors=True takes tensors that start at a multiple of 16 bytes and have rows and strides of "
            f"multiples of 16 bytes; given are the shapes {[tuple(X.shape) for X in tensors]} and strides "
            f"{[X.stride() for X in tensors]}: use .contiguous(), or pad d"
        )
    return descriptors


def describable(X: torch.Tensor) -> bool:
    """Return whether TMA can address X: base, rows and strides are multiples of 16 bytes.

    The stride of an axis of size 1 may be anything: torch leaves it as it is, and `describe` replaces it.
    """
    strides = [stride for stride, n in zip(X.stride()[:3], X.shape, strict=False) if n != 1]
    sides = [n * X.element_size() for n in (*strides, X.shape[-1])]
    return X.data_ptr() % 16 == 0 and all(n > 0 and n % 16 == 0 for n in sides)


def describe(X: torch.Tensor, rows: int, D: int) -> TensorDescriptor:
    """Return the descriptor of X, which `resolve_descriptors` has accepted, for tiles of `rows` rows.

    X: (B, H, N, d), or packed tokens (N, H, d).
    """
    shape, strides = X.shape, X.stride()
    if len(shape) == 3:
        shape, strides = (1, shape[1], shape[0], shape[2]), (UNIT, strides[1], strides[0], strides[2])
    b, h, n, _ = strides
    if (b | h | n) % UNIT or not (b and h and n):  # rare, so each axis is looked at only here
        strides = [stride if size > 1 else UNIT for stride, size in zip(strides, shape, strict=True)]
    return _Descriptor(X, shape, strides, [1, 1, rows, D])  # columns past d are read as 0, not stored


_Descriptor = of_driver.unchecked(TensorDescriptor)  # a plan has already made Triton's checks


def laid_out(shape: Sequence[int], tokens_first: bool) -> torch.Tensor:
    """Return a tensor without memory that has the strides of an output (B, H, N, d).

    tokens_first: the layout in memory is (B, N, H, d).
    """
    B, H, N, d = shape
    if tokens_first:
        return torch.empty((B, N, H, d), device="meta").transpose(1, 2)
    return torch.empty((B, H, N, d), device="meta")


def have_plain_strides(*tensors: torch.Tensor) -> bool:
    """Return whether `torch.empty_like` of the tensors gives the same strides as `torch.empty` of their shapes."""
    made = [(torch.empty_like(X, device="meta"), torch.empty(X.shape, device="meta")) for X in tensors]
    return all(like.stride() == plain.stride() for like, plain in made)


def in_units(*tensors: torch.Tensor) -> tuple[int, list[int]]:
    """Return a unit, UNIT or 1, and the strides of batch, head and row of each tensor in this unit."""
    strides = [stride for X in tensors for stride in X.stride()[:3]]
    unit = UNIT if all(stride % UNIT == 0 for stride in strides) else 1
    return unit, [stride // unit for stride in strides]


class Plans(dict):
    """The decisions for tensors of given shapes, strides, dtypes and devices, and given options.

    It does not hold tensors of a call, only the numbers of a mask: bounds, tables, bits. All decisions and checks
    of a call depend on its `key` alone.
    """

    MOST = 4096  # sizes that change with every call are never met again
    KINDS = {bool, int, str, type, type(None), torch.dtype}  # of an option

    def key(self, tensors: Sequence[Any], *options: object) -> tuple | None:
        """Return the key of a call; None if it must be checked each time.

        That is the case for anything that is not a tensor or has no memory, for tensors that may carry tangents,
        and for options of an unusual type. So a call whose plan is found has inputs that were checked.
        """
        kinds = tuple(map(type, options))  # 1 equals True, and not everything takes both
        if of_torch.in_forward_mode() or not self.KINDS.issuperset(kinds):
            return None
        try:
            room = tile_sizes.room(tensors[0].device)
            return options, kinds, room, *[
                X if X is None else (
                    X.shape, X.stride(), X.dtype, X.device, X.is_neg(),
                    pointer % 16 if (pointer := X.data_ptr()) else _nowhere(X),
                )
                for X in tensors  # inlined: a function would take a tenth more time
            ]  # fmt: skip
        except (AttributeError, RuntimeError):
            return None

    def keep(self, key: Hashable, plan: P) -> P:
        if len(self) >= self.MOST:
            self.clear()
        if key is not None:
            self[key] = plan
        return plan


def _nowhere(X):
    """Return the address modulo 16 of a tensor at address 0; raise RuntimeError unless it is empty."""
    if X.numel():
        raise RuntimeError("it stands in for a tensor")
    return 0


class PlansOfMasks:
    """Plans for each mask, which are freed with the mask, and for calls without one.

    Windows, prefixes and soft caps are defined by their numbers, and have nothing in memory. Their plans are kept:
    such a mask may be made anew for each call, and so may a bias, which each call passes itself.
    """

    def __init__(self) -> None:
        self.of_none, self.of_values, self.of_masks = Plans(), Plans(), weakref.WeakKeyDictionary()

    def of(self, mask: Mask | None) -> Plans:
        """Return the plans for a mask; raise TypeError if it is not a mask."""
        if mask is None:
            return self.of_none
        check_mask(mask)
        known = mask.known_by or mask
        if type(known).__hash__ is object.__hash__:
            return self.of_masks.setdefault(mask, Plans())
        plans = self.of_values.get(known)
        return self.of_values.keep(known, Plans()) if plans is None else plans


def stream_of(X: torch.Tensor) -> int | None:
    """Return the stream for launches on the device of X: asking once is enough for a whole call."""
    return of_driver.current_stream(X.device.index) if X.is_cuda else None


class Launch:
    """A kernel, its grid and its sizes; called with its tensors, and with scale if it takes one.

    A kernel's parameters come in this order: the arguments of a call, sizes, constants. describe: for each of the
    first tensors of a call, how it is described; None for a pointer. The first call compiles the kernel if
    necessary; later ones launch the compiled kernel and check nothing: so a Launch that is kept must be called
    only with tensors of the same dtypes and alignment, and of the same shapes and strides where described.
    """

    def __init__(
        self, kernel: KernelInterface, grid: int, sizes: tuple, constants: dict, config: dict[str, int],
        describe: of_driver.Describe = (),
    ) -> None:  # fmt: skip
        self.kernel, self.grid, self.sizes = kernel, (grid, 1, 1), sizes
        self.constants, self.config, self.describe = constants, config, describe
        values = constants | config
        self.last = tuple(values[name] for name in kernel.arg_names if name in values)
        self.compiled = self.again = None

    def __call__(self, *given, mask_args=None, stream=None):
        """Launch. mask_args: numbers of a mask, which replace the last of the sizes. stream: see `stream_of`."""
        sizes = self.sizes if mask_args is None else (*self.sizes[:-1], mask_args)
        try:
            if self.again:
                self.again(given, sizes, stream)
            else:
                first = of_driver.described(given, self.describe)
                with self._without_warnings():
                    self.compiled = self.kernel[self.grid](*first, *sizes, **self.constants, **self.config)
                self.again = self.compiled and of_driver.relaunch(
                    self.compiled, self.grid, self.last, self.describe
                )
        except triton.OutOfResources as error:
            options = ", ".join(f"{name}={value}" for name, value in self.config.items())
            raise ValueError(
                f"{options} take {error.required} of {error.name}, and this GPU has {error.limit}: "
                "pass smaller B_r or B_c, or fewer num_stages"
            ) from None

    def _without_warnings(self):
        """Return the context of a launch: the exponential in a soft cap may be inf, and NumPy would warn of it."""
        scored = getattr(self.constants.get("MASK"), "scored", None)
        return np.errstate(over="ignore") if INTERPRETED and scored else contextlib.nullcontext()
