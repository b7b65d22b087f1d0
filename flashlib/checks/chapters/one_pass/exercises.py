"""The exercises of chapter 05."""

from functools import wraps
from types import SimpleNamespace

import numpy as np

from flashlib.checks import updates
from flashlib.checks.examine import Case, Finding, Mistake, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.recorded import Watched
from flashlib.tiled import blocks

INF = np.inf


@exercise(title="The output so far", minutes=15, difficulty="medium")
def normalised(answer):
    rng = np.random.default_rng(0)
    rows = (
        ("one key", [0.5]),
        ("two keys, the second score larger", [1.0, 2.0]),
        ("two keys, the second score smaller", [2.0, 1.0]),
        ("four keys", [1.0, 2.0, 4.0, 3.0]),
        ("a masked key after others", [1.0, -INF, 2.0]),
        ("a masked key before others", [-INF, 1.0, 3.0]),
        ("no key that is seen", [-INF, -INF]),
        ("scores that rise by 1000", [-1000.0, 0.0, 1000.0, 1000.5]),
        ("scores that fall by 1000", [1000.5, 1000.0, 0.0, -1000.0]),
        ("no keys", []),
    )
    cases = []
    for words, x in rows:
        V = rng.normal(size=(len(x), 2)).round(1)
        outputs = [_attention(np.array(x[: j + 1]), V[: j + 1]) for j in range(len(x))]
        cases.append(Case(words, (np.array(x), V), np.array(outputs).reshape(len(x), 2)))
    return examine(_read_once(answer, {0: "x", 1: "V"}), cases, NORMALISED)


def _attention(x, V):
    """Return softmax(x) V, 0 if all scores are -inf."""
    m, l, O_acc = updates.state(x[None], V)
    return O_acc[0] / (l[0] or 1)


def _read_once(answer, names, at_most=lambda *arguments: None):
    """Return answer with some arguments, {position: name}, in slow memory; too many loads raise Finding.

    at_most: takes the arguments, returns how many rows may be loaded at once.
    """

    @wraps(answer)
    def run(*arguments):
        placed = [Watched.put(x)[0] if n in names else x for n, x in enumerate(arguments)]
        result = answer(*placed)
        limit = at_most(*arguments)
        for n, name in names.items():
            width = arguments[n][:1].size
            if limit and placed[n].loads.most > limit * width:
                raise Finding(
                    f"more than B_c rows of {name} are loaded at once: take {name}[cols], a block at a time"
                )
        for n, name in names.items():
            if placed[n].loads.read > placed[n].size:
                often = f"{placed[n].loads.read / placed[n].size:.3g} times"
                raise Finding(f"{name} is read {often}: read it once, and keep only what the next key needs")
        return result

    return run


def _outputs(x, V, masked="kept", **lines):
    """Return the outputs over the first keys of the normalised recurrence, with `lines` exchanged.

    masked: what a key of score -inf does: "kept" is right, "zeros" gives 0, "counted" puts it through the lines.
    """
    s = SimpleNamespace(m=-INF, l=0.0, O=np.zeros(V.shape[1]))
    outputs = np.zeros(V.shape)
    right = {
        "m": lambda s: max(s.m_old, s.x_j),
        "alpha": lambda s: np.exp(s.m_old - s.m),
        "p": lambda s: np.exp(s.x_j - s.m),
        "l": lambda s: s.alpha * s.l_old + s.p,
        "O": lambda s: (s.alpha * s.l_old / s.l) * s.O_old + (s.p / s.l) * s.v_j,
    }
    for j, (s.x_j, s.v_j) in enumerate(zip(x, V, strict=True)):
        if s.x_j > -INF or masked == "counted":
            s.m_old, s.l_old, s.O_old = s.m, s.l, s.O
            for name, line in (right | lines).items():
                setattr(s, name, line(s))
        outputs[j] = 0 if s.x_j == -INF and masked == "zeros" else s.O
    return outputs


def _slip(sentence, **lines):
    return Mistake(sentence, lambda x, V: _outputs(x, V, **lines))


