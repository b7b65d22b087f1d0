"""Answers that decode over a cache or over pages: launch them, and check how they compute the result.

A step of decoding must not wait for the GPU, must read each key once, must have a program for each part, and must
find keys beyond 2^31 numbers. It must not compute with PyTorch.
"""

# ruff: noqa: I001  flashlib.kernels before triton
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
import torch

from flashlib.checks.engine import Finding, Measured, raised
from flashlib.checks.harness import far_cache, far_pool
from flashlib.checks.harness.launches import launched
from flashlib.checks.harness.watch import Watch
from flashlib.learner.kernels.new_tensors import NewTensors

WIDEST = 128  # keys of the widest tile that an answer may have
LOOKS = frozenset(  # functions of torch that wait until the GPU is done
    ("item", "tolist", "cpu", "numpy", "__int__", "__index__", "__bool__", "__float__", "__array__")
)
LIBRARIES = "torch", "triton", "flashlib.kernels", "flashlib.checks"
FILLS = re.compile("(empty|zeros|ones|full)_like|new_(empty|zeros|ones|full|tensor)|empty_strided|(fill|zero)_")
IN_PLACE = re.compile(r"[a-z]\w*[a-z0-9]_|__i(add|sub|mul|truediv|floordiv|pow|mod)__")


class TorchCalls(NewTensors):
    """Fills new tensors with nan as NewTensors does, and notes the functions of torch that an answer calls.

    names: of functions that wait for the GPU. computed: of functions that compute numbers from a tensor's numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.computed: list[str] = []

    def __torch_function__(self, function, types, arguments=(), options=None):
        name = getattr(function, "__name__", "")
        made = super().__torch_function__(function, types, arguments, options)
        if (name in LOOKS or _is_computed(name, arguments, options or {}, made)) and not _of_library(
            sys._getframe(1)
        ):
            (self.names if name in LOOKS else self.computed).append(name)
        return made

    def clear(self) -> None:
        """Forget what was noted."""
        for noted in (self.names, self.computed):
            noted.clear()


def _is_computed(name, given, options, made):
    """Return whether a function of torch computed numbers, rather than returned a view or filled a tensor.

    given, options: its arguments. made: its result.
    """
    tensors = _tensors([*given, *options.values()])
    if not tensors or FILLS.fullmatch(name):
        return False
    if name == "__setitem__":
        return isinstance(given[2], torch.Tensor)
    if IN_PLACE.fullmatch(name) or options.get("out") is not None:
        return True
    before = {X.untyped_storage().data_ptr() for X in tensors}
    return any(X.numel() and X.untyped_storage().data_ptr() not in before for X in _tensors([made]))


def _tensors(given):
    """Return the tensors among arguments or results, including those in lists."""
    flat = [x for X in given for x in (X if isinstance(X, tuple | list) else [X])]
    return [x for x in flat if isinstance(x, torch.Tensor)]


def _of_library(frame):
    """Return whether a call comes from code that launches kernels, not from the answer; skip torch's frames."""
    while frame and (frame.f_globals.get("__name__") or "").partition(".")[0] == "torch":
        frame = frame.f_back
    return frame is None or (frame.f_globals.get("__name__") or "").startswith(LIBRARIES)


SPLITS = (
    "",
    "; begin = min(-(-tiles // parts) * part, tiles); stop = min(-(-tiles // parts) * (part + 1), tiles)",
    "; first = length * part // parts; last = length * (part + 1) // parts",
    "; first = min(-(-length // parts) * part, length); last = min(-(-length // parts) * (part + 1), length)",
)  # edits of a model of decoding: tiles or keys of a sequence, divided evenly or rounded up


