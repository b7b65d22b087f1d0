"""Measure a GPU's memories: the L2 cache, read by warps and copied from by TMA, and a copy within DRAM."""

from collections.abc import Callable

import torch

import flashlib.kernels  # noqa: F401  # before triton: it chooses between compiler and interpreter

import triton  # isort: skip
import triton.language as tl  # isort: skip
from triton.tools.tensor_descriptor import TensorDescriptor  # isort: skip

from flashlib.bench.common import harness

TILE, WARPS = 4096, 8  # 4-byte numbers that a program reads at a time
PROGRAMS = 8  # on each multiprocessor: as many as fit, with 8 warps each
ROWS, STAGES = 64, 4  # of a tile that TMA copies, rows of TILE / ROWS numbers; STAGES - 1 are on their way
COPYING = 4  # programs on each multiprocessor: as many as their tiles leave room for in shared memory
TIMES = 200  # how often each number is read; only the first read goes to DRAM
LARGE = 2 * 10**9  # bytes to copy


def l2_read() -> tuple[int, float]:
    """Return how many bytes were read from the L2 cache, and in how many milliseconds.

    The tensor takes two fifths of the cache, because an H200 keeps what all multiprocessors read in both halves.
    """
    return _timed("reads from the L2 cache", read, PROGRAMS)


def l2_copy() -> tuple[int, float]:
    """Return the same for tiles that TMA copies into shared memory, where the warps read them."""
    return _timed("copies from the L2 cache", copy, COPYING)


def _timed(what: str, run: Callable, programs: int) -> tuple[int, float]:
    """Return the bytes that `programs` on each multiprocessor take from the L2 cache, and the milliseconds."""
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    X = numbers(gpu.L2_cache_size * 2 // 5 // (4 * TILE))
    sums = torch.zeros(gpu.multi_processor_count * programs, device=X.device)
    check(what, run(X, sums, TIMES), X, TIMES)
    return X.nbytes * TIMES, harness.median_ms(lambda: run(X, sums, TIMES))


def numbers(n_tiles: int, device: str = "cuda") -> torch.Tensor:
    """Return n_tiles tiles of small whole numbers, whose sums fp32 holds exactly."""
    return (torch.arange(n_tiles * TILE, device=device) % 7).float()


def read(X: torch.Tensor, sums: torch.Tensor, times: int) -> torch.Tensor:
    """Let every program sum its share of `times` passes over X, tile by tile, and return the sums."""
    n_tiles = len(X) // TILE
    _read[(len(sums),)](X, sums, n_tiles, n_tiles * times, TILE=TILE, num_warps=WARPS)
    return sums


def copy(X: torch.Tensor, sums: torch.Tensor, times: int) -> torch.Tensor:
    """As `read`, but TMA brings the tiles, and the next ones are on their way while one is added."""
    n_tiles = len(X) // TILE
    rows = X.view(-1, TILE // ROWS)
    tiles = TensorDescriptor(rows, rows.shape, rows.stride(), [ROWS, TILE // ROWS])
    sizes = {"ROWS": ROWS, "COLS": TILE // ROWS, "STAGES": STAGES}
    _copy[(len(sums),)](tiles, sums, n_tiles, n_tiles * times, **sizes, num_warps=WARPS)
    return sums


def check(what: str, sums: torch.Tensor, X: torch.Tensor, times: int) -> None:
    """Raise AssertionError unless each number was read this many times."""
    given, expected = sums.double().sum().item(), times * X.double().sum().item()
    if given != expected:
        raise AssertionError(f"{what} are wrong: the sum is {given:.0f}, and should be {expected:.0f}")


@triton.jit
def _read(X_ptr, Sum_ptr, n_tiles, n_reads, TILE: tl.constexpr):
    acc = tl.zeros((TILE,), tl.float32)
    for k in range(tl.program_id(0), n_reads, tl.num_programs(0)):
        offs = k % n_tiles * TILE + tl.arange(0, TILE)
        acc += tl.load(X_ptr + offs, cache_modifier=".cg")  # bypasses the L1 cache
    tl.store(Sum_ptr + tl.program_id(0), tl.sum(acc))


@triton.jit
def _copy(X, Sum_ptr, n_tiles, n_reads, ROWS: tl.constexpr, COLS: tl.constexpr, STAGES: tl.constexpr):
    acc = tl.zeros((ROWS, COLS), tl.float32)
    for k in tl.range(tl.program_id(0), n_reads, tl.num_programs(0), num_stages=STAGES):
        acc += X.load([k % n_tiles * ROWS, 0])
    tl.store(Sum_ptr + tl.program_id(0), tl.sum(tl.sum(acc, axis=1)))


def dram_copy() -> tuple[int, float]:
    """Return how many bytes a copy reads and writes, and in how many milliseconds."""
    X = torch.arange(LARGE // 4, device="cuda", dtype=torch.int32)
    Y = torch.zeros_like(X)
    Y.copy_(X)
    if not torch.equal(X, Y):
        raise AssertionError("the copy is not what was copied")
    return X.nbytes + Y.nbytes, harness.median_ms(lambda: Y.copy_(X))
