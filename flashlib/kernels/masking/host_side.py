"""Prepares masks for the kernels, see `of`.

Where every row sees an interval of keys whose ends never fall, bounds say which tiles there are: a closed form for
windows and prefixes, two numbers for each row and each key, in memory, for documents and intersections. For other
masks a kernel looks at each tile once, and a table lists those to be computed, in 4 bytes a tile. What no kernel
can ask (a union, a function without a kernel) is asked once for each score by torch, and kept as a bit. What a
function said is kept as long as all that it looks up is the same, see `of_call`.
"""

import functools
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from triton import KernelInterface

from flashlib import masks
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import on_device_of
from flashlib.kernels.masking import biases, device_side, placed
from flashlib.kernels.masking.device_side import Change, Closed, Intervals, MaskArgs, Masking, Table, Variant

ROWS = 1024  # of scores that torch computes at a time, at most
SCORES = 2**26  # and scores in all: each takes 8 bytes and more meanwhile
WORDS = weakref.WeakKeyDictionary()  # {mask: {sizes: its bits}}
LOOKED_UP = weakref.WeakKeyDictionary()  # {mask: what its functions looked up, and who stands for it since}
SIZES = 16  # for which the bits of a mask are kept
OTHERS = 256  # blocks that a block is compared with at a time


class Asked(NamedTuple):
    """The sizes, and the tiles that a pass computes. transposed: the kernel holds keys and streams rows."""

    B: int
    H: int
    N_q: int
    N_k: int
    B_R: int
    B_C: int
    device: Any
    transposed: bool = False

    @property
    def place(self) -> masks.Place:
        return masks.Place(self.N_q, self.N_k)


class Parts(NamedTuple):
    """What a mask is made of: masks that hide, and masks that change scores, in their order."""

    hide: tuple
    change: tuple


def of_call(mask: masks.Mask | None) -> masks.Mask | None:
    """Return the mask for one call: under which nothing is kept of what its functions said when they knew less.

    It is the mask itself as long as all that they look up is the same. A plain Mask, which many parts have, is
    none.
    """
    if mask is None or torch.compiler.is_compiling():
        return mask
    if type(mask) is masks.Mask:
        return None
    if not isinstance(mask, masks.Mask) or not mask.functions or mask.of_call:
        return mask
    state = tuple(part.looked_up() for part in mask.functions)
    if None in state:
        return mask.anew()
    found = LOOKED_UP.setdefault(mask, (state, None))
    if found[0] != state:
        found = LOOKED_UP[mask] = state, mask.anew()
    return found[1] or mask


def checked(
    mask: masks.Mask | None, causal: bool, Q: torch.Tensor, K: torch.Tensor
) -> tuple[masks.Mask | None, bool]:
    """Return (mask, causal) as kernels take them: None for a mask that hides no more than causal says.

    Raises TypeError or ValueError unless kernels take the mask for these tensors.
    """
    if mask is None:
        return None, causal
    B, H, N_q = Q.shape[:3]
    hide, change = parts(masks.fitted(mask, causal, B, H, N_q, K.shape[2]))
    if not change and all(part == masks.causal() for part in hide):
        return None, bool(hide)
    check_change(change)
    biases.check(change, Q, N_q, K.shape[2])
    return mask, causal


def check_change(change: Iterable[masks.Mask]) -> None:
    """Raise ValueError unless kernels can change scores as these masks do."""
    change = list(change)
    placed.check(change)
    if any(isinstance(part, masks.Biased) and not part.has_kernel for part in map(placed.whole, change)):
        raise ValueError(
            "the score function that reads a tensor has no kernel: pass @triton.jit functions as kernel=, at to "
            "masks.bias, or (f, slope, by_bias, at) to masks.score"
        )
    if any(isinstance(part, masks.Score) and part.kernel is None for part in map(placed.whole, change)):
        raise ValueError(
            "the score function has no kernel: pass masks.score(f, slope, kernel=(f, slope)) with @triton.jit "
            "functions of (S, h, r, c)"
        )


