"""What each row of packed sequences sees, found where the offsets lie: nothing waits for the GPU.

One launch finds it for all passes of a call, forward and backward. A program looks up what it needs in the offsets
themselves, so that none waits for another.
"""

import itertools
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import on_device_of
from flashlib.kernels.masking import device_side, host_side
from flashlib.kernels.masking.device_side import SPAN, Intervals, MaskArgs, Masking, Variant

MASKING = Masking(tl.constexpr(False), Variant(device_side.loaded, (), ()))  # what kernels are compiled for
STRETCH = tl.constexpr(1024)  # blocks: in each stretch, those with most tiles come first
OTHERS = tl.constexpr(128)  # blocks that a block is compared with at a time
ALIGNED = 32  # numbers, of which each part is a multiple: a kernel is compiled for aligned pointers, or for others


class Pass(NamedTuple):
    """How many of its own tokens, and of those that it streams, a pass has in a tile: constexprs."""

    B_OWN: tl.constexpr
    B: tl.constexpr
    transposed: tl.constexpr


class Asked(NamedTuple):
    """What is compiled into the kernel."""

    causal: tl.constexpr
    passes: tuple


class Places(NamedTuple):
    """Where the numbers of a pass begin among those of all: of `Intervals`, and of the order of blocks."""

    first: int
    end: int
    order: int


class Part(NamedTuple):
    """Which pieces of all numbers are those of a pass, and how many tokens it has."""

    first: int
    end: int
    order: int
    N: int


class Plan(NamedTuple):
    """A call of `run`, except the offsets. sizes: of the pieces of all numbers."""

    launch: planning.Launch | None
    sizes: tuple
    parts: dict[str, Part]


def plan(B: int, causal: bool, asked: dict[str, host_side.Asked]) -> Plan:
    """Return the plan for B sequences, and for passes by their names.

    asked: as in `host_side.of`, with one batch that holds all sequences.
    """
    tokens, blocks, passes, parts = [0, 0, 0, 0], [], [], {}  # tokens: of rows, twice, and of keys, twice
    for name, tiles in asked.items():
        N, own, streamed = _sides(tiles)
        first = 2 * tiles.transposed
        tokens[first] = tokens[first + 1] = N
        parts[name] = Part(first, first + 1, len(tokens) + len(blocks), N)
        passes.append(Pass(*map(tl.constexpr, (own, streamed, tiles.transposed))))
        blocks.append(triton.cdiv(N, own))
    sizes = tuple(triton.cdiv(n, ALIGNED) * ALIGNED for n in (*tokens, *(n * SPAN.value for n in blocks)))
    if not sum(blocks):
        return Plan(None, sizes, parts)
    begins = tuple(itertools.accumulate(sizes, initial=0))
    places = tuple(Places(*(begins[piece] for piece in part[:3])) for part in parts.values())
    some = next(iter(asked.values()))
    numbers = B, 1 << B.bit_length() >> 1, some.N_q, some.N_k, places
    constants = {"ASKED": Asked(tl.constexpr(causal), tuple(passes))}
    return Plan(planning.Launch(_find, sum(blocks), numbers, constants, {"num_warps": 4}), sizes, parts)


def _sides(tiles):
    """Return how many tokens a pass has, and how many of these, and of those that it streams, are in a tile."""
    if tiles.transposed:
        return tiles.N_k, tiles.B_C, tiles.B_R
    return tiles.N_q, tiles.B_R, tiles.B_C


def run(plan: Plan, cu_q: torch.Tensor, cu_k: torch.Tensor) -> dict[str, MaskArgs]:
    """Return the mask's numbers for each pass.

    cu_q, cu_k: (B + 1,), contiguous, of one integer dtype or two, on the device of `asked`. A plan is for one
    dtype and one alignment of each.
    """
    numbers = cu_q.new_empty(sum(plan.sizes), dtype=torch.int32)
    if plan.launch:
        with on_device_of(numbers):
            plan.launch(numbers, cu_q, cu_k)
    pieces = numbers.unsafe_split_with_sizes(plan.sizes)  # faster: autograd does not watch them
    return {
        name: MaskArgs(pieces[order], Intervals(pieces[first], pieces[end], 0, N, 0))
        for name, (first, end, order, N) in plan.parts.items()
    }


class Offsets(NamedTuple):
    """The offsets of the tokens of a pass, and of what they see (or by which they are seen); B sequences.

    step: the largest power of two up to B.
    """

    own: Any
    other: Any
    B: Any
    step: Any
    causal: tl.constexpr
    transposed: tl.constexpr


@triton.jit(do_not_specialize=["B", "step", "N_q", "N_k"])
def _find(Numbers_ptr, Cu_q_ptr, Cu_k_ptr, B, step, N_q, N_k, places, ASKED: tl.constexpr):
    """Write the numbers of all passes, a program for each block of each."""
    block = tl.program_id(0)
    for k in tl.static_range(len(ASKED.passes)):
        if ASKED.passes[k].transposed:
            N_own, offsets = N_k, Offsets(Cu_k_ptr, Cu_q_ptr, B, step, ASKED.causal, True)
        else:
            N_own, offsets = N_q, Offsets(Cu_q_ptr, Cu_k_ptr, B, step, ASKED.causal, False)
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
    """Return the first key that row x sees and the one after the last, or for a key the rows; b: not used.

    Row r of a sequence of n_q rows and n_k keys sees, if causal, its keys up to r + n_k - n_q. No offset leads out
    of a tensor.
    """
    low, step = x * 0, offsets.step  # the last sequence that begins at x or before it
    while step > 0:
        at = low + step
        low = tl.where((at < offsets.B) & (tl.load(offsets.own + tl.minimum(at, offsets.B)) <= x), at, low)
        step = step // 2
    own, own_end = tl.load(offsets.own + low), tl.load(offsets.own + low + 1)
    first, end = tl.load(offsets.other + low), tl.load(offsets.other + low + 1)
    if offsets.causal:
        longer = (end - first) - (own_end - own)  # by so many the other side exceeds this one
        if offsets.transposed:
            first = tl.maximum(first, tl.minimum(first + (x - own) + longer, end))
        else:
            end = tl.minimum(end, first + (x - own) + longer + 1)
    N_other = N_q if offsets.transposed else N_k
    first = tl.minimum(tl.maximum(first, 0), N_other)
    end = tl.minimum(tl.maximum(end, first), N_other)
    return first.to(tl.int32), end.to(tl.int32)
