"""How `decode` splits the keys of a sequence, the programs of a call, and a model of their time.

The tiles are those of `flashlib.kernels.decode` for N_q = 1, 16-bit numbers and a GPU with tensor cores for bf16,
repeated here because Triton is not installed everywhere; tests compare the two.

The time is a model, not a measurement. By Little's law the bytes in flight are the rate times the latency. A
program keeps a few tiles in flight, so a few programs cannot use the full bandwidth of the memory.
Source: Volkov, Understanding Latency Hiding on GPUs (2016).
"""

from dataclasses import dataclass
from typing import NamedTuple

from flashlib import splits
from flashlib.gpus import GPUS
from flashlib.splits import actual_parts

B_C = 64  # keys of a tile
HOPPER = "H100", "H200"  # they multiply tiles of 64 rows from shared memory, which holds one more tile
STAGES = 3  # one is being used, the others are in flight
MOST_PARTS = 256  # that can be requested, and distinguished on a page
BARRIERS = 1024  # bytes of shared memory
MOST_AT_A_TIME = 2  # programs of one multiprocessor
ITEM, ACC = 2, 4  # bytes of fp16 or bf16, and of fp32

LATENCY = 1.4e-6  # seconds until bytes arrive, fitted to times of few programs in the `parts` of bench.decode's
# record; about 0.3e-6 on an idle GPU, see gpus.Latency
LAUNCH = 2e-6  # seconds of an empty kernel, launched repeatedly in a CUDA graph


class Time(NamedTuple):
    """Seconds for two launches, for K and V, and for writing, reading and merging States."""

    launches: float
    keys: float
    states: float

    @property
    def total(self) -> float:
        return sum(self)


def tiles_of(N_k: int) -> int:
    """Return the number of tiles of N_k keys."""
    return -(-N_k // B_C)


def split(N_k: int, parts: int) -> list[list[int]]:
    """Return the first key of each part and the one after its last; parts: the requested number."""
    tiles = tiles_of(N_k)
    n = actual_parts(tiles, parts)
    return [[tiles * k // n * B_C, min(tiles * (k + 1) // n * B_C, N_k)] for k in range(n)]


def _power(n):
    return max(16, 1 << (n - 1).bit_length())


@dataclass(frozen=True)
class DecodeCall:
    """A call of `decode` with one new query for each of B sequences of N_k keys, on one of `GPUS`."""

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
        """Rows of a tile: 16, or more if the group has more heads; on Hopper it is then 64."""
        rows = _power(self.group)
        return 64 if rows == 32 and self.gpu in HOPPER else rows

    @property
    def joined(self) -> int:
        """The most States that the merge loads at a time."""
        return splits.states_at_once(splits.columns(self.B * self.H_k * self.group, self.D, GPUS[self.gpu].sms))

    @property
    def at_a_time(self) -> int:
        """How many programs a multiprocessor runs at once: as many as fit in shared memory, at most two."""
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
        """Bytes that a program keeps in flight: K and V of all stages but the one being used."""
        return 2 * (STAGES - 1) * B_C * self.d * ITEM

    @property
    def pulls(self) -> float:
        """Bytes per second that a program can pull."""
        return self.in_flight / LATENCY

    @property
    def default(self) -> int:
        """Into how many parts `decode` splits a sequence by default, if it reads the lengths from memory."""
        heads, places = self.B * self.H_k, splits.places(self.B_R)
        return splits.chosen(tiles_of(self.N_k), heads, GPUS[self.gpu].sms, places=places, ragged=self.B > 1)

    def programs(self, n: int) -> int:
        """How many programs read keys, with n parts of a sequence. Up to 64 heads of a group are rows of one."""
        return self.B * self.H_k * n

    def waves(self, n: int) -> tuple[int, int]:
        """The number of waves, and how many programs run in the last; the others fill all places."""
        programs = self.programs(n)
        count = -(-programs // self.places)
        return count, programs - (count - 1) * self.places

    def time(self, n: int) -> Time:
        """Return the model's Time for n parts."""
        return Time(2 * LAUNCH, self._reading(n), self._merging(n))

    def _reading(self, n):
        """A latency until the first bytes arrive, then wave after wave at the rate that it can request."""
        each = self.bytes / self.programs(n)
        pulls = min(self.pulls, each / LATENCY)
        count, last = self.waves(n)

        def wave(running):
            return running * each / min(GPUS[self.gpu].bandwidth, running * pulls)

        return LATENCY + (count - 1) * wave(self.places) + wave(last)

    def _merging(self, n):
        """States are written and read once; a program of the merge requests more when the last have arrived."""
        moved = 2 * self.B * self.H_k * self.group * n * (self.d + 2) * ACC
        return max(moved / GPUS[self.gpu].bandwidth, -(-n // self.joined) * LATENCY)

    def curve(self) -> list[tuple[int, Time]]:
        """Return every number of parts that is possible with these keys, and the default, each with its Time."""
        tiles = tiles_of(self.N_k)
        numbers = {actual_parts(tiles, parts) for parts in range(1, min(tiles, MOST_PARTS) + 1)}
        return [(n, self.time(n)) for n in sorted(numbers | {self.default})]
