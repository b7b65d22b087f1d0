"""The bounds of what each row of packed sequences sees, computed on the device so that nothing waits for the GPU.

One launch finds them for all passes of a call, forward and backward. A program looks up what it needs in the
offsets themselves, so that no program waits for another.
"""

import itertools
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import on_device_of
from flashlib.kernels.masking import device_side
from flashlib.kernels.masking.device_side import SPAN, Intervals, MaskArgs, Masking, ScoreChange, Variant
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.masks import FAR

STRETCH = tl.constexpr(1024)  # blocks: in each stretch, those with most tiles come first
OTHERS = tl.constexpr(128)  # blocks that a block is compared with at a time
ALIGNED = 32  # numbers: each part is a multiple, since kernels are compiled for aligned pointers or for others


class PackedPass(NamedTuple):
    """How many tokens a pass holds, and how many it streams, in a tile: constexprs."""

    B_OWN: tl.constexpr
    B: tl.constexpr
    transposed: tl.constexpr


class PackingConstants(NamedTuple):
    """What is compiled into the kernel. around: whether rows see only some keys on either side of their own."""

    around: tl.constexpr
    passes: tuple


class Around(NamedTuple):
    """How many keys rows see on either side of their own."""

    left: int
    right: int


class Places(NamedTuple):
    """Where the numbers of a pass begin in the buffer of all: those of `Intervals`, and the order of blocks."""

    first: int
    end: int
    order: int


class Part(NamedTuple):
    """Which pieces of the buffer belong to a pass, and how many tokens it has."""

    first: int
    end: int
    order: int
    N: int


class PackingPlan(NamedTuple):
    """A call of `run`, except the offsets. sizes: of the pieces of the buffer. total: their sum."""

    launch: planning.Launch | None
    sizes: tuple
    parts: dict[str, Part]
    total: int


def plan(
    B: int, causal: bool, asked: dict[str, PassSizes], window: tuple[int, int] = (FAR, FAR)
) -> PackingPlan:  # fmt: skip
    """Return the plan for B sequences.

    asked: the sizes of each pass by its name, with all sequences in one batch. window: how many keys rows see to
    the left and right of their own, FAR for all.
    """
    around = Around(window[0], 0 if causal else window[1])
    tokens, blocks, passes, parts = [0, 0, 0, 0], [], [], {}  # tokens: of rows, twice, and of keys, twice
    for name, tiles in asked.items():
        N, own, streamed = _sides(tiles)
        first = 2 * tiles.transposed
        tokens[first] = tokens[first + 1] = N
        parts[name] = Part(first, first + 1, len(tokens) + len(blocks), N)
        passes.append(PackedPass(*map(tl.constexpr, (own, streamed, tiles.transposed))))
        blocks.append(triton.cdiv(N, own))
    sizes = tuple(triton.cdiv(n, ALIGNED) * ALIGNED for n in (*tokens, *(n * SPAN.value for n in blocks)))
    if not sum(blocks):
        return PackingPlan(None, sizes, parts, sum(sizes))
    begins = tuple(itertools.accumulate(sizes, initial=0))
    places = tuple(Places(*(begins[piece] for piece in part[:3])) for part in parts.values())
    some = next(iter(asked.values()))
    numbers = B, 1 << B.bit_length() >> 1, some.N_q, some.N_k, *around, places
    constants = {"ASKED": PackingConstants(tl.constexpr(min(around) < FAR), tuple(passes))}
    launch = planning.Launch(_find, sum(blocks), numbers, constants, {"num_warps": 4})
    return PackingPlan(launch, sizes, parts, sum(sizes))


def _sides(tiles):
    """Return how many tokens a pass holds in all, how many of them per tile, and how many it streams per tile."""
    if tiles.transposed:
        return tiles.N_k, tiles.B_C, tiles.B_R
    return tiles.N_q, tiles.B_R, tiles.B_C


def run(
    plan: PackingPlan, cu_q: torch.Tensor, cu_k: torch.Tensor, scores: tuple = (), dropout: Any = None
) -> dict[str, MaskArgs]:
    """Return the mask's numbers for each pass. scores, dropout: as in `MaskArgs`.

    cu_q, cu_k: (B + 1,), contiguous, of one integer dtype or two, on the device of `asked`. A plan is for one
    dtype and one alignment of each.
    """
    numbers = cu_q.new_empty(plan.total, dtype=torch.int32)
    if plan.launch:
        with on_device_of(numbers):
            plan.launch(numbers, cu_q, cu_k)
    pieces = numbers.unsafe_split_with_sizes(plan.sizes)  # faster: autograd does not watch them
    return {
        name: MaskArgs(pieces[order], Intervals(pieces[first], pieces[end], 0, N, 0), (), scores, (), (), dropout)
        for name, (first, end, order, N) in plan.parts.items()
    }


def masking(scores: tuple[ScoreChange, ...] = (), drops: bool = False) -> Masking:
    """Return what kernels are compiled for. scores: the changes, in order. drops: whether there is dropout."""
    variant = Variant(device_side.loaded, (), scores)
    return Masking(tl.constexpr(False), variant, drops=tl.constexpr(drops))


