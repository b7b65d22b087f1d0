"""The exercises on one step of a model: its scores, its cache, its accuracy and its cost."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Verdict, examine, exercise, inspected, random_cases
from flashlib.checks.engine.value_text import describe_value
from flashlib.checks.harness import sizes

# ---- a cap, a mask and a sink


@exercise(title="A cap, a mask and a sink", minutes=15, difficulty="medium")
def model_scores(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    plain = [
        _scores(rng, "one row, all keys seen", 1, 2),
        _scores(rng, "two rows, all keys seen", 2, 3),
        _scores(rng, "as many keys as columns of V", 3, 3, d=3),
        _scores(rng, "a soft cap of 2", 2, 3, softcap=2.0, size=3),
        _scores(rng, "a soft cap of 5, a sink of 3", 2, 3, softcap=5.0, sink=3.0, size=6),
        _scores(rng, "a sink of -1", 2, 3, sink=-1.0),
        _scores(rng, "a sink of 0", 2, 3, sink=0.0),
        _scores(rng, "a sink of -9", 2, 3, sink=-9.0),
        _scores(rng, "a sink of 4, more than a cap of 2", 2, 3, softcap=2.0, sink=4.0, size=3),
        _scores(rng, "a causal mask", 3, 3, hide=True),
        _scores(rng, "a causal mask and a cap of 2", 4, 4, softcap=2.0, hide=True, size=3),
        _scores(rng, "a causal mask, a cap of 30 and a sink of 2", 4, 4, softcap=30.0, sink=2.0, hide=True),
        _scores(rng, "values that are not near 0", 3, 4, sink=1.0, v=10.0),
        *random_cases.cases(_any_scores),
    ]
    large = [
        _scores(rng, "scores near 1000", 2, 3, at=1000.0, sink=999.0),
        _scores(rng, "scores near -1000", 2, 3, at=-1000.0, sink=-1001.0),
        _scores(rng, "a sink of 800", 2, 3, sink=800.0),
        _scores(rng, "hidden scores near 1000", 3, 3, hide=True, hidden=1000.0),
        _scores(rng, "rows whose scores are 2000 apart", 2, 3, at=np.array([[-1000.0], [1000.0]]), sink=-999.0),
    ]
    nothing = [
        _scores(rng, "a row that sees no key", 3, 2, sink=1.0, hide=True),
        _scores(rng, "rows that see no key, a sink of -2, a cap of 3", 4, 2, softcap=3.0, sink=-2.0, hide=True),
        _scores(rng, "a row that sees no key, a sink of 0", 2, 1, sink=0.0, hide=True),
        _scores(rng, "a row that sees no key, a sink of -20000", 3, 2, sink=-20000.0, hide=True),
        _scores(rng, "a row that sees no key, next to one whose score is near 1000", 2, 1, at=1000.0, hide=True),
    ]
    return examine(answer, [plain, large, nothing], known, outputs=("O", "lse"))


def _scores(
    rng, words, N_q, N_k, *, d=2, softcap=None, sink=0.5, hide=False, at=0.0, size=1.0, hidden=0.0, v=0.0
):  # fmt: skip
    """Return the Case of random scores.

    hide: with a causal mask, bottom-right. at, hidden, v: added to scores, hidden scores and values.
    """
    S, V = (size * rng.normal(size=(N_q, N_k))).round(2) + at, rng.normal(size=(N_k, d)).round(2) + v
    seen = np.tri(N_q, N_k, N_k - N_q, dtype=bool) if hide else np.ones((N_q, N_k), bool)
    S = S + hidden * ~seen
    return Case(words, (S, V, seen, softcap, sink), _row_by_row(S, V, seen, softcap, sink))


def _row_by_row(S, V, seen, softcap, sink):
    """Return O and lse, with the sink as a key whose value is 0."""
    O, lse = np.zeros((len(S), V.shape[1])), np.zeros(len(S))
    for r, row in enumerate(S):
        kept = row[seen[r]] if softcap is None else softcap * np.tanh(row[seen[r]] / softcap)
        all_scores, values = np.append(kept, sink), np.vstack([V[seen[r]], np.zeros(V.shape[1])])
        weights = np.exp(all_scores - all_scores.max())
        O[r], lse[r] = weights @ values / weights.sum(), all_scores.max() + np.log(weights.sum())
    return O, lse


def _any_scores(rng):
    N_q, N_k = sorted(map(int, rng.integers(2, 7, 2)))
    softcap, sink = [None, 1.5, 20.0][rng.integers(3)], round(float(rng.normal()), 1)
    words = f"{N_q} rows, {N_k} keys, softcap = {softcap}, sink = {sink}"
    return _scores(rng, words, N_q, N_k, softcap=softcap, sink=sink, hide=True, size=2)


# ---- a static cache


@exercise(title="A step with a static cache", minutes=20, difficulty="medium")
def cached_step(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    plain = [
        _step(rng, "the first token, a cache of 3", 1, 0, 3),
        _step(rng, "the second token, a cache of 4", 1, 1, 4),
        _step(rng, "a prompt of 3 tokens, a cache of 5", 3, 0, 5),
        _step(rng, "2 more tokens after 3, a cache of 8", 2, 3, 8),
        _step(rng, "a token after 4, a cache of 8", 1, 4, 8, scaling=1.0),
        _step(rng, "the last token of a cache of 4", 1, 3, 4),
        _step(rng, "a prompt that fills a cache of 3", 3, 0, 3),
        _step(rng, "values of a different length", 2, 2, 6, d_v=2),
        _step(rng, "scaling = 0", 2, 1, 4, scaling=0.0),
        *random_cases.cases(_any_step),
    ]
    large = [
        _step(rng, "scores near 1000", 2, 2, 6, at=1000.0, scaling=1.0),
        _step(rng, "scores near -20000", 2, 1, 4, at=-20000.0, scaling=1.0),
        _step(
            rng,
            "a row with scores near 1000 next to one with scores near -1000",
            2,
            1,
            4,
            at=(1000.0, -1000.0),
            scaling=1.0,
        ),
    ]
    stale = [
        _step(rng, "a prompt of 2, a cache whose other rows are inf", 2, 0, 5, rest=np.inf),
        _step(rng, "a token after 2, a cache whose other rows are inf", 1, 2, 5, rest=np.inf),
        _step(rng, "2 tokens after 1, a cache whose other rows are nan", 2, 1, 5, rest=np.nan),
        _step(rng, "a token after 1, a cache whose other rows are -inf", 1, 1, 3, rest=-np.inf),
    ]
    return examine(answer, [plain, large, stale], known, outputs=("O", "K_cache", "V_cache"))


def _step(rng, words, n, position, room, *, d=3, d_v=None, scaling=0.6, rest=7.0, at=0.0):
    """Return the Case of a step.

    rest: the contents of rows that are not written yet. at: the approximate scores, a number or one for each new
    row.
    """
    q, k = rng.normal(size=(2, n, d)).round(2)
    v = rng.normal(size=(n, d_v or d)).round(2)
    K_cache, V_cache = np.full((room, d), rest), np.full((room, d_v or d), rest)
    K_cache[:position], V_cache[:position] = (rng.normal(size=(position, w)).round(2) for w in (d, d_v or d))
    if at:
        q[:, 0], k[:, 0], K_cache[:position, 0] = np.divide(at, 2), 2.0, 2.0
    arguments = q, k, v, K_cache, V_cache, position, scaling
    return Case(words, arguments, _token_by_token(*arguments))


def _token_by_token(q, k, v, K_cache, V_cache, position, scaling):
    """Return the results of a step, computed one token at a time."""
    keys, values, rows = list(K_cache[:position]), list(V_cache[:position]), []
    for q_row, k_row, v_row in zip(q, k, v, strict=True):
        keys.append(k_row)
        values.append(v_row)
        x = np.array(keys) @ q_row * scaling
        weights = np.exp(x - x.max())
        rows.append(weights @ np.array(values) / weights.sum())
    end = len(keys)
    return np.array(rows), np.vstack([keys, K_cache[end:]]), np.vstack([values, V_cache[end:]])


def _any_step(rng):
    n, position, more = map(int, rng.integers((1, 0, 1), (4, 5, 4)))
    return _step(
        rng, f"{n} tokens after {position}, a cache of {n + position + more}", n, position, n + position + more
    )


# ---- as close as eager


@exercise(title="As near as eager", minutes=15, difficulty="medium")
def agrees(answer: Callable, known: Known) -> Verdict:
    a, b = (0, 0, 0), (0, 1, 1)  # two numbers of the first sequence
    padded = (1, 3, 0)
    cases = [
        _compared("given is eager", {a: 0.01}, {a: 0.01}),
        _compared("an error of 1.5 times eager's", {a: 0.015}, {a: 0.01}),
        _compared("an error of 3 times eager's", {a: 0.03}, {a: 0.01}),
        _compared("an error of -3 times eager's", {a: -0.03}, {a: 0.01}),
        _compared("an error of 3 times eager's -0.01", {a: 0.03}, {a: -0.01}),
        _compared("an error of 3 times eager's at two numbers, below 0", {a: -0.03, b: -0.03}, {a: -0.01}),
        _compared("errors at different numbers than eager's", {a: 0.015}, {b: 0.01}),
        _compared("an error of eager's size, with the opposite sign", {a: -0.01}, {a: 0.01}),
        _compared("an error of 1.5 times eager's -0.01", {a: 0.015}, {a: -0.01}),
        _compared("errors of 3 times eager's, with both signs", {a: 0.03, b: -0.03}, {a: 0.01}),
        _compared(
            "an error of 1.5 times eager's, the same everywhere", {a: 0.015}, dict.fromkeys(_present(), 0.01)
        ),
        _compared("many small errors, where eager has one", dict.fromkeys(_present(), 0.015), {a: 0.01}),
        _compared("one large error, where eager has many small ones", {a: 0.05}, dict.fromkeys(_present(), 0.01)),
        _compared("an error in padding alone", {padded: 9.0}, {}),
        _compared("nan in padding", {padded: np.nan}, {a: 0.01}),
        _compared("an error of 3 times eager's, which is larger in padding", {a: 0.03}, {a: 0.01, padded: 1.0}),
        _compared("an error of 3e-6, where numbers in padding are 1000", {a: 3e-6}, {a: 1e-6}, pad=1000.0),
        _compared("an error of 1e-8, where eager has none", {a: 1e-8}, {}),
        _compared("an error of 3e-7, where eager has none", {a: 3e-7}, {}),
        _compared("an error of 3e-6 in numbers near 100, where eager has none", {a: 3e-6}, {}, times=100.0),
        _compared("an error of 3e-9 in numbers near 0.001, where eager has none", {a: 3e-9}, {}, times=0.001),
        _compared("an error of 8.5e-8 in numbers down to -1, where eager has none", {a: 8.5e-8}, {}),
        _compared("an error of 1.5e-7, where eager has none", {a: 1.5e-7}, {}),
        _compared("an error of 1.5e-7, where eager has one of 5e-8", {a: 1.5e-7}, {a: 5e-8}),
        _compared("an error of 2e-8 beyond the bound, where eager's is 10", {a: 20 + 6e-7}, {b: 10.0}),
        _compared("numbers that are all 0", {}, {}, times=0.0),
        _compared("an error of twice eager's, where all should be 0", {a: 0.5}, {b: 0.25}, times=0.0),
        _compared("an inf in padding", {padded: np.inf}, {a: 0.01, padded: np.inf}),
        _compared("a nan", {a: np.nan}, {a: 0.01}),
        _compared("a nan, and eager's too large", {a: np.nan, b: 0.01}, {a: 0.5}),
        _compared("a nan, and a large error", {a: np.nan, b: 5.0}, {a: 0.01}),
        _compared("an inf", {a: np.inf}, {a: 0.01}),
        _compared("all nan", dict.fromkeys(_present(), np.nan), {a: 0.01}),
        *random_cases.cases(_any_comparison, 4),
    ]
    of_both = [
        _compared("an inf, where eager is inf too", {a: np.inf}, {a: np.inf}),
        _compared("an inf, where eager is inf elsewhere", {a: -np.inf}, {b: np.inf}),
        _compared("a nan, where eager is nan too", {a: np.nan}, {a: np.nan}),
    ]
    return examine(inspected(answer, _not_bool), [cases, of_both], known)


def _not_bool(result, *_):
    return Finding("not_bool", given=describe_value(result)) if not isinstance(result, bool | np.bool_) else None


PRESENT = np.array([[True] * 4, [True, True, True, False]])


def _present():
    return [(*at, c) for at in np.argwhere(PRESENT).tolist() for c in range(2)]


def _compared(words, errors, of_eager, *, times=1.0, pad=None):
    """Return the Case of errors, {position: error}. pad: the contents of padding; times: the size of numbers."""
    exact = np.linspace(-1, 1, 16).reshape(2, 4, 2) * times
    if pad is not None:
        exact[~PRESENT] = pad
    given, eager = exact.copy(), exact.copy()
    for place, error in errors.items():
        given[place] += error
    for place, error in of_eager.items():
        eager[place] += error
    return Case(words, (given, eager, exact, PRESENT), _is_near(given, eager, exact))


def _is_near(given, eager, exact):
    bound = 0.0
    for place in _present():
        bound = max(bound, 2 * abs(eager[place] - exact[place]))
    bound += 1e-7 * max(abs(exact[place]) for place in _present())
    errors = [abs(given[place] - exact[place]) for place in _present()]
    return all(bool(np.isfinite(error) and error <= bound) for error in errors)


def _any_comparison(rng):
    places = _present()
    a, b = (places[n] for n in rng.integers(len(places), size=2))
    e = float(rng.choice([0.3, 1.0, 1.7, 2.5, 4.0]) * rng.choice([-1, 1]))
    return _compared(f"an error of {e} times eager's", {a: 0.01 * e}, {b: 0.01})


# ---- attention's share


@exercise(title="Attention's share", minutes=15, difficulty="easy", optional=True)
def attention_share(answer: Callable, known: Known) -> Verdict:
    fixed = """
        1 1 1 1 1 1, 2 1 1 1 1 1, 3 8 16 2 1 4, 3 8 16 2 2 4, 10 8 24 4 2 2, 10 6 24 4 2 5, 19 576 1536 9 3 64,
        8192 576 1536 9 3 64, 4096 4096 14336 32 8 128, 131072 4096 14336 32 8 128, 7 64 96 4 1 32
    """

    def right(N, hidden, intermediate, H_q, H_k, d):
        weights = hidden * d * (H_q + H_k + H_k + H_q) + hidden * intermediate * 3
        scores = sum(r + 1 for r in range(N)) if N < 100 else N * (N + 1) // 2
        attention = H_q * scores * (2 * d + 2 * d)
        return attention / (attention + 2 * weights * N)

    def draw(rng):
        N, hidden, intermediate, H_k, d = map(int, rng.integers((2, 8, 8, 1, 2), (40, 100, 300, 5, 40)))
        return N, hidden, intermediate, H_k * int(rng.integers(2, 5)), H_k, d

    return examine(answer, sizes.cases(right, fixed, draw), known)