def parts(mask: masks.Mask) -> Parts:
    """Return the parts of an intersection."""
    if isinstance(mask, masks.Both):
        of = [parts(part) for part in mask.parts]
        return Parts(*(one + other for one, other in zip(*of, strict=True)))
    if mask.changes_scores:
        return Parts((), (mask,))
    mask = placed.plain(mask)
    return Parts(() if type(mask) is masks.Mask else (mask,), ())


def of(mask: masks.Mask | None, causal: bool, asked: Asked) -> tuple[MaskArgs | None, Masking]:
    """Return the numbers and the code of a mask that `checked` returned, see `device_side`."""
    if mask is None:
        return None, Masking(tl.constexpr(causal))
    hide, change = parts(masks.combined(mask, causal))
    changes, of_scores = _together(_changes(*_in_whole(part, asked)) for part in change)
    scores_at = tuple(placed.lines(p, asked.place) if isinstance(p, masks.Placed) else None for p in change)
    seen = Seen((), (), ())
    found = _bounds(hide, asked)
    if found is None:
        found = _table(hide, asked)
        seen = _seen([part for part in hide if not _of_whole_tiles(part, asked)], asked)
    variant = Variant(found.function, seen.functions, changes)
    args = MaskArgs(found.order, found.numbers, seen.numbers, of_scores)
    return _placed(args, Masking(tl.constexpr(False), variant), seen.at, scores_at)


def _placed(args, code, seen_at, scores_at) -> tuple[MaskArgs, Masking]:
    """Return both with where functions are asked, if any is asked elsewhere than it is met."""
    if not any((*seen_at, *scores_at)):
        return args, code
    args = args._replace(seen_at=seen_at, scores_at=scores_at)
    return args, code._replace(placed=tl.constexpr(True))


def sparsity(mask: masks.Mask | None, causal: bool, N_q: int, N_k: int) -> tile_sizes.Sparsity:
    """Return the sparsity that tile sizes depend on; dense where rows do not see intervals.

    No keys, 0, where that is known without asking for each score.
    """
    if mask is None:
        return tile_sizes.DENSE
    return _sparsity(parts(masks.combined(mask, causal)).hide, N_q, N_k)._replace(biased=mask.biased)


def _sparsity(hide, N_q, N_k):
    places = [masks.Place(N_q, N_k, b) for b in range(_batches(hide))]
    if N_q and any(all(_hides_all(part, place) for place in places) for part in hide):
        return tile_sizes.Sparsity(keys=0)
    each = [_keys(hide, place) for place in places]
    if each[0] is None:
        sides = tuple((part.B_r, part.B_c) for part in hide if isinstance(part, masks.Blocks))
        return tile_sizes.Sparsity(sides=sides, bits=any(_asked_by_torch(part) for part in hide))
    return tile_sizes.Sparsity(float(np.mean([end - first for first, end in each]))) if N_q else tile_sizes.DENSE


def _hides_all(part, place):
    """Return whether a mask alone is known to hide all."""
    if isinstance(part, masks.Blocks):
        return not part.table.any()
    keys = part.keys(place)
    return keys is not None and bool((keys[0] == keys[1]).all())


def hides_all(mask: masks.Mask | None, causal: bool, N_q: int, N_k: int) -> bool:
    """Return whether it is known, without asking for each score, that no score is seen."""
    return sparsity(mask, causal, N_q, N_k).keys == 0


class Found(NamedTuple):
    """Which tiles are computed: bounds of a Variant and their numbers, the order of blocks; see `device_side`."""

    function: Any
    numbers: Closed | Intervals | Table
    order: torch.Tensor | None


def _bounds(hide, asked) -> Found | None:
    """Return bounds of intervals; None where rows do not see intervals."""
    if (closed := _closed(hide)) is not None:
        return Found(device_side.window_rows if asked.transposed else device_side.window_keys, closed, None)
    each = [_keys(hide, asked.place._replace(b=b)) for b in range(_batches(hide))]
    if each[0] is None:
        return None
    if asked.transposed:
        each = [_rows(first, end, asked.N_k) for first, end in each]
    first, end = (torch.from_numpy(np.stack(X).astype(np.int32)).to(asked.device) for X in zip(*each, strict=True))
    return intervals(first, end, asked)


