"""The exercises of chapter 06."""

from functools import wraps
from itertools import product

import numpy as np

from flashlib import cost
from flashlib.checks import loops, updates
from flashlib.checks.examine import Case, Finding, Mistake, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.recorded import Watched
from flashlib.checks.values import describe_value

INF = np.inf


@exercise(title="The loop with Q outside", minutes=20, difficulty="medium")
def fa2(answer):
    return loops.examine(answer, "fa2")


@exercise(title="The loop with K and V outside", minutes=25, difficulty="hard")
def fa1(answer):
    return loops.examine(answer, "fa1")


@exercise(title="The best tile that fits", minutes=15, difficulty="medium")
def best_tile(answer):
    cases = []
    for N, d, capacity, dtype in (
        (2048, 2, cost.sram_bytes(16, 16, 2, "float16"), "float16"),
        (256, 64, 18000, "float16"),
        (256, 16, 8 * 1024, "float32"),
        (256, 16, 16 * 1024, "float16"),
        (4096, 64, 48 * 1024, "float16"),
        (4096, 64, 227 * 1024, "float16"),
        (4096, 128, 100 * 1024, "float64"),
        (4096, 16, 227 * 1024, "float16"),
        (100, 16, 8 * 1024 * 1024, "float16"),
    ):
        words = f"N = {N}, d = {d}, {capacity} bytes, {dtype}"
        cases.append(Case(words, (N, d, capacity, dtype), _best(N, d, capacity, dtype)))
    return examine(answer, cases, BEST_TILE, outputs=("B_r", "B_c"))


def _best(N, d, capacity, dtype, *, sizes=range(4, 11), fits=None, key=None, traffic=cost.fa2_traffic, **masked):
    """Return the tile of powers of two that fits and comes first by `key`."""
    fits = fits or (lambda B_r, B_c: cost.sram_bytes(B_r, B_c, d, dtype) <= capacity)
    key = key or (lambda moved, B_r, B_c: (moved, -B_c, B_r))
    found = []
    for B_r, B_c in product([2**p for p in sizes], repeat=2):
        if fits(B_r, B_c):
            moved = traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype, **masked).total
            found.append((key(moved, B_r, B_c), (B_r, B_c)))
    return min(found)[1]


def _best_by(sentence, key):
    return Mistake(sentence, lambda *arguments: _best(*arguments, key=key))


BEST_TILE = (
    Mistake(
        "capacity is not looked at: cost.sram_bytes(B_r, B_c, d, dtype) is at most capacity", lambda *_: (16, 1024)
    ),
    Mistake(
        "capacity is not looked at: cost.sram_bytes(B_r, B_c, d, dtype) is at most capacity",
        lambda *arguments: _best(*arguments, fits=lambda B_r, B_c: True),
    ),
    Mistake("capacity is taken for KB: it is in bytes", lambda N, d, M, dtype: _best(N, d, M * 1024, dtype)),
    Mistake("B_r and B_c are exchanged: return (B_r, B_c)", lambda *arguments: _best(*arguments)[::-1]),
    Mistake(
        "a tile that fills the capacity to the byte fits too: <=, not <",
        lambda N, d, M, dtype: _best(N, d, M - 1, dtype),
    ),
    Mistake("the traffic is that of the order FA1: take FA2", lambda *a: _best(*a, traffic=cost.fa1_traffic)),
    Mistake("a causal mask is counted: take the traffic without one", lambda *a: _best(*a, causal=True)),
    Mistake("dtype is not used: sram_bytes and fa2_traffic take it", lambda N, d, M, _: _best(N, d, M, "float16")),
    Mistake("dtype is not used: sram_bytes and fa2_traffic take it", lambda N, d, M, _: _best(N, d, M, "float32")),
    _best_by(
        "of equal traffic the tile with the smallest B_c is taken: take the largest", lambda t, r, c: (t, c, r)
    ),
    _best_by("of equal traffic and B_c the largest B_r is taken: take the smallest", lambda t, r, c: (t, -c, -r)),
    _best_by(
        "the largest tile is taken, B_r * B_c: it is the fewest bytes moved that count",
        lambda t, r, c: (-r * c, t),
    ),
    _best_by(
        "the largest tile is taken, B_r * B_c: it is the fewest bytes moved that count",
        lambda t, r, c: (-r * c, -c),
    ),
    Mistake(
        "only square tiles are tried: B_r and B_c may differ",
        lambda N, d, M, dtype: _best(
            N, d, M, dtype, fits=lambda r, c: r == c and cost.sram_bytes(r, c, d, dtype) <= M
        ),
    ),
    *(
        Mistake(
            f"sizes stop at {2 ** sizes[-1]}: take the powers of two from 16 to 1024",
            lambda *arguments, sizes=sizes: _best(*arguments, sizes=sizes),
        )
        for sizes in (range(4, 8), range(4, 9), range(4, 10))
    ),
)


