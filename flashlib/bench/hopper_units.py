"""The units of a Hopper multiprocessor, working alone or in pairs: kernels that read its clock.

They measure the numbers in `pipeline.timeline.Machine`. Each kernel repeats one part of `kernels.hopper.forward`
and nothing else: products of tiles, the softmax of a tile, copies, a turn, the output. None of them is attention.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from flashlib.kernels.hopper import launch
from flashlib.kernels.hopper.forward import by_row, fetch, matrix, operand, partial_sums, pin, softmax
from flashlib.kernels.hopper.ladder import tiles

DEVICE = "cuda"
ROWS = 64  # rows of a tile of Q, for a group of four warps
TIMES, LONGER = 200, 1600  # how often a group does its work; the other group must not end earlier
SCALE = 0.125


def describe(X: torch.Tensor, rows: int) -> object:
    """Return the descriptor of a matrix, (n, d), in tiles of `rows`."""
    return launch.describe(X[None, None], rows)


@gluon.jit
def clock():
    """Return the multiprocessor's clock. No product and no wait moves past it."""
    return gl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l,r", [0], dtype=gl.int64, is_pure=False, pack=1)


@gluon.jit
def nanoseconds():
    return gl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l,r", [0], dtype=gl.int64, is_pure=False, pack=1
    )


@gluon.jit
def _products(q, k, clocks, sums, TIMES: gl.constexpr, N: gl.constexpr, ME: gl.constexpr):
    """Add N products Q K^T to S and wait for them, TIMES times."""
    Q = matrix(q)
    K = matrix(k)
    ROWS: gl.constexpr = Q.type.shape[0]
    B_C: gl.constexpr = K.type.shape[0]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    acc = gl.zeros([ROWS, B_C], gl.float32, S_LAYOUT)
    start = clock()
    for _ in range(TIMES):
        for _n in gl.static_range(N):
            acc = warpgroup_mma(Q, K.permute((1, 0)), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc,))
    gl.store(clocks + ME, clock() - start)
    gl.store(sums + ME, gl.sum(gl.sum(acc, 1), 0))


@gluon.jit
def _softmaxes(q, k, s_ptr, clocks, sums, scale, TIMES: gl.constexpr, N: gl.constexpr, ME: gl.constexpr):
    """Compute P of a tile S, add up l and rescale O, TIMES times.

    N = 1: while P K, as if it were P V, is under way.
    """
    K = matrix(k)
    B_C: gl.constexpr = K.type.shape[0]
    D: gl.constexpr = K.type.shape[1]
    ROWS: gl.constexpr = q.type.shape[2]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    rows = gl.arange(0, ROWS, layout=gl.SliceLayout(1, S_LAYOUT))
    cols = gl.arange(0, B_C, layout=gl.SliceLayout(0, S_LAYOUT))
    S = gl.load(s_ptr + rows[:, None] * B_C + cols[None, :])
    O_acc = gl.zeros([ROWS, D], gl.float32, O_LAYOUT)
    m = gl.full([ROWS], -float("inf"), gl.float32, gl.SliceLayout(1, S_LAYOUT))
    P, m, shift, alpha = softmax(S, m, m, (scale, scale))
    l = partial_sums(P)
    P_low = operand(P, k.dtype, O_LAYOUT)
    issued = clock()
    start = clock()
    for _ in range(TIMES):
        O_acc = pin(O_acc * by_row(pin(alpha, 1), O_acc), 1)
        if N:
            O_begun = warpgroup_mma(P_low, K, O_acc, is_async=True)
            issued += clock()  # the product is issued before, not among the exponentials
        S = pin(S, 1)
        P, m, shift, alpha = softmax(S, m, shift, (scale, scale))
        l = l * by_row(alpha, l) + partial_sums(P)
        P_low = operand(P, k.dtype, O_LAYOUT)
        if N:
            issued += clock()  # and waited for here, not before them
            O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    gl.store(clocks + ME, clock() - start)
    gl.store(clocks + 2 + ME, issued)  # so that it is really read
    gl.store(sums + 2 + ME, gl.sum(gl.sum(P_low.to(gl.float32), 1), 0))
    gl.store(sums + ME, gl.sum(gl.sum(l, 1), 0) + gl.sum(gl.sum(O_acc, 1), 0))


@gluon.jit
def _group(
    q, k, s_ptr, clocks, sums, scale, WORK: gl.constexpr, TIMES: gl.constexpr, N: gl.constexpr, ME: gl.constexpr
):
    if WORK == "products":
        _products(q, k, clocks, sums, TIMES, N, ME)
    else:
        _softmaxes(q, k, s_ptr, clocks, sums, scale, TIMES, N, ME)