def intervals(first: torch.Tensor, end: torch.Tensor, asked: Asked) -> Found:
    """Return the Found of bounds of rows, or of keys if transposed: (B or 1, N), int32, on any device.

    The CPU does not wait for them.
    """
    batches, N = first.shape
    T = triton.cdiv(N, asked.B_C if asked.transposed else asked.B_R)
    spans = torch.empty(batches, T, device_side.SPAN.value, dtype=torch.int32, device=asked.device)
    bounds = Intervals(first, end, N if batches > 1 else 0, N, T if batches > 1 else 0)
    if spans.numel():
        with on_device_of(spans):
            _spans(batches * T, N, asked)(spans, bounds)
    return Found(device_side.loaded, bounds, spans)


@functools.lru_cache(maxsize=256)
def _spans(programs, N, asked) -> planning.Launch:
    own, streamed = (asked.B_C, asked.B_R) if asked.transposed else (asked.B_R, asked.B_C)
    constants = {"B_OWN": own, "B": streamed, "TRANSPOSED": asked.transposed, "OTHERS": OTHERS}
    return planning.Launch(device_side.spans, programs, (N, asked.N_q, asked.N_k), constants, {"num_warps": 1})


def _batches(hide):
    return max((part.batches or 1 for part in hide), default=1)


def _keys(hide, place):
    """Return the bounds that these masks have in common, None if one has none."""
    each = [part.keys(place) for part in hide or (masks.Mask(),)]
    if any(keys is None for keys in each):
        return None
    first, end = np.max([keys[0] for keys in each], axis=0), np.min([keys[1] for keys in each], axis=0)
    return first, np.maximum(first, end)


def _rows(first, end, N_k):
    """Return the rows that see each key: the first, and the one after the last. first, end: of each row's keys."""
    c = np.arange(N_k)
    rows = np.searchsorted(end, c, side="right")
    return rows, np.maximum(rows, np.searchsorted(first, c, side="right"))


def _closed(hide) -> Closed | None:
    """Return the bounds of a window or a prefix; None for anything else."""
    windows = [part for part in hide if isinstance(part, masks.Window)]
    prefixes = [part for part in hide if isinstance(part, masks.Prefix)]
    if len(windows) + len(prefixes) < len(hide) or (prefixes and len(hide) > 1):
        return None
    left, right = (
        max(
            -masks.FAR,
            min((n for n in (getattr(part, side) for part in windows) if n is not None), default=masks.FAR),
        )
        for side in ("left", "right")
    )
    return Closed(masks.FAR, 0, prefixes[0].n) if prefixes else Closed(left, right, 0)


class Seen(NamedTuple):
    """The functions that say which scores are seen, their numbers, and where each is asked, see `MaskArgs`."""

    functions: tuple
    numbers: tuple
    at: tuple


def _seen(hide, asked) -> Seen:
    each = [_sees_at(part, asked) for part in hide] or [(device_side.anywhere, None, None)]
    return Seen(*zip(*each, strict=True))


def _sees_at(part, asked):
    if not placed.by_kernel(part):
        return *sees(part, asked), None
    return *sees(part.mask, asked._replace(N_q=part.N_q, N_k=part.N_k)), placed.lines(part, asked.place)


def _asked_by_torch(part):
    """Return whether no kernel can ask what a mask sees."""
    known = isinstance(part, (masks.Window, masks.Prefix, masks.Documents, masks.Blocks))
    return not (known or placed.by_kernel(part) or has_kernel(part))


def has_kernel(part: masks.Mask) -> bool:
    """Return whether a mask is a function that a kernel can call."""
    return isinstance(part, masks.Function) and part.kernel is not None