class DecodingTilings:
    """Variants of a model of decoding: keys of a tile, taken from an answer's products, and keys of a part."""

    def __init__(self) -> None:
        self.seen: dict[int, None] = {}

    def note(self, watch: Any) -> None:
        """Note the tile of the first product, which computes S."""
        if watch.products:
            self.seen[next(iter(watch.products))[2]] = None

    def __iter__(self) -> Iterator[str]:
        widths = self.seen or (16, 32, 64, 128)  # unknown if compiled
        yield from (f"B_c = {B_c}{split}" for B_c in widths for split in SPLITS)


def over_cache(answer: Callable, tiles: DecodingTilings, reaches: list[bool | None]) -> Callable:
    """Return answer as a function of Q, K, V, lengths and parts; it returns O and lse, as a Measured.

    reaches: where it notes once what `far_cache.reached` returns.
    """
    return _step(answer, tiles, reaches, _way_over_cache, far_cache.reached)


def over_pages(answer: Callable, tiles: DecodingTilings, reaches: list[bool | None]) -> Callable:
    """Return answer as a function of Q, K, V, lengths, table and parts; it returns O and lse, as a Measured.

    reaches: where it notes once what `far_pool.reached` returns.
    """
    return _step(answer, tiles, reaches, _way, far_pool.reached)


def _step(answer, tiles, reaches, way, reached):
    calls = TorchCalls()

    @wraps(answer)
    def noted(*arguments):
        with calls:
            return answer(*arguments)

    given = answer if hasattr(answer, "fn") else noted  # `launched` refuses a kernel
    launches: list[int] = []

    def note(watch):
        tiles.note(watch)
        launches[:] = [watch.launches]

    decoded = launched(given, way, note)

    def run(*arguments):
        calls.clear()
        try:
            result, found = decoded(*arguments)
        except (Finding, NotImplementedError):
            raise
        except Exception as error:  # as in `multi_head.streaming`
            found = raised(error)
            raise Finding(found.id, **found.fields) from error
        if calls.names:
            found = found or Finding("looks", name=calls.names[0])
        if calls.computed:
            name = calls.computed[0].strip("_")
            found = found or (Finding("one_kernel") if launches == [1] else Finding("computed", name=name))
        if isinstance(result, tuple | list):
            result = tuple(X.detach().cpu().numpy() if hasattr(X, "detach") else X for X in result)
            if arguments[0].dtype == np.float16 and not (found or reaches):
                reaches.append(reached(answer, *arguments, result))
                found = Finding("offsets_32") if reaches[0] is False else None
        return Measured(result, found)

    # A verdict shows the arguments by these names.
    run.__signature__ = inspect.signature(decoded)  # type: ignore[attr-defined]
    return run


def _way_over_cache(watch: Watch, Q, K, V, lengths, parts) -> Finding | None:
    """Return a Finding about how keys were read and parts merged, or None."""
    return _judged(watch, K, lengths, parts, K.shape[2])


def _way(watch: Watch, Q, K, V, lengths, table, parts) -> Finding | None:
    """Return a Finding about how keys were read and parts merged over pages, or None."""
    return _judged(watch, K, lengths, parts, table.shape[1] * K.shape[2], ("K", "V", "table"))


def _judged(watch, K, lengths, parts, room, needed=("K", "V")):
    """room: keys that a sequence has room for. needed: tensors that the kernels must load from."""
    H_k, d = K.shape[1], K.shape[3]
    keys = np.asarray(lengths)
    if not watch.sees or not keys.any():
        return None
    if unread := [name for name in needed if not watch.read[name]]:
        return Finding("table_unread" if unread == ["table"] else "copied")
    B_c = next(iter(watch.products))[2] if watch.products else WIDEST  # padding of a tile may be loaded too
    most = sum(int(n) + parts * B_c for n in keys) * H_k * d
    if max(watch.read["K"], watch.read["V"]) > most:
        return Finding("read_again")
    if parts > 1 and watch.launches < 2:
        return Finding("one_kernel")
    if watch.programs < len(keys) * H_k * min(parts, -(-room // WIDEST)):
        return Finding("not_split")
    return None