class Slopes(NamedTuple):
    """The numbers of `with_distance`: the slopes of sequences, and each row's sequence and its own key.

    stride: from a sequence's slopes to the next one's, 0 if all have the same.
    """

    slopes: Any
    sequence: Any
    own: Any
    stride: Any
    T_q: Any
    T_k: Any


def slopes(of: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, T_q: int, T_k: int) -> Slopes:
    """Return the Slopes of rows of packed sequences. of: (H,) or (B, H), fp32, contiguous."""
    rows = torch.arange(T_q, dtype=cu_q.dtype, device=cu_q.device)
    sequence = torch.searchsorted(cu_q[1:], rows, right=True, out_int32=True).clamp_(max=max(len(cu_q) - 2, 0))
    own = (rows + (cu_k - cu_q)[1:][sequence]).to(torch.int32) if len(cu_q) > 1 else rows.to(torch.int32)
    return Slopes(of, sequence, own, of.shape[1] if of.ndim == 2 else 0, T_q, T_k)


@triton.jit
def with_distance(S, h, r, c, numbers):
    """ALiBi in packed sequences. numbers: Slopes."""
    i = r - (numbers.T_k - numbers.T_q)
    inside = (i >= 0) & (i < numbers.T_q)
    own = tl.load(numbers.own + i, mask=inside, other=0)
    b = tl.load(numbers.sequence + i, mask=inside, other=0)
    distance = tl.abs(own.to(tl.float32) - c.to(tl.float32))
    return S - tl.load(numbers.slopes + b * numbers.stride + h) * distance


ALIBI = ScoreChange(with_distance, device_side.one)


class Offsets(NamedTuple):
    """The offsets of the tokens of a pass, and of the tokens that they see (or that see them); B sequences.

    step: the largest power of two up to B. before, after: how many are seen on either side of a token, if bounded.
    """

    own: Any
    other: Any
    B: Any
    step: Any
    before: Any
    after: Any
    bounded: tl.constexpr
    transposed: tl.constexpr


@triton.jit(do_not_specialize=["B", "step", "N_q", "N_k", "left", "right"])
def _find(Numbers_ptr, Cu_q_ptr, Cu_k_ptr, B, step, N_q, N_k, left, right, places, ASKED: tl.constexpr):
    """Write the numbers of all passes; one program for each block of each pass."""
    block = tl.program_id(0)
    for k in tl.static_range(len(ASKED.passes)):
        if ASKED.passes[k].transposed:
            N_own, offsets = N_k, Offsets(Cu_k_ptr, Cu_q_ptr, B, step, right, left, ASKED.around, True)
        else:
            N_own, offsets = N_q, Offsets(Cu_q_ptr, Cu_k_ptr, B, step, left, right, ASKED.around, False)
        blocks = tl.cdiv(N_own, ASKED.passes[k].B_OWN)
        if (block >= 0) & (block < blocks):
            _find_block(
                Numbers_ptr, places[k], offsets, block, blocks, N_own, N_q, N_k,
                ASKED.passes[k].B_OWN, ASKED.passes[k].B, ASKED.passes[k].transposed,
            )  # fmt: skip
        block -= blocks


@triton.jit
def _find_block(
    Numbers_ptr, places, offsets, block, blocks, N_own, N_q, N_k,
    B_OWN: tl.constexpr, B: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    x = block * B_OWN + tl.arange(0, B_OWN)
    first, end = bounds(offsets, 0, x, N_q, N_k)
    tl.store(Numbers_ptr + places.first + x, first, mask=x < N_own)
    tl.store(Numbers_ptr + places.end + x, end, mask=x < N_own)
    begin = block // STRETCH * STRETCH
    device_side.write_span(
        Numbers_ptr + places.order, bounds, offsets, 0, block, begin, tl.minimum(begin + STRETCH, blocks),
        N_own, N_q, N_k, B_OWN, B, TRANSPOSED, OTHERS,
    )  # fmt: skip


@triton.jit
def bounds(offsets, b, x, N_q, N_k):
    """Return the first key that row x sees and the one after the last, or for a key the rows; b is not used.

    In a sequence of n_q rows and n_k keys, the own key of row r is key r + n_k - n_q. Tokens after the last
    sequence see nothing, and nothing sees them. No offset leads out of a tensor.
    """
    low, step = x * 0, offsets.step  # the last sequence that begins at x or before it
    while step > 0:
        at = low + step
        low = tl.where((at < offsets.B) & (tl.load(offsets.own + tl.minimum(at, offsets.B)) <= x), at, low)
        step = step // 2
    own, own_end = tl.load(offsets.own + low), tl.load(offsets.own + low + 1)
    first, end = tl.load(offsets.other + low), tl.load(offsets.other + low + 1)
    if offsets.bounded:
        longer = (end - first) - (own_end - own)  # by how many tokens the other side exceeds this one
        facing, begin = first + (x - own) + longer, first
        first = tl.minimum(tl.maximum(facing - offsets.before, begin), end)
        end = tl.minimum(tl.maximum(facing + offsets.after + 1, begin), end)
    first = tl.where(x < own_end, first, end)
    N_other = N_q if offsets.transposed else N_k
    first = tl.minimum(tl.maximum(first, 0), N_other)
    end = tl.minimum(tl.maximum(end, first), N_other)
    return first.to(tl.int32), end.to(tl.int32)