def _divided_by_the_last(x, V):
    O_acc = _outputs(x, V, O=lambda s: s.alpha * s.O_old + s.p * s.v_j)
    P = np.exp(x - x.max(initial=-1e300))
    m = np.maximum.accumulate(x)
    return O_acc * np.exp(m - x.max(initial=-1e300))[:, None] / (P.sum() or 1)


def _without_the_last(x, V):
    return np.vstack([np.zeros((1, V.shape[1])), _outputs(x, V)])[: len(x)]


NORMALISED = (
    _slip(
        "the output before is not rescaled when m grows: multiply it by alpha * l_old / l",
        O=lambda s: (s.l_old / s.l) * s.O_old + (s.p / s.l) * s.v_j,
    ),
    _slip(
        "the output before is multiplied by alpha alone: it is normalised, so multiply it by alpha * l_old / l",
        O=lambda s: s.alpha * s.O_old + (s.p / s.l) * s.v_j,
    ),
    _slip("l is not rescaled when m grows: l = alpha * l_old + p", l=lambda s: s.l_old + s.p),
    _slip(
        "p is not divided by l: the new key comes in with the weight p / l",
        O=lambda s: (s.alpha * s.l_old / s.l) * s.O_old + s.p * s.v_j,
    ),
    _slip(
        "the rows are O_acc, not divided by l: row j is an output, so its weights sum to 1",
        O=lambda s: s.alpha * s.O_old + s.p * s.v_j,
    ),
    _slip(
        "alpha is upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)",
        alpha=lambda s: np.exp(s.m - s.m_old) if s.m_old > -INF else 0.0,
    ),
    _slip(
        "alpha is upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)",
        alpha=lambda s: np.exp(s.m - s.m_old),
    ),
    _slip("the maximum is not subtracted: large scores overflow, p = exp(x_j - m)", m=lambda s: 0.0),
    _slip(
        "m starts at 0: it starts at -inf, or scores far below 0 have no weight", m=lambda s: max(s.m, s.x_j, 0)
    ),
    _slip(
        "m is the score of this key alone: take the larger of it and the m before",
        m=lambda s: s.x_j,
    ),
    Mistake(
        "all rows are the plain mean of the values so far: key j weighs exp(x_j - m) / l",
        lambda x, V: np.cumsum(V, axis=0) / np.arange(1, len(V) + 1)[:, None],
    ),
    Mistake(
        "a key of score -inf gives nan, since -inf - (-inf) is nan: leave the output so far as it is",
        lambda x, V: _outputs(x, V, masked="counted"),
    ),
    Mistake(
        "a key of score -inf gives a row of 0: it must be the output so far, that of the row before",
        lambda x, V: _outputs(x, V, masked="zeros"),
    ),
    Mistake("all rows are divided by the last l: row j is divided by the l of its own keys", _divided_by_the_last),
    Mistake("row j is the output before key j: key j belongs to it", _without_the_last),
    Mistake(
        "all rows are the last output: row j is the output over the first j + 1 keys",
        lambda x, V: _outputs(x, V)[[-1] * len(x)],
    ),
)


@exercise(title="One step for a block of rows", minutes=15, difficulty="medium")
def block_step(answer):
    rng = np.random.default_rng(35)
    cases = []
    for words, B_r, B_c, d, n_before, sizes in (
        ("a first block of 2 keys", 2, 2, 2, 0, 1),
        ("a second block of 2 keys", 2, 2, 2, 2, 1),
        ("3 rows and a third block of 5 keys", 3, 5, 4, 10, 1),
        ("a block of 1 key", 3, 1, 2, 4, 1),
        ("scores that rise by 1000", 2, 3, 2, 3, (-1000, 1000)),
        ("scores that fall by 1000", 2, 3, 2, 3, (1000, -1000)),
    ):
        Q_i, K, V = (rng.normal(size=(n, d)).round(1) for n in (B_r, n_before + B_c, n_before + B_c))
        if sizes != 1:
            Q_i[:, 0], K[:n_before, 0], K[n_before:, 0] = 1, *sizes
        S, scale = Q_i @ K.T * 0.3, 0.3
        before = updates.state(S[:, :n_before], V[:n_before]) if n_before else updates.start(B_r, d)
        arguments = Q_i, K[n_before:], V[n_before:], *before, scale
        cases.append(Case(words, arguments, tuple(updates.state(S, V))))
    mistakes = [
        Mistake(slip.sentence, lambda *arguments, lines=slip.lines: _step(lines, *arguments))
        for slip in (*updates.SCORES, *updates.UPDATES)
    ]
    return examine(answer, cases, mistakes, outputs=("m", "l", "O_acc"))


