"""Watch what kernels do: what they load and store, how exact their products are, how many are launched.

In Triton's interpreter each load and store is seen with its addresses; for compiled kernels, only launches are.
"""

# ruff: noqa: I001  flashlib.kernels before triton
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import NamedTuple

import numpy as np
import torch

from flashlib.checks.harness.kernel_globals import refused_global
from flashlib.kernels import INTERPRETED
from flashlib.learner.kernels.recorder import storage_of, tensors_in
from flashlib.private_apis import of_torch, of_watching


class Watch:
    """What kernels did to the tensors that are watched, and how they did it.

    sees: whether more is seen than launches and torch's writes. outside: the name of the tensor next to whose
    elements the first stray load or store was, in a lane that no mask hides, or "". stored: whether that was a
    store. behind_mask: whether it had a mask. launches: how many kernels were launched. ours: the name of one of
    them that belongs to flashlib, or "". tf32: whether a tl.dot took fp32 inputs in a precision other than ieee.
    refused: the name and the value of a global that a kernel uses and the compiler refuses, or None. loads,
    masked, read, widest: {name: how many loads contain an element of it, how many of these have a mask, how many
    elements they contain, the largest width}. others, elsewhere: how many elements were loaded from, and stored
    to, tensors that are not watched. after: the names of the tensors that torch wrote to after the last launch.
    programs: how many ran. idle: how many loads had a mask that hides all lanes. products: how many there were of
    each size (M, K, N). undefined: the names of tensors with a load that has hidden lanes and no `other`. fill:
    takes shape, dtype and Triton's name of the dtype, and returns the values of such lanes; None: 0. accesses: how
    many loads and stores there were; OverflowError is raised beyond `most`.
    """

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.sees = INTERPRETED
        self.outside, self.stored, self.behind_mask, self.ours, self.tf32 = "", False, False, "", False
        self.refused: tuple[str, object] | None = None
        self.launches = self.others = self.elsewhere = self.programs = self.idle = self.accesses = 0
        self.most = float("inf")
        self.products: Counter[tuple[int, int, int]] = Counter()
        self.undefined: set[str] = set()
        self.fill: Callable[[tuple, np.dtype, str], np.ndarray] | None = None
        self.loads, self.masked, self.read, self.widest = (dict.fromkeys(tensors, 0) for _ in range(4))
        self._tensors, self._versions = tensors, _versions(tensors)
        self._storages = {}  # by address
        for name, X in tensors.items():
            key, size = storage_of(X), X.untyped_storage().nbytes()
            storage = self._storages.setdefault(key, _Storage(key, size, [], np.zeros(size, bool)))
            storage.add(name, X)
        self._known = list(self._storages.values())

    @property
    def after(self) -> list[str]:
        now = _versions(self._tensors)
        return [name for name, version in self._versions.items() if now[name] != version]

    def launched(self, function: FunctionType) -> None:
        """Note the launch of the kernel made from a function."""
        self.launches += 1
        self._versions = _versions(self._tensors)
        module = function.__module__ or ""
        if module.startswith("flashlib.") and not module.startswith("flashlib.checks."):
            self.ours = self.ours or function.__name__
        if not module.startswith("flashlib."):
            self.refused = self.refused or refused_global(function)

    def let(self, names: Iterable[str], given: Iterable, moved: Iterable) -> None:
        """Let kernels access the tensors in the arguments of a launch; moved: the interpreter's copies of them."""
        self._known = list(self._storages.values())
        for name, X, Y in zip(names, given, moved, strict=False):
            for x, y in zip(tensors_in(X), tensors_in(Y), strict=True):
                size, known = y.untyped_storage().nbytes(), self._storages.get(storage_of(x))
                here = _Storage(storage_of(y), size, [(name, *_span(x))], None)
                self._known.append(known._replace(start=storage_of(y)) if known else here)

    def begun(self, program: tuple[int, int, int]) -> None:  # noqa: ARG002
        self.programs += 1

    def multiplied(self, sizes: tuple[int, int, int], *, rounded: bool) -> None:
        self.products[sizes] += 1
        self.tf32 |= rounded

    def lanes(
        self, pointers: np.ndarray, size: int, mask: np.ndarray | memoryview, *, store: bool = False,
        masked: bool = True,
    ) -> np.ndarray:  # fmt: skip
        """Note the addresses of a load or a store; return the mask without addresses outside of all tensors.

        size: bytes of an element. masked: whether a mask was given.
        """
        self.accesses += 1
        if self.accesses > self.most:
            raise OverflowError(f"there are more than {self.most} loads and stores")
        pointers, mask = np.broadcast_arrays(pointers, np.asarray(mask, bool))
        width = pointers.shape[-1] if pointers.ndim else 1
        at = pointers[mask].astype(np.int64)
        if not at.size:
            self.idle += not store
            return mask
        names, far = [], np.ones(at.size, bool)
        low, high = at.min(), at.max() + size
        for storage in self._known:
            if not far.any():
                break
            if high <= storage.start or low >= storage.start + storage.size:
                continue
            here = far & (at >= storage.start) & (at + size <= storage.start + storage.size)
            if here.any():
                far &= ~here
                names.append(self._note(storage, at[here] - storage.start, size, store, masked, width))
        if not far.any():
            return mask
        self._note_outside(names[0] if names else self._nearest(at[far][0]), store, masked)
        allowed = mask.copy()
        allowed[mask] = ~far
        return allowed

    def hidden(self, pointers: np.ndarray, mask: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray | None:
        """Note a load without `other`; return the values of the lanes that its mask hides, None for 0.

        name: Triton's name of the dtype.
        """
        if not np.all(mask):
            self.undefined.add(self._nearest(int(pointers.flat[0])))
        return self.fill(pointers.shape, dtype, name) if self.fill else None

    def _note(self, storage, at, size, store, masked, width):
        """Note an access to a storage; at: byte offsets from its start. Return the name of a tensor in it."""
        name = storage.nearest(at[0])
        if storage.own is None:
            self.elsewhere += len(at) if store else 0
            self.others += 0 if store else len(at)
        else:
            own = storage.own[at] & storage.own[at + size - 1]
            if not own.all():
                self._note_outside(storage.nearest(at[~own][0]), store, masked)
            if not store and own.any():
                self.loads[name] += 1
                self.masked[name] += masked
                self.read[name] += int(own.sum())
                self.widest[name] = max(self.widest[name], width)
        return name

    def _note_outside(self, name, store, masked):
        if not self.outside:
            self.outside, self.stored, self.behind_mask = name, store, masked

    def _nearest(self, address):
        spans = [(name, s.start + first, s.start + end) for s in self._known for name, first, end in s.spans]
        return _nearest_of(spans, address) if spans else "no tensor"


class _Storage(NamedTuple):
    """Memory that tensors share: address, size in bytes, (name, first byte, end) of each tensor, bytes in use."""

    start: int
    size: int
    spans: list
    own: np.ndarray | None

    def add(self, name, X):
        if not X.numel():
            return self.spans.append((name, 0, 0))
        steps = (stride * np.arange(n) for n, stride in zip(X.shape, X.stride(), strict=True))
        elements = X.storage_offset() + sum(np.ix_(*steps)) if X.ndim else np.array(X.storage_offset())
        item = X.element_size()
        for byte in range(item):
            self.own[elements * item + byte] = True
        self.spans.append((name, int(elements.min()) * item, int(elements.max() + 1) * item))

    def nearest(self, at):
        """Return the name of the tensor that is nearest to a byte."""
        return _nearest_of(self.spans, at)


def _nearest_of(spans, at):
    """Return the name of the span (name, first byte, end) that is nearest to a byte."""
    return min(spans, key=lambda span: max(span[1] - at, at - span[2] + 1, 0))[0]


def _span(X):
    """Return the first byte of a tensor in its storage, and the end."""
    places = 1 + sum((n - 1) * stride for n, stride in zip(X.shape, X.stride(), strict=True)) if X.numel() else 0
    return X.storage_offset() * X.element_size(), (X.storage_offset() + places) * X.element_size()


def _versions(tensors):
    """Return {name: how often torch wrote to it}, not counting kernels."""
    return {name: of_torch.times_written(X) for name, X in tensors.items()}


@contextlib.contextmanager
def watched(**tensors: torch.Tensor) -> Iterator[Watch]:
    """Watch launches within this context; yields a Watch of the tensors, by name."""
    watch = Watch(tensors)
    with of_watching.notified(watch, interpreted=INTERPRETED):
        yield watch
