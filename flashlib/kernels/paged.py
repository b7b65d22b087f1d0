"""What a cache of keys and values is to a kernel: contiguous, or in pages; in the dtype of Q, or in fp8."""

from typing import NamedTuple

import torch

from flashlib.kernels import DTYPES, INTERPRETED, check_device
from flashlib.state import check_tensors

FP8 = torch.float8_e4m3fn
PAGES = 16, 1024  # tokens of a page, a power of two, from and to


class Layout(NamedTuple):
    """page: tokens of a page, 0 for a contiguous cache; capacity: tokens that a sequence can have."""

    page: int
    capacity: int
    fp8: bool


def check_cache(X, K, V, lengths, table, k_scale, v_scale, *, name="Q") -> Layout:
    """Return the layout of a cache; raise TypeError or ValueError unless it fits X, (B, H, N, d), called `name`.

    K: (B, H_k, N, d) and V: (B, H_k, N, d_v), or pages, (pages, H_k, page, d) and (pages, H_k, page, d_v), with
    table: (B, most), int32. Key c of sequence b then lies in page table[b, c // page], row c % page.
    lengths: (B,), int32 or int64, the tokens of each sequence; None: all are as long as the cache.
    k_scale, v_scale: K and V without their last axis, float32, for a cache in float8_e4m3fn, and for no other.
    """
    check_tensors(DTYPES, **{name: X})
    check_device(**{name: X})
    B, fp8 = X.shape[0], isinstance(K, torch.Tensor) and K.dtype == FP8
    check_tensors((FP8,) if fp8 else (X.dtype,), K=K, V=V)
    for of, Y in (("K", K), ("V", V)):
        if Y.device != X.device:
            raise ValueError(f"{of} is on {Y.device} and {name} on {X.device}; move them to one device")
        if Y.ndim != 4:
            raise ValueError(
                f"{of} has shape {tuple(Y.shape)}; a cache has 4 axes, (B, H_k, N, d), or (pages, H_k, page, d) "
                "with a table"
            )
    if K.shape[:3] != V.shape[:3]:
        raise ValueError(f"K has shape {tuple(K.shape)} and V {tuple(V.shape)}; only the last axis may differ")
    _check_scales(fp8, K, V, k_scale=k_scale, v_scale=v_scale)
    if lengths is not None:
        _check_whole("lengths", lengths, (B,), (torch.int32, torch.int64), X)
    if table is None:
        if K.shape[0] != B:
            raise ValueError(
                f"K has shape {tuple(K.shape)} and {name} {tuple(X.shape)}; both have one entry for each "
                "sequence, or pass a table with a cache in pages"
            )
        return Layout(0, K.shape[2], fp8)
    _check_whole("table", table, (B, None), (torch.int32,), X)
    if lengths is None:
        raise ValueError("lengths is None; a cache in pages needs the tokens of each sequence, (B,) of int32")
    page = K.shape[2]
    if page & (page - 1) or not PAGES[0] <= page <= PAGES[1]:
        raise ValueError(f"a page has {page} tokens; accepted are powers of two from {PAGES[0]} to {PAGES[1]}")
    return Layout(page, table.shape[1] * page, fp8)


def _check_scales(fp8, K, V, **scales):
    for name, scale in scales.items():
        if not fp8 and scale is not None:
            raise ValueError(f"{name} is given and the cache is in {K.dtype}; only one in {FP8} has scales")
        if fp8:
            X = K if name == "k_scale" else V
            given = (tuple(scale.shape), scale.dtype) if isinstance(scale, torch.Tensor) else type(scale).__name__
            if given != (tuple(X.shape[:3]), torch.float32) or scale.device != X.device:
                raise ValueError(
                    f"{name} is {given}; a cache in {FP8} needs a scale for each token and head, "
                    f"{tuple(X.shape[:3])} of float32 on {X.device}"
                )
    if fp8 and not INTERPRETED and torch.cuda.get_device_capability(K.device) < (8, 9):
        raise ValueError(f"{FP8} needs a GPU of compute capability 8.9 or later; keep the cache in bfloat16")


def _check_whole(name, X, shape, dtypes, other):
    """Raise TypeError or ValueError unless X is such a tensor, on the device of `other`; None: any size."""
    accepted = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
    named = f"({', '.join('most' if n is None else str(n) for n in shape)}{',' * (len(shape) == 1)})"
    if not isinstance(X, torch.Tensor) or X.dtype not in dtypes:
        given = str(X.dtype) if isinstance(X, torch.Tensor) else type(X).__name__
        raise TypeError(f"{name} is {given}; pass a tensor {named} of {accepted}")
    if X.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, X.shape, strict=True)):
        raise ValueError(f"{name} has shape {tuple(X.shape)}; expected {named}")
    if X.device != other.device:
        raise ValueError(f"{name} is on {X.device} and the rest on {other.device}; move it there")
    if not X.is_contiguous():
        raise ValueError(f"{name} is not contiguous: pass {name}.contiguous()")