def _step(lines, Q_i, K_j, V_j, m, l, O_acc, scale):
    return updates.update(lines, Q_i=Q_i, K_j=K_j, V_j=V_j, scale=scale, before=updates.State(m, l, O_acc))


@exercise(title="One row in blocks", minutes=15, difficulty="medium")
def one_row(answer):
    rng = np.random.default_rng(1)
    cases = []
    for words, N_k, B_c, offsets in (
        ("2 keys in one block", 2, 2, 0),
        ("4 keys in blocks of 2", 4, 2, 0),
        ("5 keys in blocks of 2", 5, 2, 0),
        ("3 keys in blocks of 8", 3, 8, 0),
        ("3 keys in blocks of 1", 3, 1, 0),
        ("scores near 900", 7, 3, 900),
        ("scores near -900", 7, 3, -900),
        ("scores that rise by 1800", 7, 3, np.linspace(-900, 900, 7)),
        ("scores that fall by 1800", 7, 3, np.linspace(900, -900, 7)),
    ):
        q, K, V = (rng.normal(size=size).round(1) for size in (3, (N_k, 3), (N_k, 3)))
        q[2], K[:, 2] = 1, np.divide(offsets, 0.3)  # with scale 0.3 this adds the offsets to the scores
        cases.append(Case(words, (q, K, V, B_c, 0.3), _attention(K @ q * 0.3, V)))
    two = {1: "K", 2: "V"}
    return examine(_read_once(answer, two, at_most=lambda q, K, V, B_c, scale: B_c), cases, ONE_ROW)


def _row(q, K, V, B_c, scale, lines=None, divide=True, by="block"):
    """Return the output of a loop, by block or by key, whose update has `lines` exchanged; None if it raises."""
    state = updates.start(1, len(q))
    for cols in blocks(len(K), B_c if by == "block" else 1):
        try:
            state = updates.update(lines or {}, Q_i=q[None], K_j=K[cols], V_j=V[cols], scale=scale, before=state)
        except ValueError:
            return None
    return (state.O_acc / state.l[:, None] if divide else state.O_acc)[0]


def _for_a_row(sentence):
    """Return a sentence on tiles in the words for one row."""
    words = {
        "P_ij": "p",
        "S_ij": "x",
        "Q_i @ K_j.T": "K[cols] @ q",
        "V_j": "V[cols]",
        "tile": "block",
        "(axis=1)": "()",
    }
    for name, word in words.items():
        sentence = sentence.replace(name, word)
    return sentence


def _one_block(n):
    def output(q, K, V, B_c, scale):
        cols = list(blocks(len(K), B_c))[n]
        return _attention(K[cols] @ q * scale, V[cols])

    return output


def _mean_of_blocks(q, K, V, B_c, scale):
    return np.mean([_attention(K[cols] @ q * scale, V[cols]) for cols in blocks(len(K), B_c)], axis=0)


def _weighed_by_l(q, K, V, B_c, scale):
    scores = [K[cols] @ q * scale for cols in blocks(len(K), B_c)]
    outputs = [_attention(x, V[cols]) for x, cols in zip(scores, blocks(len(K), B_c), strict=True)]
    l = np.array([np.exp(x - x.max()).sum() for x in scores])
    return l / l.sum() @ np.array(outputs)


def _whole_blocks(q, K, V, B_c, scale):
    N = len(K) // B_c * B_c
    return _row(q, K[:N], V[:N], B_c, scale)


