"""Methods that compute one number of many: sums, maxima, where they are, and the softmax."""

from typing import NamedTuple

import numpy as np

from .dtypes import bool_, computing, int64, uint8


class Found(NamedTuple):
    """Values of an axis, and where they were."""

    values: object
    indices: object


def axes(dim, axis=None):
    """Return the axes of a reduction as NumPy takes them."""
    dim = axis if dim is None else dim
    return tuple(dim) if isinstance(dim, list) else dim


class Reductions:
    def _wide(self):
        """Return the numbers in which sums are computed: whole ones in 64 bits, where NumPy itself may take 32."""
        wide = computing(self.dtype) if self.dtype.is_floating_point else np.int64
        return self._numbers().astype(wide, copy=False)

    def _truth(self):
        """Return the type of what is true of some numbers."""
        return uint8 if self.dtype is uint8 else bool_

    def sum(self, dim=None, keepdim=False, *, axis=None, dtype=None):
        X = self if dtype is None else self.to(dtype)
        of = X.dtype if X.dtype.is_floating_point else dtype or int64
        with np.errstate(all="ignore"):
            return self._made(np.sum(X._wide(), axes(dim, axis), keepdims=keepdim), of)

    def prod(self, dim=None, keepdim=False, *, dtype=None):
        of = dtype or (self.dtype if self.dtype.is_floating_point else int64)
        with np.errstate(all="ignore"):
            return self._made(np.prod(self._wide(), axes(dim), keepdims=keepdim), of)

    def mean(self, dim=None, keepdim=False, *, axis=None, dtype=None):
        X = self if dtype is None else self.to(dtype)
        if not X.dtype.is_floating_point:
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
                f"dtype. Got: {X.dtype}"
            )
        with np.errstate(all="ignore"):
            return self._made(np.mean(X._wide(), axes(dim, axis), keepdims=keepdim), X.dtype)

    def var(self, dim=None, *, correction=1, unbiased=True, keepdim=False):
        found = np.var(self._wide(), axes(dim), ddof=correction if unbiased else 0, keepdims=keepdim)
        return self._made(found, self.dtype)

    def std(self, dim=None, **options):
        return self.var(dim, **options).sqrt()

    def norm(self, p=2, dim=None, keepdim=False):
        if p not in (2, "fro"):
            raise ValueError(f"the stand-in for torch in this page has only norms with p=2, not p={p}")
        return self._made(np.sqrt(np.sum(self._wide() ** 2, axes(dim), keepdims=keepdim)), self.dtype)

    def cumsum(self, dim, *, dtype=None):
        of = dtype or (self.dtype if self.dtype.is_floating_point else int64)
        return self._made(np.cumsum(self._wide(), dim), of)

    def diff(self, n=1, dim=-1):
        return self._made(np.diff(self._wide(), n, dim), self.dtype)

    def any(self, dim=None, keepdim=False):
        return self._made(np.any(self._numbers(), axes(dim), keepdims=keepdim), self._truth())

    def all(self, dim=None, keepdim=False):
        return self._made(np.all(self._numbers(), axes(dim), keepdims=keepdim), self._truth())

    def count_nonzero(self, dim=None):
        return self._made(np.asarray(np.count_nonzero(self._numbers(), axes(dim)), np.int64))

    def amax(self, dim=None, keepdim=False):
        return self._made(np.max(self._numbers(), axes(dim), keepdims=keepdim), self.dtype)

    def amin(self, dim=None, keepdim=False):
        return self._made(np.min(self._numbers(), axes(dim), keepdims=keepdim), self.dtype)

    def max(self, dim=None, keepdim=False):
        if hasattr(dim, "_storage"):
            return self.maximum(dim)
        return self.amax() if dim is None else Found(self.amax(dim, keepdim), self.argmax(dim, keepdim))

    def min(self, dim=None, keepdim=False):
        if hasattr(dim, "_storage"):
            return self.minimum(dim)
        return self.amin() if dim is None else Found(self.amin(dim, keepdim), self.argmin(dim, keepdim))

    def argmax(self, dim=None, keepdim=False):
        return self._made(np.asarray(np.argmax(self._numbers(), dim, keepdims=keepdim), np.int64))

    def argmin(self, dim=None, keepdim=False):
        return self._made(np.asarray(np.argmin(self._numbers(), dim, keepdims=keepdim), np.int64))

    def argsort(self, dim=-1, descending=False, stable=False):  # noqa: ARG002
        given = self._numbers()
        if not descending:
            return self._raw(np.argsort(given, dim, kind="stable").astype(np.int64), int64)
        flipped = np.argsort(np.flip(given, dim), dim, kind="stable")  # equal ones stay in their order
        return self._raw(given.shape[dim] - 1 - np.flip(flipped, dim).astype(np.int64), int64)

    def sort(self, dim=-1, descending=False, stable=False):  # noqa: ARG002
        order = self.argsort(dim, descending)
        return Found(self.gather(dim, order), order)

    def topk(self, k, dim=-1):
        values, order = self.sort(dim, descending=True)
        return Found(values.narrow(dim, 0, k).contiguous(), order.narrow(dim, 0, k).contiguous())

    def softmax(self, dim, dtype=None):
        X = self if dtype is None else self.to(dtype)
        x = X._wide()
        with np.errstate(all="ignore"):
            p = np.exp(x - np.max(x, dim, keepdims=True))
            return self._made(p / np.sum(p, dim, keepdims=True), X.dtype)

    def log_softmax(self, dim, dtype=None):
        X = self if dtype is None else self.to(dtype)
        x = X._wide()
        with np.errstate(all="ignore"):
            x = x - np.max(x, dim, keepdims=True)
            return self._made(x - np.log(np.sum(np.exp(x), dim, keepdims=True)), X.dtype)

    def logsumexp(self, dim, keepdim=False):
        x, dim = self._wide(), axes(dim)
        with np.errstate(all="ignore"):
            m = np.max(x, dim, keepdims=True, initial=-np.inf)
            m = np.where(np.isfinite(m), m, 0)
            found = np.log(np.sum(np.exp(x - m), dim, keepdims=True)) + m
        return self._made(found if keepdim else np.squeeze(found, dim), self.dtype)
