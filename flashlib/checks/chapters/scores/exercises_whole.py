"""The last exercise: a whole kernel for any mask. Triton is imported by the checks, not here."""

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from flashlib.checks.chapters.masks.exercises import CUT, WHOLE, kinds_of, table_of
from flashlib.checks.engine import Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import listed_tiles, multi_head, rules, update
from flashlib.softmax import summarise_rows

OUTPUTS = "O", "lse"
NAN = "nan, or never stored"
PAST_NAN = "m = np.maximum(m_old, np.fmax.reduce(S_ij, axis=1)); divisor = np.where(l > 0, l, 1)"  # as tl.max is
FP16 = {"dtype": np.float16, "tolerance": 2e-3, "fine": True}  # of P and of O, which are rounded
EXACT = FP16 | {"tolerance": 3e-6}  # of lse, which is not

# In no row are the lists of whole and of cut tiles equal, and no cut tile's number is its place in the list.
KINDS = [[2, 1, 1, 0, 0], [2, 0, 0, 1, 0], [2, 1, 2, 0, 1]]

ALL, SAME = rules.seen("c == c"), rules.score("S")
CAUSAL = rules.seen("c <= r")
THIRD = rules.seen("(c <= r) & ((r + c + 1000) % 3 == 0)")
NEAR = rules.seen("(c <= r) & (c >= r - 9 - 4 * h - 2 * b)")  # a window for each head
SLOPED = rules.score("S - tl.abs(r - c) / (2.0 + h + 3 * b)")
CAPPED = rules.score("4.0 - 8.0 / (tl.exp(S / 2.0) + 1.0)")  # 4 tanh(S / 4)
PATCHY = rules.seen("((r + 1000) * 7 + c * 5 + (r + 1000) * c % 13) % 5 < 2")  # irregular
UNEVEN = rules.score("S - ((r + 1000) * 3 + c * 5) % 7 / (4.0 + h)")


VARIANT = partial(
    update.looped,
    signature="step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, "
    "n, B, H, b, h, r, c, r_0, past, N_k, N_q, is_cut, SEEN, SCORE)",
    before=(
        "half = V_j.dtype",
        update.IN_FP32,
        "b_m, h_m = b, h",  # what SEEN gets
        "b_s, h_s = b, h",  # what SCORE gets
        "r_m, c_m = r, c",
        "r_s, c_s = r, c",
        "allowed = (not is_cut) | SEEN(b_m, h_m, r_m, c_m)",
        "seen = allowed & (c < N_k)",
        "changed = lambda S: SCORE(S, b_s, h_s, r_s, c_s)",
        "hide = lambda seen, S, other: np.where(seen, changed(S), other)",
    ),
    LN2=float(np.log(2)),
    **listed_tiles.READ,
    **multi_head.READ,
)


def _program(text):
    """Return the ProgramText of a loop over a table, with SCORE wherever scores are hidden."""
    return VARIANT(text).in_terms({"S_ij = np.where(": "S_ij = hide("})


@exercise(
    title="Any mask, any score",
    minutes=70,
    difficulty="hard",
    program=_program,
    variants=("visits = cuts, wholes", PAST_NAN),  # right too
    limit=20.0,
)
def variant(answer: Callable, known: Known) -> Verdict:
    stages = [
        [
            _attended("tiles that are all whole", (1, 1, 32, 32, 16), ALL),
            _attended("the causal mask, and sizes that the tiles divide", (1, 1, 32, 32, 16)),
            _attended("hidden, cut and whole tiles", (1, 1, 48, 80, 16), THIRD, kinds=KINDS),
        ],
        [
            _attended("one query and one key", (1, 1, 1, 1, 16)),
            _attended("a whole tile at the end that N_k does not fill", (1, 1, 16, 37, 16), kinds=[[2, 0, 2]]),
            _attended("a cut tile at the end that N_k does not fill", (1, 1, 16, 37, 16), ALL, kinds=[[0, 0, 1]]),
            _attended("fewer queries than keys, under the causal mask", (1, 1, 21, 56, 16)),
            _attended("rows that see no key, and a block that has no tile", (1, 1, 40, 5, 16)),
            _attended("a window and a slope of each head", (2, 3, 21, 37, 16), NEAR, SLOPED),
            _attended("tiles of 64 x 16", (1, 1, 80, 56, 16), NEAR, SLOPED, tile=(64, 16)),
            _attended("tiles of 16 x 64", (1, 2, 40, 136, 16), NEAR, SLOPED, tile=(16, 64)),
            _attended("a random table", (1, 1, 56, 75, 16), PATCHY, UNEVEN, _kinds(0, 4, 5)),
            _attended("a soft cap", (1, 2, 21, 37, 16), CAUSAL, CAPPED, size=16),
            _attended(
                "a soft cap, and a whole tile that N_k does not fill", (1, 1, 16, 37, 16), ALL, CAPPED, [[2, 0, 2]]
            ),
            _attended(
                "a soft cap, and a cut tile that N_k does not fill", (1, 1, 16, 37, 16), ALL, CAPPED, [[0, 0, 1]]
            ),
            _attended("d = 64 and large scores", (1, 1, 5, 70, 64), size=1024),
            _attended("scores in the millions, all below 0 in some rows", (1, 1, 16, 16, 16), size=2**22),
            _attended("scores of -1.7e10, all equal", (1, 1, 5, 21, 16), alike=2.0**16),
            _attended("scores that are all 0", (1, 1, 5, 37, 16), size=0),
            *random_cases.cases(_any_attended, 3),
        ],
        [_attended("more queries than keys, scores that are changed", (1, 1, 40, 21, 16), NEAR, SLOPED)],
        [_attended("Q, K and V, each in a different order", (1, 2, 5, 7, 16), stored=multi_head.APART)],
        [_attended("d = 128, and numbers that fp16 cannot represent", (1, 1, 5, 21, 128), fine=True)],
        [
            _attended("tensors in fp16, and sums beyond 65504", (1, 1, 5, 150, 32), V_size=2**15, **FP16),
            _attended("tensors in fp16, d = 128, and V of 0", (1, 1, 16, 150, 128), size=4, V_size=0, **EXACT),
        ],
    ]
    verdict = examine(
        multi_head.streaming(_with_table(answer), empty=None), stages, known, outputs=OUTPUTS, nan=NAN
    )
    return _with_far_heads(verdict, answer, known)