@exercise(title="Which tiles are skipped?", minutes=10, difficulty="medium")
def skipped_tiles(answer):
    sizes = (
        (2, 2, 1, 1),
        (4, 4, 2, 2),
        (6, 6, 3, 2),
        (5, 5, 2, 2),
        (2, 5, 1, 2),
        (5, 2, 2, 1),
        (5, 12, 2, 5),
        (12, 5, 5, 2),
        (3, 9, 3, 3),
    )
    cases = [Case("N_q = {}, N_k = {}, tiles of {} x {}".format(*s), s, _skipped(*s)) for s in sizes]
    return examine(_returns_a_set(answer), cases, SKIPPED)


def _skipped(N_q, N_k, B_r, B_c):
    """Return the tiles in which every score is hidden, found by looking at each."""
    seen = np.tri(N_q, N_k, N_k - N_q, dtype=bool)
    tiles = product(range(-(-N_q // B_r)), range(-(-N_k // B_c)))
    return {(i, j) for i, j in tiles if not seen[i * B_r : (i + 1) * B_r, j * B_c : (j + 1) * B_c].any()}


def _tiles(hidden, floor=False):
    """Return a function: the tiles where hidden(first row, last row, first key, last key, past) is true."""

    def found(N_q, N_k, B_r, B_c):
        T_r, T_c = (N_q // B_r, N_k // B_c) if floor else (-(-N_q // B_r), -(-N_k // B_c))
        return {
            (i, j)
            for i, j in product(range(T_r), range(T_c))
            if hidden(i * B_r, min((i + 1) * B_r, N_q) - 1, j * B_c, min((j + 1) * B_c, N_k) - 1, N_k - N_q)
        }

    return found


def _returns_a_set(answer):
    """Return answer with what it returns made a set of tuples of int; raises Finding if it is none."""

    @wraps(answer)
    def run(*sizes):
        tiles = answer(*sizes)
        if tiles is None:
            return None
        try:
            return {(int(i), int(j)) for i, j in (None if isinstance(tiles, np.ndarray) else tiles)}
        except (TypeError, ValueError):
            raise Finding(f"returns {describe_value(tiles)}; return a set of tuples (i, j)") from None

    return run


SKIPPED = (
    Mistake(
        "the mask is aligned top left: row r sees keys up to r + N_k - N_q",
        _tiles(lambda r0, r, c, c1, past: c > r),
    ),
    Mistake(
        "the tiles that are computed are returned: return those that are skipped",
        _tiles(lambda r0, r, c, c1, past: c <= r + past),
    ),
    Mistake(
        "tiles are skipped that the last row sees a key of: ask about the last row of the block, not the first",
        _tiles(lambda r0, r, c, c1, past: c > r0 + past),
    ),
    Mistake(
        "tiles are skipped of which the first key is seen: ask about the first key of the block, not the last",
        _tiles(lambda r0, r, c, c1, past: c1 > r + past),
    ),
    Mistake(
        "tiles with any hidden score are skipped: skip those in which the last row does not see the first key",
        _tiles(lambda r0, r, c, c1, past: c1 > r0 + past),
    ),
    Mistake(
        "off by one: a row sees key r + N_k - N_q itself, so skip where the first key is larger",
        _tiles(lambda r0, r, c, c1, past: c >= r + past),
    ),
    Mistake(
        "off by one: the last row of block i is min((i + 1) * B_r, N_q) - 1",
        _tiles(lambda r0, r, c, c1, past: c > r + 1 + past),
    ),
    Mistake(
        "shorter blocks at the edge are left out: there are ceil(N_q / B_r) by ceil(N_k / B_c) tiles",
        _tiles(lambda r0, r, c, c1, past: c > r + past, floor=True),
    ),
    Mistake("i and j are exchanged: a tile is (i, j), i for rows", lambda *s: {(j, i) for i, j in _skipped(*s)}),
    Mistake(
        "block numbers are compared, j > i: compare rows and keys, which tiles of B_r x B_c count differently",
        lambda N_q, N_k, B_r, B_c: {
            (i, j) for i, j in product(range(-(-N_q // B_r)), range(-(-N_k // B_c))) if j > i
        },
    ),
    Mistake(
        "the shift has the wrong sign: row r sees keys up to r + N_k - N_q",
        _tiles(lambda r0, r, c, c1, past: c > r - past),
    ),
    Mistake("no tile is skipped", lambda *sizes: set()),
)


@exercise(title="The last tile", minutes=10, difficulty="medium")
def last_tile(answer):
    rng = np.random.default_rng(35)
    cases = []
    for words, B_r, B_c, d, n, n_before, padding in (
        ("1 key of 2, padding of 0", 2, 2, 2, 1, 2, 0.0),
        ("1 key of 2, padding of 50", 2, 2, 2, 1, 2, 50.0),
        ("3 keys of 4, padding of -50", 3, 4, 3, 3, 4, -50.0),
        ("4 keys of 4", 3, 4, 3, 4, 4, 0.0),
        ("2 keys of 5 and none before", 3, 5, 2, 2, 0, 7.0),
    ):
        Q_i, K, V = (rng.normal(size=(size, d)).round(1) for size in (B_r, n_before + n, n_before + n))
        S = Q_i @ K.T * 0.3
        before = updates.state(S[:, :n_before], V[:n_before]) if n_before else updates.start(B_r, d)
        K_j, V_j = np.full((2, B_c, d), padding)
        K_j[:n], V_j[:n] = K[n_before:], V[n_before:]
        cases.append(Case(words, (Q_i, K_j, V_j, n, *before, 0.3), tuple(updates.state(S, V))))
    return examine(_loaded_whole(answer), cases, LAST_TILE, outputs=("m", "l", "O_acc"))


def _loaded_whole(answer):
    """Return answer with K_j and V_j in memory that raises Finding if a part of one is loaded."""

    @wraps(answer)
    def run(Q_i, K_j, V_j, *arguments):
        K, V = Watched.put(K_j)[0], Watched.put(V_j)[0]
        after = answer(Q_i, K, V, *arguments)
        for name, X in (("K_j", K), ("V_j", V)):
            if X.loads.least < X.size:
                raise Finding(f"a part of {name} is loaded: a tile has a fixed shape, so mask the scores instead")
        return after

    return run


def _padded(lines):
    """Return the update of a tile of which n keys are real, with `lines` exchanged."""

    def after(Q_i, K_j, V_j, n, m, l, O_acc, scale):
        seen = np.arange(len(K_j)) < n
        given = {"Q_i": Q_i, "K_j": K_j, "V_j": V_j, "scale": scale, "before": updates.State(m, l, O_acc), "n": n}
        return updates.update(lines, seen=seen, **given)

    return after


LAST_TILE = tuple(
    Mistake(sentence, _padded(lines))
    for sentence, lines in (
        (
            "padded keys are counted: their scores must be -inf before the maximum is taken",
            {"S_ij": lambda s: s.raw * s.scale},
        ),
        (
            "padded scores become 0: they must become -inf, since exp(0 - m) is a weight",
            {"S_ij": lambda s: np.where(s.seen, s.raw * s.scale, 0)},
        ),
        (
            "m counts padded keys: overwrite their scores before the maximum is taken, not their weights after",
            {
                "S_ij": lambda s: s.raw * s.scale,
                "P_ij": lambda s: np.where(s.seen, np.exp(s.raw * s.scale - s.shift[:, None]), 0),
            },
        ),
        (
            "l counts padded keys: setting V_j to 0 there mends O_acc, not l",
            {
                "S_ij": lambda s: s.raw * s.scale,
                "O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + np.where(s.seen, s.P_ij, 0) @ s.V_j,
            },
        ),
        (
            "off by one: keys 0 to n - 1 are real, so the mask is np.arange(len(K_j)) < n",
            {"S_ij": lambda s: np.where(np.arange(len(s.K_j)) <= s.n, s.raw * s.scale, -INF)},
        ),
        (
            "off by one: keys 0 to n - 1 are real, so the mask is np.arange(len(K_j)) < n",
            {"S_ij": lambda s: np.where(np.arange(len(s.K_j)) < s.n - 1, s.raw * s.scale, -INF)},
        ),
        (
            "the mask is upside down: real keys become -inf, padded ones are kept",
            {"S_ij": lambda s: np.where(s.seen, -INF, s.raw * s.scale)},
        ),
        (
            "padded keys count with a score of 0, if K_j and V_j are set to 0 there: it must be -inf",
            {
                "S_ij": lambda s: np.where(s.seen, s.raw * s.scale, 0),
                "O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + np.where(s.seen, s.P_ij, 0) @ s.V_j,
            },
        ),
        (
            "the mask is laid on rows: keys are the columns of S_ij",
            {"S_ij": lambda s: np.where(np.arange(len(s.Q_i))[:, None] < s.n, s.raw * s.scale, -INF)},
        ),
        *updates.SCORES,
        *updates.UPDATES,
    )
)


@exercise(title="The end of a row block", minutes=5, difficulty="easy")
def finish(answer):
    rng = np.random.default_rng(0)
    rows = (
        ("two rows", [0.5, -2.0], [1.5, 3.0]),
        ("a row that has seen nothing", [0.5, -INF], [1.5, 0.0]),
        ("rows that have all seen nothing", [-INF, -INF], [0.0, 0.0]),
        ("large and small maxima", [1000.0, -1000.0, -INF], [2.0, 1.0, 0.0]),
        ("no rows", [], []),
    )
    cases = []
    for words, m, l in rows:
        m, l = np.array(m), np.array(l)
        O_acc = rng.normal(size=(len(m), 2)).round(1) * (l > 0)[:, None]
        lse = [a + np.log(b) if b > 0 else -INF for a, b in zip(m, l, strict=True)]
        O = [row / b if b > 0 else 0 * row for row, b in zip(O_acc, l, strict=True)]
        cases.append(Case(words, (m, l, O_acc), (np.array(O).reshape(len(m), 2), np.array(lse))))
    return examine(answer, cases, FINISH, outputs=("O", "lse"))


def _finished(sentence, O=None, lse=None):
    """Return the Mistake of a wrong O or lse, functions of m, l, O_acc and the divisor."""

    def wrong(m, l, O_acc):
        divisor = np.where(l == 0, 1, l)
        right = O_acc / divisor[:, None], m + np.log(divisor)
        return (
            O(m, l, O_acc, divisor) if O else right[0],
            lse(m, l, O_acc, divisor) if lse else right[1],
        )

    return Mistake(sentence, wrong)


LSE = "lse = m + log(l)"

FINISH = (
    _finished("O is nan where l is 0, since 0 / 0 is nan: divide by 1 there", lambda m, l, O, _: O / l[:, None]),
    _finished("[:, None] is missing: l is taken as one number for each column", lambda m, l, O, x: O / x),
    _finished("O is not divided by l: O = O_acc / l", lambda m, l, O, _: O),
    _finished("O is multiplied by l: O = O_acc / l", lambda m, l, O, _: O * l[:, None]),
    *(
        _finished(
            f"{eps:g} is added to l, so that all rows are a little too small: divide by 1 where l is 0",
            lambda m, l, O, _, eps=eps: O / (l + eps)[:, None],
            lse,
        )
        for eps in (1e-3, 1e-5, 1e-6, 1e-8)
        for lse in (None, lambda m, l, O, _, eps=eps: m + np.log(l + eps))
    ),
    _finished(
        "a row that has seen nothing makes all rows 0: each row is guarded on its own",
        lambda m, l, O, x: O / x[:, None] * (l > 0).all(),
        lambda m, l, O, x: m + np.log(x) if (l > 0).all() else np.full(m.shape, -INF),
    ),
    _finished("all of l is divided by: each row by its own", lambda m, l, O, _: O / max(l.sum(), 1)),
    _finished(f"lse is log(l) alone: {LSE}", None, lambda m, l, O, _: np.log(l)),
    _finished(f"lse is log(l) alone: {LSE}", None, lambda m, l, O, divisor: np.log(divisor)),
    _finished(f"lse is m alone: {LSE}", None, lambda m, l, O, _: m),
    _finished(f"lse is m + l: {LSE}", None, lambda m, l, O, _: m + l),
    _finished(f"lse is m times log(l): {LSE}", None, lambda m, l, O, divisor: m * np.log(divisor)),
    _finished(f"the logarithm is to base 2: {LSE}, a natural one", None, lambda m, l, O, x: m + np.log2(x)),
    _finished(f"the logarithm is to base 10: {LSE}, a natural one", None, lambda m, l, O, x: m + np.log10(x)),
    _finished(
        "lse is 0 in a row that has seen nothing: log 0 is -inf",
        None,
        lambda m, l, O, x: np.where(l == 0, 0, m + np.log(x)),
    ),
    _finished(
        "O is nan and lse is 0 in a row that has seen nothing: O = 0, lse = -inf",
        lambda m, l, O, _: O / l[:, None],
        lambda m, l, O, x: np.where(l == 0, 0, m + np.log(x)),
    ),
    _finished(f"lse has the sign exchanged: {LSE}", None, lambda m, l, O, x: m - np.log(x)),
)
