"""Ranks compare what they were given, before any work: sizes, dtypes, a mask, a layout.

A ring whose ranks disagree waits for ever, or is wrong without a word. Here all raise the same ValueError. Each
sends a digest, two whole numbers; only if these differ, the words too.
"""

import hashlib
import json
import types
import weakref
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flashlib.language.phrases import and_list
from flashlib.masks import Mask

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

WORDS = 4096  # bytes in which a rank says what it was given
LENGTHS = 80, 40, 20, 5  # characters of one value; the first with which all of them fit


class Said(NamedTuple):
    """What a rank was given. call: the function. values: [(name, in words, digest)]."""

    call: str
    values: list


def check(call: str, group: "ProcessGroup | None" = None, *, always: bool | None = None, **values: object) -> None:
    """Raise the same ValueError on every rank of a group unless all were given the same.

    call: the function's name. values: of any names; None, numbers, text, dtypes, tuples, arrays, tensors or masks.
    always: at each call; else only for values that this rank has not compared in this group before, as comparing
    takes time. The default is at each call on gloo, where tensors travel, and only for new ones on other backends,
    where words travel through the group's store and no GPU is held up. Where values are new to one rank and not to
    others, it waits for them until the timeout, and raises RuntimeError.
    """
    import torch.distributed as dist

    on_gloo = "gloo" in dist.get_backend_config(group)
    said = Said(call, [(name, *_told(value)) for name, value in values.items()])
    digest = hashlib.blake2b(json.dumps(said).encode(), digest_size=16).digest()
    known = _known.setdefault(group or dist.group.WORLD, set())
    if digest in known and not (on_gloo if always is None else always):
        return
    everyone = (_by_tensors if on_gloo else _by_store)(said, digest, group or dist.group.WORLD)
    if everyone:
        raise ValueError(disagreement(everyone))
    known.add(digest)


_known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {group: digests that were equal}
_rounds: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {group: exchanges through its store so far}


def numbers_of_all(group: "ProcessGroup", *numbers: int) -> list[tuple[int, ...]]:
    """Return the whole numbers of each rank of a group, which all give as many; see `check` for how."""
    import torch.distributed as dist

    mine = np.array(numbers, np.int64)
    if "gloo" in dist.get_backend_config(group):
        rows = _gathered(mine, group)
    else:
        found = _from_store(mine.tobytes(), group)
        rows = [np.frombuffer(found[rank], np.int64) for rank in dist.get_process_group_ranks(group)]
    return [tuple(map(int, row)) for row in rows]


def _by_tensors(said, digest, group):
    """Return {rank: what it says}, or None if all say the same."""
    import torch.distributed as dist

    rows = _gathered(np.frombuffer(digest, np.int64), group)
    if all((row == rows[0]).all() for row in rows):
        return None
    everyone = [_from_bytes(row.tobytes()) for row in _gathered(_to_bytes(said), group)]
    return dict(zip(dist.get_process_group_ranks(group), everyone, strict=True))


def _by_store(said, digest, group):
    """Return {rank: what it says}, or None if all say the same; raise RuntimeError if others do not come."""
    try:
        found = _from_store(digest + _to_bytes(said).tobytes(), group)
    except RuntimeError as error:  # a store of files raises no kind of its own
        words = ", ".join(f"{name} = {words}" for name, words, _ in said.values)
        raise RuntimeError(
            f"rank {_me()} calls {said.call} with {words}, which is new to it, and not all ranks came to compare "
            "it: is it the same on every rank?"
        ) from error
    if len({one[: len(digest)] for one in found.values()}) == 1:
        return None
    return {rank: _from_bytes(one[len(digest) :]) for rank, one in found.items()}


def _from_store(mine, group):
    """Return {rank: its bytes}, by way of the group's store; raise RuntimeError if others do not come."""
    import torch.distributed as dist

    store, ranks = group.get_group_store(), dist.get_process_group_ranks(group)
    _rounds[group] = number = _rounds.get(group, 0) + 1
    store.set(f"agree {number} {_me()}", mine)
    found = {rank: store.get(f"agree {number} {rank}") for rank in ranks}
    store.delete_key(f"agree {number - 1} {_me()}")  # who came to this round has read all of the one before
    return found


def _me():
    import torch.distributed as dist

    return dist.get_rank()


def _gathered(mine, group):
    """Return the array of each rank, all of one size."""
    import torch
    import torch.distributed as dist

    tensor = torch.from_numpy(mine.copy())
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor, group=group)
    return [part.numpy() for part in parts]