def _of_whole_tiles(part, asked):
    """Return whether a mask cuts no tile: the table of tiles says all that it says."""
    return isinstance(part, masks.Blocks) and not (part.B_r % asked.B_R or part.B_c % asked.B_C)


def sees(part: masks.Mask, asked: Asked) -> tuple[KernelInterface, tuple | None]:
    """Return the function that says which scores a mask sees, and its numbers; see `device_side`."""
    N_k, device = asked.N_k, asked.device
    match part:
        case masks.Window(left, right):
            return device_side.in_window, (
                masks.FAR if left is None else left,
                masks.FAR if right is None else right,
            )
        case masks.Prefix(n):
            return device_side.in_prefix, (n,)
        case masks.Documents(ids=ids):
            numbers = np.unique(ids, return_inverse=True)[1].reshape(ids.shape).astype(np.int32)
            stride = 0 if part.batches is None else N_k
            return device_side.in_document, (torch.from_numpy(numbers).to(device), stride, N_k)
        case masks.Blocks(table=table):
            lines = np.repeat(table, part.B_c, axis=1)[:, :N_k]
            return in_bits(packed(torch.from_numpy(lines).to(device)[None, None]), part.B_r, asked)
        case masks.Function(kernel=kernel) if kernel is not None:
            return kernel, None
    return in_bits(words_of(part, asked), 1, asked)


def in_bits(words: torch.Tensor, rows: int, asked: Asked) -> tuple[KernelInterface, tuple]:
    """Return the function of a mask that is kept in words, and its numbers; rows: how many share a line."""
    strides = (0 if n == 1 else stride for n, stride in zip(words.shape[:2], words.stride(), strict=False))
    return device_side.in_bits, (words, *strides, words.stride(2), rows, asked.N_q, asked.N_k)


def words_of(mask: masks.Mask, asked: Asked) -> torch.Tensor:
    """Return which scores a mask sees, a bit each: (B or 1, H or 1, N_q, ceil(N_k / 32)) of int32.

    They are kept with the mask, for all passes and tiles. Raises ValueError if a head takes 2^31 words.
    """
    asked = apart([mask], asked)
    sizes, of = (*asked[:4], asked.device), WORDS.setdefault(mask, {})
    if sizes not in of:
        if len(of) >= SIZES:
            of.clear()
        of[sizes] = _words(mask, asked)
    return of[sizes]


def apart(hide: Iterable[masks.Mask], asked: Asked) -> Asked:
    """Return `asked` with one batch and one head, if these masks do not tell them apart."""
    B, H = any(part.asks_batch for part in hide), any(part.asks_head for part in hide)
    return asked._replace(B=asked.B if B else min(asked.B, 1), H=asked.H if H else min(asked.H, 1))