@gluon.jit
def _groups(
    q_desc, k_desc, s_ptr, clocks, sums, scale, FIRST: gl.constexpr, N: gl.constexpr, TIMES: gl.constexpr,
    SECOND: gl.constexpr, N_2: gl.constexpr, TIMES_2: gl.constexpr,
):  # fmt: skip
    q = tiles.slots(q_desc, 1).index(0)
    k = tiles.slots(k_desc, 1).index(0)
    full = tiles.barriers(2, 1)
    fence_async_shared()
    fetch(q_desc, [0, 0, 0, 0], q, full.index(0))
    fetch(k_desc, [0, 0, 0, 0], k, full.index(1))
    mbarrier.wait(full.index(0), 0)
    mbarrier.wait(full.index(1), 0)
    if SECOND == "nothing":
        _group(q, k, s_ptr, clocks, sums, scale, FIRST, TIMES, N, 0)
    else:
        gl.warp_specialize([
            (_group, (q, k, s_ptr, clocks, sums, scale, FIRST, TIMES, N, 0)),
            (_group, (q, k, s_ptr, clocks, sums, scale, SECOND, TIMES_2, N_2, 1)),
        ], [4], [240])  # fmt: skip


@gluon.jit
def _turn(turn, clocks, TIMES: gl.constexpr, ME: gl.constexpr):
    start = clock()
    for u in range(TIMES):
        mbarrier.wait(turn.index(ME), (u & 1) ^ (1 if ME == 0 else 0))
        mbarrier.arrive(turn.index(1 - ME))
    gl.store(clocks + ME, clock() - start)


@gluon.jit
def _turns(clocks, TIMES: gl.constexpr):
    turn = tiles.barriers(2, 1)
    fence_async_shared()
    gl.warp_specialize([(_turn, (turn, clocks, TIMES, 0)), (_turn, (turn, clocks, TIMES, 1))], [4], [240])


@gluon.jit
def _stream(desc, clocks, n_tiles, times, STAGES: gl.constexpr):
    """Copy tiles into a ring of STAGES slots, each as soon as the previous tile in its slot has arrived."""
    ring = tiles.slots(desc, STAGES)
    full = tiles.barriers(STAGES, 1)
    fence_async_shared()
    ROWS: gl.constexpr = desc.block_shape[2]
    at = gl.program_id(0)
    start = clock()
    for g in gl.static_range(STAGES):
        fetch(desc, [0, 0, (at + g * gl.num_programs(0)) % n_tiles * ROWS, 0], ring.index(g), full.index(g))
    for g in range(STAGES, times + STAGES):
        mbarrier.wait(full.index(g % STAGES), (g // STAGES & 1) ^ 1)
        if g < times:
            place = (at + g * gl.num_programs(0)) % n_tiles * ROWS
            fetch(desc, [0, 0, place, 0], ring.index(g % STAGES), full.index(g % STAGES))
    gl.store(clocks + at, clock() - start)


@gluon.jit
def _requests(desc, ring, full, clocks, N: gl.constexpr):
    ROWS: gl.constexpr = desc.block_shape[2]
    for g in gl.static_range(N):
        fetch(desc, [0, 0, (gl.program_id(0) * N + g) * ROWS, 0], ring.index(g), full.index(g))
        gl.store(clocks + gl.program_id(0) * (2 * N + 1) + 1 + g, clock())


@gluon.jit
def _arrivals(full, clocks, N: gl.constexpr):
    gl.store(clocks + gl.program_id(0) * (2 * N + 1), clock())
    for g in gl.static_range(N):
        mbarrier.wait(full.index(g), 0)
        gl.store(clocks + gl.program_id(0) * (2 * N + 1) + 1 + N + g, clock())


@gluon.jit
def _beginning(desc, clocks, N: gl.constexpr):
    """A consumer waits for N tiles, which a producer requests all at once: how soon does each arrive?"""
    ring = tiles.slots(desc, N)
    full = tiles.barriers(N, 1)
    fence_async_shared()
    gl.warp_specialize([(_arrivals, (full, clocks, N)), (_requests, (desc, ring, full, clocks, N))], [1], [24])


@gluon.jit
def _output(desc, clocks, TIMES: gl.constexpr):
    slot = tiles.slots(desc, 1).index(0)
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, desc.block_shape[3], 16])
    O_acc = gl.full([desc.block_shape[2], desc.block_shape[3]], 1.0, gl.float32, O_LAYOUT)
    for t in range(TIMES):
        start = clock()
        O_acc = pin(O_acc * 2.0, 1)
        matrix(slot).store(O_acc.to(desc.dtype))
        fence_async_shared()
        gl.barrier()
        tma.async_copy_shared_to_global(desc, [0, 0, 0, 0], slot)
        gl.store(clocks + 2 * t, clock() - start)
        tma.store_wait(0)
        gl.store(clocks + 2 * t + 1, clock() - start)


