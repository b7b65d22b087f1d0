"""How `decode` splits the keys of a sequence, the programs of a call, and a model of the time that they take.

The tiles are those of `flashlib.kernels.decode` for N_q = 1, 16-bit numbers and a GPU with tensor cores for bf16,
written once more, since Triton is not on every machine; tests hold the two together.

The time is a model, not a measurement. By Little's law the bytes in flight are the rate times the latency. A
program keeps a few tiles in flight, so few programs cannot ask for as much as the memory can give.
Source: Volkov, Understanding Latency Hiding on GPUs (2016).
"""

from dataclasses import dataclass
from typing import NamedTuple

from flashlib import splits
from flashlib.gpus import GPUS
from flashlib.splits import actual_parts

B_C = 64  # keys of a tile
HOPPER = "H100", "H200"  # multiply tiles of 64 rows from shared memory, which holds one tile more
STAGES = 3  # of which one is at work, the others are in flight
MOST_PARTS = 256  # that can be asked for, and seen on a page
BARRIERS = 1024  # bytes of shared memory
MOST_AT_A_TIME = 2  # programs of one multiprocessor
ITEM, ACC = 2, 4  # bytes of fp16 or bf16, and of fp32

LATENCY = 1.4e-6  # seconds until bytes come, so that few programs are as fast as in the `parts` of bench.decode's
# record; about 0.3 on an idle GPU, see gpus.Latency
LAUNCH = 2e-6  # seconds that a kernel takes which does nothing, one after another in a CUDA graph


class Time(NamedTuple):
    """Seconds: of two launches, of K and V, and of writing, reading and merging States."""

    launches: float
    keys: float
    states: float

    @property
    def total(self) -> float:
        return sum(self)


def tiles_of(N_k: int) -> int:
    """Return how many tiles N_k keys are."""
    return -(-N_k // B_C)


def split(N_k: int, parts: int) -> list[list[int]]:
    """Return the first key of each part and the one after its last; `parts` as asked for."""
    tiles = tiles_of(N_k)
    n = actual_parts(tiles, parts)
    return [[tiles * k // n * B_C, min(tiles * (k + 1) // n * B_C, N_k)] for k in range(n)]


def _power(n):
    return max(16, 1 << (n - 1).bit_length())


@dataclass(frozen=True)
class DecodeCall:
    """A call of `decode` with one new query for each of B sequences, all of N_k keys, on one of `GPUS`."""

    N_k: int
    B: int
    H_k: int
    group: int
    d: int
    gpu: str

    @property
    def D(self) -> int:
        """d, rounded up to a power of two."""
        return _power(self.d)

    @property
    def B_R(self) -> int:
        """Rows of a tile: 16, or more where the group has more heads; Hopper multiplies tiles of 64 rows then."""
        rows = _power(self.group)
        return 64 if rows == 32 and self.gpu in HOPPER else rows

    @property
    def joined(self) -> int:
        """How many States the merge takes at a time, at most."""
        return splits.states_at_once(splits.columns(self.B * self.H_k * self.group, self.D, GPUS[self.gpu].sms))

    @property
    def at_a_time(self) -> int:
        """How many programs a multiprocessor runs at once: shared memory has room for them; two at most."""
        held = STAGES - (self.B_R < 64 or self.gpu not in HOPPER)
        taken = (self.B_R + 2 * held * B_C) * self.D * ITEM + BARRIERS
        return max(1, min(MOST_AT_A_TIME, GPUS[self.gpu].block_sram // taken))

    @property
    def places(self) -> int:
        """How many programs the GPU runs at once."""
        return GPUS[self.gpu].sms * self.at_a_time

    @property
    def bytes(self) -> int:
        """Bytes of K and V."""
        return 2 * self.B * self.H_k * self.N_k * self.d * ITEM

    @property
    def in_flight(self) -> int:
        """Bytes that a program keeps in flight: of K and V, all stages but the one at work."""
        return 2 * (STAGES - 1) * B_C * self.d * ITEM

    @property
    def pulls(self) -> float:
        """Bytes per second that a program can pull."""
        return self.in_flight / LATENCY

    @property
    def default(self) -> int:
        """How many parts of a sequence `decode` makes by default."""
        heads, places = self.B * self.H_k, splits.places(self.B_R)
        return splits.chosen(tiles_of(self.N_k), heads, GPUS[self.gpu].sms, places=places)

    def programs(self, n: int) -> int:
        """How many programs read a part, with n parts of a sequence. Up to 64 heads of a group are rows of one."""
        return self.B * self.H_k * n

    def waves(self, n: int) -> tuple[int, int]:
        """How many waves the programs run in, and how many run in the last; the others fill all places."""
        programs = self.programs(n)
        count = -(-programs // self.places)
        return count, programs - (count - 1) * self.places

    def time(self, n: int) -> Time:
        """Return what the model says of n parts."""
        return Time(2 * LAUNCH, self._reading(n), self._merging(n))

    def _reading(self, n):
        """A latency until the first bytes are there, then wave after wave at the rate that it can ask for."""
        each = self.bytes / self.programs(n)
        pulls = min(self.pulls, each / LATENCY)
        count, last = self.waves(n)

        def wave(running):
            return running * each / min(GPUS[self.gpu].bandwidth, running * pulls)

        return LATENCY + (count - 1) * wave(self.places) + wave(last)

    def _merging(self, n):
        """States are written and read once; a program of the merge asks for the next ones after the last came."""
        moved = 2 * self.B * self.H_k * self.group * n * (self.d + 2) * ACC
        return max(moved / GPUS[self.gpu].bandwidth, -(-n // self.joined) * LATENCY)

    def curve(self) -> list[tuple[int, Time]]:
        """Return every number of parts that can be made of these keys, and the default, each with its Time."""
        tiles = tiles_of(self.N_k)
        numbers = {actual_parts(tiles, parts) for parts in range(1, min(tiles, MOST_PARTS) + 1)}
        return [(n, self.time(n)) for n in sorted(numbers | {self.default})]
