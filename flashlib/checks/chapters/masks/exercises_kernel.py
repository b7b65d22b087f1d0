"""The last exercise: a kernel over lists of tiles. Triton is imported by the checks, not here."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.checks.chapters.masks.exercises import WHOLE, table_of
from flashlib.checks.engine import Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import listed_tiles, multi_head, update
from flashlib.softmax import summarise_rows

OUTPUTS = "O", "lse"
NAN = "nan, or never stored"
PAST_NAN = "m = np.maximum(m_old, np.fmax.reduce(S_ij, axis=1)); divisor = np.where(l > 0, l, 1)"  # as tl.max is
UNGUARDED = "shift = m"  # a tile on a list has a visible key in each row
FP16 = {"dtype": np.float16, "tolerance": 2e-3, "fine": True}  # of P and of O, which are rounded
EXACT = FP16 | {"tolerance": 3e-6}  # of lse, which is not

# No tile's number is its place in the list, but for those of the last row block.
KINDS = [[0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1, 1, 0, 1, 1]]

LISTED = partial(
    update.looped,
    signature="step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, c, N_k, N_q)",
    before=("half = V_j.dtype", update.IN_FP32, "seen = c < N_k"),
    LN2=float(np.log(2)),
    **listed_tiles.READ,
    **multi_head.READ,
)


@exercise(
    title="Attention over lists of tiles",
    minutes=40,
    difficulty="hard",
    program=LISTED,
    variants=(PAST_NAN, UNGUARDED, f"{UNGUARDED}; {PAST_NAN}"),  # right too
    limit=15.0,
)
def whole_tiles(answer: Callable, known: Known) -> Verdict:
    stages = [
        [
            _attended("all tiles on the lists", (1, 1, 32, 32, 16), np.ones((2, 2))),
            _attended("some tiles on the lists", (1, 1, 48, 80, 16), KINDS),
        ],
        [
            _attended("one query and one key", (1, 1, 1, 1, 16), [[1]]),
            _attended("a tile at the end that N_k does not fill", (1, 1, 16, 37, 16), [[1, 0, 1]]),
            _attended("a last row block that N_q does not fill", (1, 1, 21, 48, 16), [[0, 1, 1], [1, 0, 1]]),
            _attended("a row block whose list is empty", (1, 1, 40, 21, 16), [[1, 1], [0, 0], [0, 1]]),
            _attended("two sequences of three heads", (2, 3, 21, 37, 16), [[0, 1, 0], [1, 0, 1]]),
            _attended("tiles of 64 x 16", (1, 1, 80, 56, 16), [[0, 1, 0, 1], [1, 1, 0, 0]], (64, 16)),
            _attended("tiles of 16 x 64", (1, 2, 40, 136, 16), [[0, 1, 1], [1, 0, 1], [0, 0, 1]], (16, 64)),
            _attended("random lists", (1, 1, 56, 75, 16), _kinds(0, 4, 5)),
            _attended("d = 64 and large scores", (1, 1, 5, 70, 64), [[0, 1, 1, 0, 1]], size=1024),
            _attended("scores in the millions", (1, 1, 16, 32, 16), [[1, 1]], size=2**22),
            _attended("scores of -1.7e10, all equal", (1, 1, 5, 21, 16), [[1, 1]], alike=2.0**16),
            _attended("scores that are all 0", (1, 1, 5, 37, 16), [[1, 1, 1]], size=0),
            *random_cases.cases(_any_attended, 3),
        ],
        [_attended("Q, K and V, each in a different order", (1, 2, 5, 7, 16), [[1]], stored=multi_head.APART)],
        [_attended("d = 128, and numbers that fp16 cannot represent", (1, 1, 5, 21, 128), [[1, 1]], fine=True)],
        [
            _attended("tensors in fp16, and sums beyond 65504", (1, 1, 5, 150, 32), V_size=2**15, **FP16),
            _attended("tensors in fp16, d = 128, and V of 0", (1, 1, 16, 150, 128), size=4, V_size=0, **EXACT),
        ],
    ]
    return examine(multi_head.streaming(answer, empty=None), stages, known, outputs=OUTPUTS, nan=NAN)


def _attended(words, shape, listed=None, tile=(16, 16), **options):
    """Return the Case of a shape (B, H, N_q, N_k, d). listed: which tiles are on the lists, by default all."""
    N_q, N_k = shape[2:4]
    kinds = np.ones((-(-N_q // tile[0]), -(-N_k // tile[1]))) if listed is None else np.array(listed)
    seen = np.kron(kinds, np.ones(tile))[:N_q, :N_k] > 0

    def exact(Q, K, V):
        S = Q @ K.T / np.sqrt(Q.shape[1])
        return update.finished(summarise_rows(np.where(seen, S, -np.inf), V))

    case = multi_head.case(words, shape, exact, **options)
    lists = (X.astype(np.int32) for X in table_of(WHOLE * (kinds > 0))[:2])
    return case._replace(arguments=(*case.arguments, *lists, *tile))


def _kinds(seed, T_r, T_c):
    """Return which tiles are on the lists, at random."""
    return np.random.default_rng(seed).integers(0, 2, (T_r, T_c))


def _any_attended(rng):
    B, H, N_q, N_k = map(int, rng.integers((1, 1, 1, 1), (3, 3, 50, 80)))
    tile = tuple(map(int, rng.choice([16, 32], 2)))
    listed = rng.integers(0, 2, (-(-N_q // tile[0]), -(-N_k // tile[1])))
    listed[-1, 0] = 1  # or nothing at all might be stored, which has a name of its own
    words = f"random lists, a shape (B, H, N_q, N_k, d) of {(B, H, N_q, N_k, 16)}"
    return _attended(words, (B, H, N_q, N_k, 16), listed, tile, rng=rng)