def _with_far_heads(verdict, answer, known):
    """Return the verdict on an answer that is right, if it also reaches heads beyond 2^31 numbers."""
    from flashlib.checks.harness import far_heads, far_memory

    def attended(Q, K, V, table):
        return answer(Q, K, V, table, CAUSAL.kernel, SAME.kernel, far_heads.TILE, far_heads.TILE)

    return far_memory.extended(verdict, known, lambda: far_heads.reached(attended))


def _with_table(answer):
    """Return answer as a function of the arrays of a table and of Rules; a kernel, to be refused, is unchanged."""
    if hasattr(answer, "fn"):
        return answer

    def run(Q, K, V, n_whole, whole, n_cut, cut, SEEN, SCORE, B_R, B_C):  # a verdict shows these names
        table = n_whole, whole, n_cut, cut
        with rules.called():
            return answer(Q, K, V, table, SEEN.kernel, SCORE.kernel, B_R, B_C)

    return run


def _attended(words, shape, SEEN=CAUSAL, SCORE=SAME, kinds=None, tile=(16, 16), **options):
    """Return the Case of a shape (B, H, N_q, N_k, d). kinds: of the tiles; by default derived from SEEN."""
    B, H, N_q, N_k, _ = shape
    seen = np.array([[_seen(SEEN, b, h, N_q, N_k) for h in range(H)] for b in range(B)])
    if kinds is None:
        kinds = np.where(
            kinds_of(seen.all(axis=(0, 1)), *tile) == WHOLE, WHOLE, kinds_of(seen.any(axis=(0, 1)), *tile) > 0
        )
    of_score = np.kron(kinds, np.ones(tile, int))[:N_q, :N_k]
    seen = (of_score == WHOLE) | (of_score == CUT) & seen
    indices = iter(product(range(B), range(H)))  # multi_head.case takes the heads in this order

    def exact(Q, K, V):
        b, h = next(indices)
        return _exact(Q, K, V, seen[b, h], lambda S: SCORE(S, b, h, *_places(N_q, N_k)))

    case = multi_head.case(words, shape, exact, **options)
    table = (X.astype(np.int32) for X in table_of(kinds))
    return case._replace(arguments=(*case.arguments, *table, SEEN, SCORE, *tile))


def _places(N_q, N_k):
    """Return the positions of all rows as a column, and the keys as a row."""
    r, c = np.ogrid[:N_q, :N_k]
    return r + N_k - N_q, c


def _seen(SEEN, b, h, N_q, N_k):
    return np.broadcast_to(SEEN(b, h, *_places(N_q, N_k)), (N_q, N_k))


def _exact(Q, K, V, seen, changed):
    """Return O and lse of one head, all keys at once."""
    S = changed(Q @ K.T / np.sqrt(Q.shape[1]))
    return update.finished(summarise_rows(np.where(seen, S, -np.inf), V))


def _kinds(seed, T_r, T_c):
    """Return random kinds of tiles: hidden, cut and whole."""
    return np.random.default_rng(seed).integers(0, 3, (T_r, T_c))


def _any_attended(rng):
    """Return a Case with a mask and a change of scores from the chapter, or with a random table."""
    B, H, N_q, N_k = map(int, rng.integers((1, 1, 1, 1), (3, 3, 50, 80)))
    n, m = map(int, rng.integers(1, 20, 2))
    masks = {
        "a window": f"(c <= r + {m}) & (c >= r - {n})",
        "a prefix": f"(c <= r) | (c < {n})",
        "documents": f"((c >= {n}) == (r >= {n})) & ((c >= {n + m}) == (r >= {n + m}))",
        "every so many keys": f"(c <= r) & ((r + 1000 - c) % {2 + n % 5} == 0)",
        "a random table": f"((r + 1000) * {n} + c * {m} + (r + 1000) * c % 13) % 5 < 2",
    }
    scores = {
        "as they are": "S",
        "ALiBi": f"S - tl.abs(r - c) / ({n}.0 + h)",
        "a soft cap": f"{m}.0 - {2 * m}.0 / (tl.exp(S / {m / 2}) + 1.0)",
        "a bias": f"S + (r + 1000 + c * {n} + b) % {m + 1} / 4.0",
    }
    mask, change = (rng.choice(list(names)) for names in (masks, scores))
    tile = tuple(map(int, rng.choice([16, 32], 2)))
    kinds = rng.integers(0, 3, (-(-N_q // tile[0]), -(-N_k // tile[1]))) if mask == "a random table" else None
    words = f"{mask}, scores {change}, a shape (B, H, N_q, N_k, d) of {(B, H, N_q, N_k, 16)}"
    rule = rules.seen(masks[mask]), rules.score(scores[change])
    return _attended(words, (B, H, N_q, N_k, 16), *rule, kinds, tile, rng=rng)