def _words(mask, asked):
    device, (B, H, N_q, N_k) = asked.device, asked[:4]
    if N_q * triton.cdiv(N_k, 32) >= 2**31:
        raise ValueError(
            f"the mask is kept as bits, and {N_q} queries and {N_k} keys have more than 2^36 scores: write it "
            "with window, prefix, documents or blocks, or pass from_function a kernel"
        )
    b, h = torch.arange(B, device=device)[:, None, None, None], torch.arange(H, device=device)[:, None, None]
    place, c = asked.place._replace(b=b, h=h), torch.arange(N_k, device=device)
    rows = max(1, min(ROWS, SCORES // max(B * H * N_k, 1)))
    lines = []
    for start in range(0, max(N_q, 1), rows):  # one part, if there are no rows, too
        r = torch.arange(start, min(start + rows, N_q), device=device)[:, None] + place.past
        sees = mask.sees(place, r, c)
        lines.append(packed(sees.reshape(*(1,) * (4 - sees.ndim), *sees.shape)))
    return torch.cat(lines, dim=2)


def packed(sees: torch.Tensor) -> torch.Tensor:
    """Return booleans (..., n) as words of int32, at least one, each of 32; the first is in the lowest bit."""
    n = sees.shape[-1]
    powers = (2 ** torch.arange(8, device=sees.device)).to(torch.uint8)
    sees = torch.nn.functional.pad(sees, (0, max(-n % 32, 32 - n))).unflatten(-1, (-1, 8))
    return (sees * powers).sum(-1, dtype=torch.uint8).view(torch.int32)


def _table(hide, asked) -> Found:
    """Return the tiles to be computed, as lists: for each block those that are cut, then those that are whole.

    Raises ValueError if there are 2^31 tiles or more.
    """
    asked = apart(hide, asked)
    T_r, T_c = triton.cdiv(asked.N_q, asked.B_R), triton.cdiv(asked.N_k, asked.B_C)
    if asked.B * asked.H * T_r * T_c >= 2**31:  # of programs, on one axis of a grid
        raise ValueError(
            f"a table has fewer than 2^31 tiles, and {asked.N_q} queries and {asked.N_k} keys in tiles of "
            f"{asked.B_R} x {asked.B_C}, for {asked.B} sequences and {asked.H} heads that the mask tells apart, "
            "have more: pass larger B_r and B_c, or write the mask with only window, prefix or documents"
        )
    seen = _seen(hide, asked)
    kinds = torch.empty(asked.B, asked.H, T_r, T_c, dtype=torch.int8, device=asked.device)
    with on_device_of(kinds):
        if kinds.numel():
            code = Masking(tl.constexpr(False), Variant(None, seen.functions, ()))
            args, code = _placed(MaskArgs(seen=seen.numbers), code, seen.at, ())
            device_side.kinds[(kinds.numel(),)](
                kinds, args, asked.N_q, asked.N_k, asked.H, MASK=code, B_R=asked.B_R, B_C=asked.B_C
            )
    if asked.transposed:
        kinds = kinds.mT.contiguous()
    index = torch.argsort(kinds, dim=-1, stable=True).to(torch.int32)
    counts = torch.stack([(kinds == 0).sum(-1), (kinds < 2).sum(-1)], dim=-1).to(torch.int32)
    order = counts[..., 1].sum((0, 1)).argsort(descending=True, stable=True).to(torch.int32)
    blocks, most = kinds.shape[2:]
    strides = asked.H * blocks if asked.B > 1 else 0, blocks if asked.H > 1 else 0
    return Found(None, Table(counts, index, *strides, most), order)


def scores(change: Iterable[masks.Mask], asked: Asked) -> tuple[tuple[Change, ...], tuple]:
    """Return a Change for each mask, one after the other, and their numbers."""
    return _together(_changes(part, asked) for part in change)


def _together(each):
    changes, numbers = zip(*each, strict=True) if (each := list(each)) else ((), ())
    return tuple(Change(*functions) for functions in changes), tuple(numbers)


def _in_whole(part, asked):
    """Return the mask of which a part may be placed, and what is asked of it, with the sizes of the whole."""
    if not isinstance(part, masks.Placed):
        return part, asked
    return part.mask, asked._replace(N_q=part.N_q, N_k=part.N_k)


def _changes(part, asked):
    match part:
        case masks.Biased():
            return biases.change(part, asked.N_q, asked.N_k)
        case masks.Alibi(slopes=slopes):
            slopes = slopes.clip(-(2.0**100), 2.0**100)  # times a distance it must be finite in fp32
            slopes = np.broadcast_to(slopes, asked.H).astype(np.float32)
            each = torch.as_tensor(slopes, device=asked.device)
            return (device_side.with_distance, device_side.one), (each,)
        case masks.Softcap(cap):
            cap = min(max(cap, 2.0**-120), 2.0**120)  # fp32 has both it and its inverse
            return (device_side.capped, device_side.capped_slope), (cap, 1 / cap)
        case masks.Score(kernel=kernel):
            return tuple(kernel), None
    raise TypeError(
        f"no kernel changes scores as {type(part).__name__} does: pass masks.score(f, slope, kernel=...), with & "
        "if it hides some too"
    )
