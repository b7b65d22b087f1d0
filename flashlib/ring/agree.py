"""Ranks compare their arguments before any work: sizes, dtypes, a mask, a layout.

A ring whose ranks disagree waits forever or is silently wrong. Here all ranks raise the same ValueError. Each
sends a digest, two whole numbers, and only if the digests differ, the arguments in words.
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

WORDS = 4096  # bytes for the arguments of a rank in words
LENGTHS = 80, 40, 20, 5  # characters of one value: the first length with which all values fit is taken


class RankArguments(NamedTuple):
    """The arguments of a rank. call: the function's name. values: [(name, in words, digest)]."""

    call: str
    values: list


def check(call: str, group: "ProcessGroup | None" = None, *, always: bool | None = None, **values: object) -> None:
    """Raise the same ValueError on every rank of a group unless all have the same values.

    call: the function's name. values: by name; None, numbers, text, dtypes, tuples, arrays, tensors or masks.
    always: whether to compare at each call, or only values that this rank has not yet compared in this group, as
    comparing takes time. By default gloo, which exchanges tensors, compares at each call; other backends compare
    only new values, in words and through the group's store, which does not hold up a GPU. If values are new to one
    rank and not to others, it waits for them until the timeout, and raises RuntimeError.
    """
    import torch.distributed as dist

    on_gloo = "gloo" in dist.get_backend_config(group)
    mine = RankArguments(call, [(name, *_in_words(value)) for name, value in values.items()])
    digest = hashlib.blake2b(json.dumps(mine).encode(), digest_size=16).digest()
    group = group or dist.group.WORLD
    comparisons = _comparisons_of(group)
    if digest in comparisons.equal and not (on_gloo if always is None else always):
        return
    everyone = (_by_tensors if on_gloo else _by_store)(mine, digest, group)
    if everyone:
        raise ValueError(disagreement(everyone))
    comparisons.equal.add(digest)


class _Comparisons:
    """What the ranks of one group have compared. equal: digests that were; rounds: exchanges through its store."""

    def __init__(self) -> None:
        self.equal: set[bytes] = set()
        self.rounds = 0


_comparisons: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {group: its _Comparisons}


def _comparisons_of(group):
    if group not in _comparisons:
        _comparisons[group] = _Comparisons()
    return _comparisons[group]


def numbers_of_all(group: "ProcessGroup", *numbers: int) -> list[tuple[int, ...]]:
    """Return the numbers of each rank of a group. All give equally many; they travel as in `check`."""
    import torch.distributed as dist

    mine = np.array(numbers, np.int64)
    if "gloo" in dist.get_backend_config(group):
        rows = _gathered(mine, group)
    else:
        found = _from_store(mine.tobytes(), group)
        rows = [np.frombuffer(found[rank], np.int64) for rank in dist.get_process_group_ranks(group)]
    return [tuple(map(int, row)) for row in rows]


def _by_tensors(mine, digest, group):
    """Return {rank: its RankArguments}, or None if all are equal."""
    import torch.distributed as dist

    rows = _gathered(np.frombuffer(digest, np.int64), group)
    if all((row == rows[0]).all() for row in rows):
        return None
    everyone = [_from_bytes(row.tobytes()) for row in _gathered(_to_bytes(mine), group)]
    return dict(zip(dist.get_process_group_ranks(group), everyone, strict=True))


def _by_store(mine, digest, group):
    """Return {rank: its RankArguments}, or None if all are equal; raise RuntimeError if others do not come."""
    try:
        found = _from_store(digest + _to_bytes(mine).tobytes(), group)
    except RuntimeError as error:  # a FileStore raises nothing more specific
        words = ", ".join(f"{name} = {words}" for name, words, _ in mine.values)
        raise RuntimeError(
            f"rank {_me()} calls {mine.call} with {words}, which is new to it, and not all ranks came to compare "
            "it: is it the same on every rank?"
        ) from error
    if len({data[: len(digest)] for data in found.values()}) == 1:
        return None
    return {rank: _from_bytes(data[len(digest) :]) for rank, data in found.items()}


def _from_store(mine, group):
    """Return {rank: its bytes}, exchanged through the group's store; raise RuntimeError if others do not come."""
    import torch.distributed as dist

    store, ranks = group.get_group_store(), dist.get_process_group_ranks(group)
    _comparisons_of(group).rounds += 1
    number = _comparisons_of(group).rounds
    store.set(f"agree {number} {_me()}", mine)
    found = {rank: store.get(f"agree {number} {rank}") for rank in ranks}
    store.delete_key(f"agree {number - 1} {_me()}")  # whoever came to this round has read all of the previous one
    return found


def _me():
    import torch.distributed as dist

    return dist.get_rank()


def _gathered(mine, group):
    """Return the array of each rank; all have one size."""
    import torch
    import torch.distributed as dist

    tensor = torch.from_numpy(mine.copy())
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor, group=group)
    return [part.numpy() for part in parts]


def _to_bytes(arguments):
    """Return RankArguments as WORDS bytes."""
    for length in LENGTHS:
        values = [(name[:length], words[:length], digest) for name, words, digest in arguments.values]
        text = json.dumps([arguments.call[:length], values]).encode()
        if len(text) <= WORDS:
            break
    else:
        text = json.dumps([arguments.call[: LENGTHS[-1]], []]).encode()
    return np.frombuffer(text.ljust(WORDS), np.uint8)


def _from_bytes(row):
    call, values = json.loads(row)
    return RankArguments(call, values)


def disagreement(everyone: dict[int, RankArguments]) -> str:
    """Return one sentence that says which ranks differ in what. everyone: {rank: its RankArguments}."""
    calls = {rank: arguments.call for rank, arguments in everyone.items()}
    if len({*calls.values()}) > 1:
        return f"the ranks call different functions: {_by_rank(calls)}; let every rank call the same"
    of = {r: {name: (words, digest) for name, words, digest in own.values} for r, own in everyone.items()}
    names = dict.fromkeys(name for own in of.values() for name in own)
    found = []
    for name in names:
        values = {rank: own.get(name, ("not given", "")) for rank, own in of.items()}
        if len({*values.values()}) > 1:
            found.append(f"{name} {_difference(values)}")
    call, differences = next(iter(calls.values())), reduce(lambda all, new: f"{all}, and {new}", found)
    return f"the ranks of {call} disagree: {differences}; give every rank the same"


def _difference(values):
    """Return in words how values = {rank: (words, digest)} differ; the digest is added if the words are equal."""
    words = {rank: of for rank, (of, _) in values.items()}
    if len({*words.values()}) == len({*values.values()}):
        return f"is {_by_rank(words)}"
    digests = {rank: f"{of} with the digest {digest}" for rank, (of, digest) in values.items()}
    return f"is {_by_rank(digests)}"


def _by_rank(words):
    """Return in words which ranks have which value, the most frequent value first."""
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


def _in_words(value):
    """Return a value in words, and its digest. A mask's are kept: it may hold a number for each token."""
    if not isinstance(value, Mask):
        return _words(value), _digest(value)
    if value not in _masks_in_words:
        _masks_in_words[value] = _words(value), _digest(value)
    return _masks_in_words[value]


def _digest(value):
    """Return a digest of a value, the same in every process."""
    found = hashlib.blake2b(digest_size=4)
    for part in _parts(value):
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


_masks_in_words: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {mask: (words, digest)}


def _parts(value) -> Iterator[bytes]:
    """Yield the bytes that make up a value: the numbers of an array; the code of a function and what it uses."""
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
    elif hasattr(value, "fn") and isinstance(value.fn, types.FunctionType):  # a Triton kernel
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
