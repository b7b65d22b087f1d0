"""The exercises on a model's arguments of attention, and on what its queries see."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib import naive
from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    Measured,
    Verdict,
    examine,
    exercise,
    inspected,
    random_cases,
)
from flashlib.checks.engine.equality import as_array, same

# ---- the layout, the scale and the heads


@exercise(title="From a model to its attention", minutes=15, difficulty="medium")
def adapter(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _called(rng, "one head, three tokens", 1, 1, 1, 3, 3, 4),
        _called(rng, "two heads, three tokens", 1, 2, 2, 3, 3, 4),
        _called(rng, "as many heads as tokens", 1, 3, 3, 3, 3, 4),
        _called(rng, "four heads that share two", 1, 4, 2, 3, 3, 4),
        _called(rng, "six heads that share two, two sequences", 2, 6, 2, 5, 5, 4),
        _called(rng, "six heads that share three, two sequences", 2, 6, 3, 5, 5, 4),
        _called(rng, "heads that all share one", 2, 4, 1, 3, 3, 2),
        _called(rng, "scaling = 1", 1, 2, 2, 3, 3, 4, scaling=1.0),
        _called(rng, "scaling = 0.1", 1, 2, 2, 3, 3, 4, scaling=0.1),
        _called(rng, "scaling = 0", 1, 2, 2, 2, 3, 4, scaling=0.0),
        _called(rng, "more keys than queries", 1, 4, 2, 2, 7, 4, scaling=0.7),
        _called(rng, "one query", 2, 4, 2, 1, 5, 4),
        _called(rng, "values of a different length", 1, 4, 2, 3, 5, 4, d_v=3),
        *random_cases.cases(_any_call),
    ]
    large = [
        _called(rng, "scores near 1000", 1, 2, 1, 3, 4, 2, at=1000.0),
        _called(rng, "rows whose scores are far apart", 1, 2, 1, 3, 4, 2, apart=(slice(None), slice(None), 0)),
        _called(rng, "heads whose scores are far apart", 1, 2, 1, 2, 3, 2, apart=(slice(None), 0)),
        _called(rng, "sequences whose scores are far apart", 2, 1, 1, 2, 3, 2, apart=(0,)),
        _called(rng, "scores near -1000", 1, 1, 1, 2, 3, 2, at=-1000.0),
    ]
    return examine(answer, [cases, large], known)


def _called(rng, words, B, H_q, H_k, N_q, N_k, d, *, d_v=None, scaling=None, at=0.0, apart=None):
    """Return the Case of a call. at: the approximate scores. apart: the rows of Q whose scores are 2000 lower."""
    query, key, value = (
        rng.normal(size=shape).round(2) for shape in ((B, H_q, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d_v or d))
    )
    if at or apart:
        query[..., 0], key[..., 0], scaling = at / 2, 2.0, 1.0
    if apart:
        query[apart][..., 0] -= 1000.0
    return Case(words, (query, key, value, scaling), _head_by_head(query, key, value, scaling))


def _head_by_head(query, key, value, scaling):
    group = query.shape[1] // key.shape[1]
    found = np.empty((len(query), query.shape[2], query.shape[1], value.shape[3]))
    for b in range(len(query)):
        for h in range(query.shape[1]):
            Q = query[b, h] / np.sqrt(query.shape[3]) if scaling is None else query[b, h] * scaling  # 0 too
            found[b, :, h] = naive.attention(Q, key[b, h // group], value[b, h // group], scale=1.0).O
    return found


def _any_call(rng):
    B, H_k, group, N_q, N_k, d = map(int, rng.integers((1, 1, 1, 1, 2, 2), (3, 4, 4, 6, 9, 40)))
    scaling = [None, 0.25, 0.9][rng.integers(3)]
    words = f"{B} x {H_k * group} heads that share {H_k}, {N_q} queries, {N_k} keys, scaling = {scaling}"
    return _called(rng, words, B, H_k * group, H_k, N_q, N_k, d, scaling=scaling)


# ---- what a query sees


@exercise(title="What a model lets a query see", minutes=20, difficulty="medium", optional=True)
def seen(answer: Callable, known: Known) -> Verdict:
    cases = [
        _table(1, 1, 0, None),
        _table(3, 3, 0, None),
        _table(2, 5, 3, None),
        _table(1, 6, 5, None),
        _table(3, 8, 0, None),
        _table(3, 8, 2, None),
        _table(1, 8, 3, None),
        _table(4, 4, 0, 1),
        _table(5, 5, 0, 2),
        _table(7, 7, 0, 3),
        _table(1, 9, 8, 4),
        _table(3, 12, 6, 4),
        _table(4, 4, 0, 9),
        _table(4, 4, 0, None, "0111"),
        _table(4, 4, 0, None, "0011"),
        _table(4, 4, 0, None, "1100"),
        _table(5, 5, 0, 2, "00111"),
        _table(2, 7, 5, 3, "0111111"),
        _table(2, 9, 4, None, "001111000"),
        _table(3, 3, 0, None, "000"),
        _table(4, 4, 0, None, "1011"),
        _table(2, 300, 297, 3),
        *random_cases.cases(_any_table, 5),
    ]
    return examine(inspected(answer, _not_bools), [cases, [_table(2, 2, 0, 0)]], known)


def _not_bools(result, *_):
    try:
        return None if as_array(result).dtype.kind == "b" else Finding("not_bools")
    except (TypeError, ValueError):
        return None  # a result that is not a table is reported in any case


def _table(q_length, kv_length, q_offset, sliding_window, present=None):
    """Return the Case of a table, computed score by score. present: "1" or "0" for each key."""
    there = [x == "1" for x in present or "1" * kv_length]
    right = np.zeros((q_length, kv_length), bool)
    for r in range(q_length):
        last = q_offset + r
        first = 0 if sliding_window is None else max(0, last - sliding_window + 1)
        for c in range(first, min(last + 1, kv_length)):
            right[r, c] = there[c]
    words = f"{q_length} queries from {q_offset} on, {kv_length} keys, a window of {sliding_window}"
    if present is not None:
        words = f"{words}, present = {present}"
    arguments = q_length, kv_length, q_offset, sliding_window, np.array(there)
    return Case(words, arguments, right, tolerance=0)


def _any_table(rng):
    q_length, offset, more = map(int, rng.integers((1, 0, 0), (6, 6, 4)))
    kv_length = q_length + offset + more
    window = [None, *range(1, 6)][rng.integers(6)]
    padding = int(rng.integers(0, 3))
    return _table(q_length, kv_length, offset, window, ("0" * padding + "1" * kv_length)[:kv_length])


# ---- packed sequences


@exercise(title="Where sequences begin", minutes=15, difficulty="easy", optional=True)
def packs(answer: Callable, known: Known) -> Verdict:
    fixed = (
        [0], [0, 1, 2], [0, 1, 0, 1], [0, 1, 2, 0, 1], [0, 0], [0, 0, 0, 1], [0, 1, 2, 3, 0], [5, 6, 7],
        [0, 1, 5, 6], [3, 4, 0, 1, 2], [7, 8, 2, 3, 4], [0, 1, 2, 3, 3, 4], [4, 4], [0, 1, 2, 0, 3, 4],
    )  # fmt: skip
    cases = [_pack(list(positions)) for positions in (*fixed, [0, 2, 3], [0, 3, 4], [*range(299), 0])]
    return examine(_of_whole_numbers(answer), cases + random_cases.cases(_any_pack, 4), known)


def _pack(positions):
    """Return the Case of position_ids, with the beginnings found token by token."""
    ends, before = [], None
    for n, position in enumerate(positions):
        if n == 0 or position != before + 1:
            ends.append(n)
        before = position
    right = np.array([*ends, len(positions)])
    return Case(f"position_ids = {positions}", (np.array(positions),), right, tolerance=0)


def _any_pack(rng):
    lengths = rng.integers(1, 6, rng.integers(2, 6))
    begins = [int(rng.integers(0, 4)) if rng.random() < 0.3 else 0 for _ in lengths]
    return _pack([begin + k for begin, n in zip(begins, lengths, strict=True) for k in range(n)])


def _of_whole_numbers(answer):
    """Return answer; it reports numbers that are right but floats."""

    @wraps(answer)
    def run(position_ids):
        given = answer(position_ids)
        try:
            is_float = as_array(given).dtype.kind == "f" and same(given, _pack(position_ids.tolist()).expected, 0)
        except (TypeError, ValueError):
            return given
        return Measured(given, Finding("float")) if is_float else given

    return run
