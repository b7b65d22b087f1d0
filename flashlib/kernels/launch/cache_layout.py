"""The layout of a cache of keys and values: contiguous or in pages, in the dtype of Q or in fp8."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from flashlib.inputs import check_tensors
from flashlib.kernels.launch import which_gpu
from flashlib.kernels.launch.inputs import DTYPES

FP8 = torch.float8_e4m3fn


class Layout(NamedTuple):
    """page: tokens of a page, 0 for a contiguous cache; capacity: tokens that a sequence can have."""

    page: int
    capacity: int
    fp8: bool


def check_cache(
    X: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor | None, table: torch.Tensor | None,
    k_scale: torch.Tensor | None, v_scale: torch.Tensor | None, *, names: tuple[str, str, str] = ("Q", "K", "V"),
    like: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Layout:  # fmt: skip
    """Return the layout of a cache; raise TypeError or ValueError unless it fits X, (B, H, N, d).

    K: (B, H_k, N, d) and V: (B, H_k, N, d_v), or pages, (pages, H_k, page, d) and (pages, H_k, page, d_v), page a
    power of two, with table: (B, most), int32: key c of sequence b is row c % page of page table[b, c // page].
    A contiguous cache of any number of sequences takes a table of one axis, (B,): sequence b is its table[b].
    They have the dtype of X, or float8_e4m3fn with k_scale and v_scale, float32, K and V without the last axis.
    lengths: (B,), int32 or int64, the tokens of each sequence; None for a contiguous cache that is full.
    names: of X, K and V, in errors. like: tensors (B, H_k, N, d) and (B, H_k, N, d_v) that go into the cache.
    """
    of, (B, *_) = {names[0]: X}, X.shape
    check_tensors((*DTYPES, FP8), **dict(zip(names[1:], (K, V), strict=True)))
    if lengths is not None:
        check_tensor("lengths", lengths, (B,), "(B,)", torch.int32, torch.int64, **of)
    chosen = isinstance(table, torch.Tensor) and table.ndim == 1
    if chosen:
        check_tensor("table", table, (B,), "(B,)", torch.int32, **of)
    elif table is not None:
        check_tensor("table", table, (B, None), "(B, most)", torch.int32, **of)
        if lengths is None:
            raise ValueError("lengths is None; a cache in pages needs the tokens of each sequence, (B,) of int32")
    shape: Any = K.shape if K.ndim == 4 else (None,) * 4
    first, H_k, page, _ = shape
    paged = table is not None and not chosen
    axes = "(pages, H_k, page, {})" if paged else "(B, H_k, N, {})"
    for name, cache, d, rows in zip(names[1:], (K, V), ("d", "d_v"), like or (None, None), strict=True):
        of_rows = (H_k, page, None) if rows is None else (rows.shape[1], page, rows.shape[3])
        check_tensor(name, cache, (B if table is None else first, *of_rows), axes.format(d), X.dtype, FP8, **of)
    if paged and (page == 0 or page & (page - 1)):
        raise ValueError(f"{names[1]} has pages of {page} keys; pass pages of a power of two, e.g. 16 or 64")
    for name, scale, cache in (("k_scale", k_scale, K), ("v_scale", v_scale, V)):
        if cache.dtype != FP8 and scale is not None:
            raise ValueError(f"{name} is given, and caches of {cache.dtype} have no scales: leave it out")
        if cache.dtype == FP8:
            check_tensor(name, scale, cache.shape[:3], "(B, H_k, N), or (pages, H_k, page),", torch.float32, **of)
    if K.dtype == FP8 and not _has_fp8(X.device):
        raise ValueError(
            f"{names[1]} has dtype {FP8}, which takes a GPU of compute capability 8.9 or later (Ada, Hopper): "
            f"pass caches of {X.dtype}"
        )
    if table is not None and paged:
        return Layout(page, table.shape[1] * page, K.dtype == FP8)
    return Layout(0, page, K.dtype == FP8)


def check_table(table: torch.Tensor, begins: torch.Tensor, ends: torch.Tensor, page: int, pages: int) -> None:
    """Raise ValueError if any of keys begins[b] to ends[b] - 1 of a sequence is in a page that does not exist.

    table: (B, most), as `check_cache` takes it; or (B,), of a contiguous cache: `pages` sequences of `page` keys.
    begins, ends: (B,), within the table. Entries for other keys may be anything. All tensors are on the CPU:
    checking tensors on a GPU would mean waiting for it.
    """
    numbers = table if table.ndim == 2 else table[:, None]
    first = page * torch.arange(numbers.shape[1], device=table.device)
    read = (begins < ends)[:, None] & (first < ends[:, None]) & (first + page > begins[:, None])
    wrong = (read & ((numbers < 0) | (numbers >= pages))).nonzero()
    if len(wrong):
        b, column = wrong[0].tolist()
        what, where = "sequences", f"sequence {b}"
        if table.ndim == 2:
            what, where = "pages", f"page {column} of sequence {b}"
        raise ValueError(
            f"the table has {numbers[b, column]} for {where}, and the cache has {pages} {what}: pass numbers from "
            f"0 to {pages - 1} wherever keys are read"
        )


def check_tensor(
    name: str, X: object, shape: Sequence[int | None], axes: str, *dtypes: torch.dtype, **of: torch.Tensor
) -> None:
    """Raise TypeError or ValueError unless X has this shape, one of these dtypes, and the device of `of`.

    shape: None for axes of any length. axes: the shape in words.
    """
    ((other, Y),) = of.items()
    if not isinstance(X, torch.Tensor):
        raise TypeError(f"{name} is of type {type(X).__name__}; pass a torch tensor {axes} of {dtypes[0]}")
    if X.dtype not in dtypes:
        raise TypeError(f"{name} has dtype {X.dtype}; accepted are {' and '.join(map(str, dtypes))}")
    if X.ndim != len(shape) or any(n not in (None, given) for n, given in zip(shape, X.shape, strict=True)):
        expected = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} has shape {tuple(X.shape)}; expected {axes} here ({expected})")
    if X.device != Y.device:
        raise ValueError(f"{name} is on {X.device} and {other} on {Y.device}; move them to one device")


def _has_fp8(device) -> bool:
    return device.type != "cuda" or which_gpu.capability(device) >= (8, 9)