ONE_ROW = (
    Mistake(
        "the final division by l is missing: the output is O_acc / l",
        lambda *arguments: _row(*arguments, divide=False),
    ),
    Mistake("the last, shorter block is dropped: N_k need not be a multiple of B_c", _whole_blocks),
    Mistake("the outputs of the blocks are averaged: a block with larger scores weighs more", _mean_of_blocks),
    Mistake("the outputs of the blocks are weighed by l: their m differ, so weigh by exp(m) * l", _weighed_by_l),
    Mistake("only the last block counts: m, l and O_acc are kept from one block to the next", _one_block(-1)),
    Mistake("only the first block counts: does the return stand inside the loop?", _one_block(0)),
    Mistake("all keys weigh the same: key j weighs exp(x_j - m)", lambda q, K, V, B_c, scale: V.mean(axis=0)),
    Mistake(
        "m starts at 0: it starts at -inf, or scores far below 0 have no weight",
        lambda *arguments: _row(*arguments, lines={"m_old": lambda s: np.maximum(s.before.m, 0)}),
    ),
    *(
        Mistake(
            _for_a_row(slip.sentence), lambda *arguments, lines=slip.lines, by=by: _row(*arguments, lines, by=by)
        )
        for slip in (*updates.SCORES, *updates.UPDATES)
        for by in ("block", "key")
    ),
)


@exercise(title="A factor that is never nan", minutes=5, difficulty="easy")
def alpha(answer):
    pairs = (
        ("rows whose maximum grows and stays", [1.0, 2.0], [3.0, 2.0]),
        ("a row that has seen nothing before", [-INF, 1.0], [3.0, 1.5]),
        ("a row that still has seen nothing", [-INF, 1.0], [-INF, 1.5]),
        ("four rows", [-INF, 1.0, -INF, -5.0], [-INF, 3.0, 3.0, -5.0]),
        ("large numbers", [-2000.0, 1000.0, -INF], [2000.0, 1000.0, -INF]),
        ("no rows", [], []),
    )
    cases = []
    for words, m_old, m in pairs:
        factors = [np.exp(a - b) if a > -INF else 0.0 for a, b in zip(m_old, m, strict=True)]
        cases.append(Case(words, (np.array(m_old), np.array(m)), np.array(factors)))
    return examine(answer, cases, ALPHA)


def _with(value, where=lambda m_old, m: m == -INF):
    """Return exp(m_old - m) with a value of its own somewhere."""
    return lambda m_old, m: np.where(where(m_old, m), value, np.exp(m_old - m))


ALPHA = (
    Mistake(
        "nan where m is -inf, since -inf - (-inf) is nan: shift by 0 there",
        lambda m_old, m: np.exp(m_old - m),
    ),
    Mistake("1 for a row that still has seen nothing: there is nothing to keep, so it is 0", _with(1.0)),
    Mistake(
        "1 for a row that had seen nothing before: there is nothing to keep, so it is 0",
        _with(1.0, lambda m_old, m: m_old == -INF),
    ),
    Mistake(
        "upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)",
        lambda m_old, m: np.exp(np.where(m == -INF, -INF, m - m_old)),
    ),
    Mistake(
        "upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)", lambda m_old, m: np.exp(m - m_old)
    ),
    Mistake(
        "upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)",
        lambda m_old, m: np.exp(np.where(m == -INF, 0, m) - m_old),
    ),
    *(
        Mistake("exp is missing: it is exp(m_old - m), not the difference", difference)
        for difference in (
            lambda m_old, m: m_old - m,
            lambda m_old, m: m_old - np.where(m == -INF, 0, m),
            lambda m_old, m: np.where(m == -INF, 0, m_old - m),
            lambda m_old, m: np.where(m_old == -INF, 0, m_old - m),
        )
    ),
    Mistake(
        "exp is taken of m_old and of m, and large ones overflow: take exp of the difference",
        lambda m_old, m: np.exp(m_old) / np.exp(m),
    ),
    Mistake(
        "m_old is not used: it is exp(m_old - m), not exp(-m)",
        lambda m_old, m: np.exp(-np.where(m == -INF, 0, m)),
    ),
    Mistake(
        "one number for all rows: each row has a factor of its own",
        lambda m_old, m: np.full(m.shape, np.exp(m_old.max() - m.max()) if m_old.max() > -INF else 0.0),
    ),
    Mistake(
        "the shift is 0 in every row once one row has seen nothing: take np.where(m == -np.inf, 0, m)",
        lambda m_old, m: np.exp(m_old - (0 if (m == -INF).any() else m)),
    ),
)
