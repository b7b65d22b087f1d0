"""A key/value cache in pages: `Pages`, which tracks who owns which page, and the numbers in them.

A page holds `page` tokens of every layer and head, K (layers, n_pages, H_k, page, d) and V, so a sequence has one
block table for all layers, and the rows that a tile of one head needs are adjacent.

Rows are initialised to zero, not to NaN, because a kernel that loads a whole page gives rows past the length the
weight P = 0, and 0 * NaN in P V is NaN. A reused page still has its old rows, so a kernel masks its loads of V if
a model may write NaN or infinity.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from flashlib.cache.pages import OutOfPages, Pages
from flashlib.inputs import FLOATING, check_counts, check_floating, check_tensors
from flashlib.types import Array

if TYPE_CHECKING:
    import torch

__all__ = ["Cache", "OutOfPages", "Pages", "bytes_per_token"]

LARGEST_E4M3 = 448.0
SMALLEST_SCALE = 2.0**-126  # the smallest normal number: a subnormal one has too few digits


def bytes_per_token(
    H_k: int, d: int, d_v: int | None = None, *, itemsize: int, layers: int = 1, scales: bool = False
) -> int:
    """Return the bytes of K and V for one token, including a float32 scale for each row of both if `scales`."""
    d_v = d if d_v is None else d_v
    check_counts(at_least=1, H_k=H_k, d=d, d_v=d_v, itemsize=itemsize, layers=layers)
    H_k, d, d_v, itemsize, layers = map(int, (H_k, d, d_v, itemsize, layers))  # NumPy's would overflow
    return layers * H_k * ((d + d_v) * itemsize + 2 * 4 * bool(scales))


class Cache(Pages):
    """A Pages with storage: K (layers, n_pages, H_k, page, d) and V (layers, n_pages, H_k, page, d_v).

    dtype: NumPy's float16, float32 or float64; or torch's, or bfloat16 or float8_e4m3fn, for K and V as tensors on
    `device`. With float8_e4m3fn there are also k_scale and v_scale, float32 (layers, n_pages, H_k, page): a row is
    its 8-bit numbers times its scale. Otherwise both are None. `append` gives slots for all layers, `write` fills
    them layer by layer, and a page is copied in all layers. Raises TypeError or ValueError for anything else,
    before memory is allocated.
    """

    def __init__(self, n_pages, page, H_k, d, *, d_v=None, layers=1, dtype=np.float32, device=None):
        d_v = d if d_v is None else d_v
        check_counts(at_least=1, H_k=H_k, d=d, d_v=d_v, layers=layers)
        super().__init__(n_pages, page)
        zeros, self._written = _storage(dtype, device)
        rows = (layers, n_pages, H_k, page)
        self.K, self.V = zeros((*rows, d)), zeros((*rows, d_v))
        self._torch = not isinstance(self.K, np.ndarray)
        scaled = self.K.dtype not in self._written
        self.k_scale, self.v_scale = [self.K.new_zeros(rows).float() if scaled else None for _ in range(2)]

    def write(self, slots: np.ndarray, K: Array, V: Array, layer: int = 0) -> None:
        """Write K (H_k, n, d) and V (H_k, n, d_v) of n tokens to the slots that `append` returned, (n, 2).

        Slots of several sequences may be concatenated. K and V: arrays or tensors, like those of the cache, with
        its dtype. For float8_e4m3fn they are float16, bfloat16 or float32, and each row is divided by its own
        scale, its largest magnitude / 448, at least 2^-126, and 1 for a row of zeros. Raises TypeError or
        ValueError for anything else, and for a page without an owner, before any write.
        """
        slots = self._check_slots(slots)
        self._check_rows_given(K, V, len(slots))
        self._check_layer(layer)
        pages, rows = self._indices(slots.T)
        for store, scales, X in ((self.K, self.k_scale, K), (self.V, self.v_scale, V)):
            if not isinstance(X, np.ndarray):
                X = X.detach()
                if scales is not None:
                    X, scale = quantised(X, store.dtype)
                    scales[layer][pages, :, rows] = scale.swapaxes(0, 1)
            store[layer][pages, :, rows] = X.swapaxes(0, 1)

    def gather(self, sequence: int, layer: int = 0) -> tuple[Array, Array]:
        """Return contiguous copies of a sequence's K (H_k, N, d) and V (H_k, N, d_v), float8_e4m3fn as float32."""
        self._check_layer(layer)
        N = len(self._of(sequence).tokens)
        pages = self._indices(np.array(self._of(sequence).pages))
        found = []
        for store, scales in ((self.K, self.k_scale), (self.V, self.v_scale)):
            X = store[layer][pages]  # (pages, H_k, page, d)
            if scales is not None:
                X = X.float() * scales[layer][pages][..., None]
            X = X.swapaxes(0, 1).reshape(X.shape[1], -1, X.shape[-1])[:, :N]
            found.append(X.contiguous() if self._torch else np.ascontiguousarray(X))
        K, V = found
        return K, V

    def table(self, sequences: Sequence[int], width: int | None = None) -> Array:
        return self._as_stored(super().table(sequences, width))

    def lengths(self, sequences: Sequence[int]) -> Array:
        return self._as_stored(super().lengths(sequences))

    table.__doc__, lengths.__doc__ = Pages.table.__doc__, Pages.lengths.__doc__

    def _copy(self, page, to):
        for X in (self.K, self.V, self.k_scale, self.v_scale):
            if X is not None:
                X[:, to] = X[:, page]

    def _as_stored(self, X):
        """Return an array converted to the type of K, on its device."""
        if not self._torch:
            return X
        import torch  # it is loaded, since K is a tensor

        return torch.from_numpy(X).to(self.K.device)

    def _indices(self, X):
        return self._as_stored(X.astype(np.int64))

    def _check_slots(self, slots):
        given = np.asarray(slots)
        if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
            raise ValueError(
                f"slots has shape {given.shape} and dtype {given.dtype}; pass the int32 (n, 2) of append"
            )
        inside = ((given >= 0) & (given < (self.n_pages, self.page))).all()
        if not inside or not all(self._owners[page] for page in set(given[:, 0].tolist())):
            raise ValueError(
                "slots has a page or row that is not there, or a page without an owner; write before you free"
            )
        return given

    def _check_rows_given(self, K, V, n):
        if self._torch:
            check_tensors(self._written, K=K, V=V)
            if K.device != self.K.device:
                raise ValueError(f"K is on {K.device} and the cache on {self.K.device}; move K and V there")
        else:
            check_floating(K=K, V=V)
            if K.dtype not in self._written:
                raise TypeError(f"K has dtype {K.dtype}; the cache has {self.K.dtype}, so convert K and V to it")
        H_k, d, d_v = self.K.shape[2], self.K.shape[-1], self.V.shape[-1]
        for name, X, shape in (("K", K, (H_k, n, d)), ("V", V, (H_k, n, d_v))):
            if tuple(X.shape) != shape:
                raise ValueError(f"{name} has shape {tuple(X.shape)}; for {n} slots it is {shape}")

    def _check_layer(self, layer):
        check_counts(layer=layer)
        if layer >= len(self.K):
            raise ValueError(f"layer is {layer}; the cache has {len(self.K)}, and the first is 0")