@gluon.jit
def _watch(found, nanos, SAMPLES: gl.constexpr):
    """Write (nanoseconds, clocks) since the beginning, each time `nanos` have passed."""
    began = nanoseconds()
    start = clock()
    for k in range(SAMPLES):
        now = nanoseconds()
        while now - began < (k + 1) * nanos:
            now = nanoseconds()
        gl.store(found + 2 * k, now - began)
        gl.store(found + 2 * k + 1, clock() - start)


def rand(*shape: int) -> torch.Tensor:
    """Return numbers from 0 to 1 in bf16, the same each time, whose sums have no cancellation."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.rand(*shape, generator=generator).to(DEVICE, torch.bfloat16)


def zeros(*shape: int) -> torch.Tensor:
    """Return room for clocks."""
    return torch.zeros(shape, dtype=torch.int64, device=DEVICE)


def group(first: tuple, second: tuple = ("nothing", 0), *, d: int, B_c: int) -> float:
    """Return how many clocks the first group takes to do its work once while the second group does its own.

    first, second: ("products" or "softmaxes", their N).
    """
    q, k, S = rand(ROWS, d), rand(B_c, d), rand(ROWS, B_c).float()
    clocks, sums = zeros(4), torch.full((4,), torch.nan, device=DEVICE)
    groups = [(*first, TIMES), (*second, TIMES if first == second else LONGER)]
    _groups[(1,)](describe(q, ROWS), describe(k, B_c), S, clocks, sums, SCALE, *groups[0], *groups[1], num_warps=4)
    for given, (kind, n, times) in zip(sums.tolist(), groups, strict=False):
        if kind != "nothing":
            check(given, kind, times, n, q, k, S)
    return clocks[0].item() / TIMES


def check(given: float, kind: str, times: int, n: int, q: torch.Tensor, k: torch.Tensor, S: torch.Tensor) -> None:
    """Raise AssertionError unless a group's sum is right to 1 percent."""
    q, k, S = q.double(), k.double(), S.double()
    P = torch.exp2((S - S.amax(1, keepdim=True)) * SCALE)
    products, softmaxes = times * n * (q @ k.T).sum(), (times + 1) * P.sum() + times * n * (P @ k).sum()
    expected = products if kind == "products" else softmaxes
    if not abs(given - expected) <= 0.01 * expected:
        raise AssertionError(f"a group's sum is {given}, and should be {expected.item()}")


def turn() -> float:
    """Return the clocks from one group's arrival until the other has seen it."""
    clocks = zeros(2)
    _turns[(1,)](clocks, TIMES, num_warps=4)
    return clocks[0].item() / TIMES / 2


def stream(d: int, B_c: int, *, programs: int, n_tiles: int, times: int = 2000, stages: int = 3) -> float:
    """Return the bytes per clock that reach a program from n_tiles tiles, which programs copy side by side."""
    clocks = zeros(programs)
    X = describe(rand(n_tiles * B_c, d), B_c)
    for _ in range(2):  # the first brings them into the L2 cache
        _stream[(programs,)](X, clocks, n_tiles, times, stages, num_warps=1)
    return times * B_c * d * 2 / clocks.double().mean().item()


def beginning(d: int, rows: int, *, programs: int, n: int) -> dict[str, list[float]]:
    """Return when n tiles were requested and seen, in clocks since a program began: medians of all programs."""
    clocks = zeros(programs, 2 * n + 1)
    X = describe(rand(programs * n * rows, d), rows)
    for _ in range(3):
        _beginning[(programs,)](X, clocks, n, num_warps=4)
    since = (clocks - clocks[:, :1]).double().median(0).values.tolist()
    return {"asked": since[1 : 1 + n], "seen": since[1 + n :]}


def output(d: int) -> dict[str, float]:
    """Return the clocks until O is written and its copy is requested, and until the copy unit has read it."""
    times = 8
    O, clocks = torch.full((ROWS, d), torch.nan, dtype=torch.bfloat16, device=DEVICE), zeros(times, 2)
    _output[(1,)](describe(O, ROWS), clocks, times, num_warps=4)
    if not (O == 2.0**times).all():
        raise AssertionError("O is not what was written")
    asked, read = clocks.double().median(0).values.tolist()
    return {"asked": asked, "read": read}


def watch(ms: float, samples: int = 20) -> torch.Tensor:
    """Let a program record time and clocks together for this many milliseconds.

    Returns (samples, 2), nanoseconds and clocks, which is filled as the program runs.
    """
    found = zeros(samples, 2)
    _watch[(1,)](found, int(ms * 1e6 / samples), samples, num_warps=1)
    return found