def _to_bytes(said):
    """Return what a rank says as WORDS bytes."""
    for length in LENGTHS:
        values = [(name[:length], words[:length], digest) for name, words, digest in said.values]
        text = json.dumps([said.call[:length], values]).encode()
        if len(text) <= WORDS:
            break
    else:
        text = json.dumps([said.call[: LENGTHS[-1]], []]).encode()
    return np.frombuffer(text.ljust(WORDS), np.uint8)


def _from_bytes(row):
    call, values = json.loads(row)
    return Said(call, values)


def disagreement(said: dict[int, Said]) -> str:
    """Return in one sentence who says what. said: {rank: what it was given}."""
    calls = {rank: one.call for rank, one in said.items()}
    if len({*calls.values()}) > 1:
        return f"the ranks call different functions: {_who_says(calls)}; let every rank call the same"
    of = {rank: {name: (words, digest) for name, words, digest in one.values} for rank, one in said.items()}
    names = dict.fromkeys(name for one in of.values() for name in one)
    found = []
    for name in names:
        given = {rank: one.get(name, ("not given", "")) for rank, one in of.items()}
        if len({*given.values()}) > 1:
            found.append(f"{name} {_difference(given)}")
    call, differences = next(iter(calls.values())), reduce(lambda all, one: f"{all}, and {one}", found)
    return f"the ranks of {call} disagree: {differences}; give every rank the same"


def _difference(given):
    """Return in words how values differ. given: {rank: (words, digest)}; of equal words the digests tell."""
    words = {rank: of for rank, (of, _) in given.items()}
    if len({*words.values()}) == len({*given.values()}):
        return f"is {_who_says(words)}"
    digests = {rank: f"{of} with the digest {digest}" for rank, (of, digest) in given.items()}
    return f"is {_who_says(digests)}"


def _who_says(words):
    """Return in words which ranks have what: the most frequent first."""
    by: dict = {}
    for rank, of in sorted(words.items()):
        by.setdefault(of, []).append(rank)
    most_first = sorted(by.items(), key=lambda item: -len(item[1]))
    return and_list(f"{of} on {_ranks(ranks)}" for of, ranks in most_first)


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _words(value):
    if isinstance(value, tuple):
        return f"({', '.join(map(_words, value))}{',' if len(value) == 1 else ''})"
    if hasattr(value, "shape") and hasattr(value, "dtype") and value.shape != ():
        return f"<{tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}>"
    return str(value).removeprefix("torch.")


def _told(value):
    """Return a value in words, and its digest. Those of a mask are kept with it: it may have a number a token."""
    if not isinstance(value, Mask):
        return _words(value), _digest(value)
    if value not in _of_masks:
        _of_masks[value] = _words(value), _digest(value)
    return _of_masks[value]


def _digest(value):
    """Return a digest of a value, the same in every process."""
    found = hashlib.blake2b(digest_size=4)
    for part in _parts(value):
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


_of_masks: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _parts(value) -> Iterator[bytes]:
    """Yield the bytes of which a value is made: numbers of an array, code of a function and what it uses."""
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        yield from (str(value.dtype).encode(), str(tuple(value.shape)).encode(), _numbers(value))
    elif isinstance(value, tuple | list | frozenset | set):
        yield str(len(value)).encode()
        for one in value if isinstance(value, tuple | list) else sorted(value, key=repr):
            yield from _parts(one)
    elif isinstance(value, Mask):
        yield type(value).__name__.encode()
        for name, of in sorted(vars(value).items()):
            yield name.encode()
            yield from _parts(of)
    elif isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        used = [value.__globals__.get(name) for name in value.__code__.co_names]
        plain = [one for one in used if isinstance(one, bool | int | float | str | np.ndarray)]
        yield from _parts((value.__code__, value.__defaults__ or (), cells, plain))
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield from _parts((value.co_consts, value.co_names))
    elif hasattr(value, "fn") and isinstance(value.fn, types.FunctionType):  # a kernel of Triton
        yield from _parts(value.fn)
    else:
        yield _plain(value)


def _numbers(value):
    if isinstance(value, np.ndarray):
        return value.tobytes()
    import torch

    return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _plain(value):
    if isinstance(value, np.generic):
        value = value.item()
    known = (
        value is None
        or isinstance(value, bool | int | float | str | bytes)
        or "dtype" in type(value).__name__.lower()
    )
    return (repr(value) if known else f"{type(value).__name__} {getattr(value, '__name__', '')}").encode()