def _storage(dtype, device):
    """Return a function that makes an array of zeros, and the dtypes that `write` then accepts."""
    if type(dtype).__module__ != "torch":
        try:
            numpy_dtype = np.dtype(dtype)
        except TypeError:
            numpy_dtype = None
        if dtype is None or numpy_dtype is None or numpy_dtype not in FLOATING:  # NumPy takes None for float64
            names = ", ".join(map(str, FLOATING))
            raise TypeError(f"dtype is {dtype!r}; accepted are {names} of NumPy, or a floating dtype of torch")
        if device is not None:
            raise ValueError(f"device is {device!r} and {numpy_dtype} a dtype of NumPy; pass one of torch")
        return lambda shape: np.zeros(shape, numpy_dtype), (numpy_dtype,)
    import torch  # it is loaded, since dtype is one of its dtypes

    floating = torch.float16, torch.bfloat16, torch.float32
    if dtype not in (*floating, torch.float64, torch.float8_e4m3fn):
        names = ", ".join(map(str, (*floating, torch.float64, torch.float8_e4m3fn)))
        raise TypeError(f"dtype is {dtype}; accepted are {names}")
    written = floating if dtype == torch.float8_e4m3fn else (dtype,)
    return lambda shape: torch.zeros(shape, dtype=dtype, device=device), written


def quantised(X: "torch.Tensor", dtype: "torch.dtype") -> "tuple[torch.Tensor, torch.Tensor]":
    """Return tensors: X in 8 bits, with each row (last axis) divided by a scale, and the scales in float32.

    A scale is the largest magnitude in the row / 448, at least 2^-126, and 1 for a row of zeros.
    """
    X = X.float()
    scale = X.abs().amax(-1) / LARGEST_E4M3
    scale = scale.clamp(min=SMALLEST_SCALE).masked_fill(scale == 0, 1)
    return (X / scale[..., None]).to(dtype), scale
