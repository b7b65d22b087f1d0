"""The update of m, l and O_acc by one tile, whose known mistakes are in `shared/update.txt`.

Source: FlashAttention-2, Algorithm 1, lines 8-10.
"""

import textwrap
from functools import wraps
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from flashlib.checks.engine.examine import Finding, Measured, attempt
from flashlib.checks.engine.program import Program, defined
from flashlib.checks.engine.values import same

NAMES = {"np": np}

LINES = """
K_j = K_j
V_j = V_j
raw = Q_i @ K_j.T
S_ij = np.where(seen, raw * scale, -np.inf)
m = np.maximum(m_old, S_ij.max(axis=1))
shift = np.where(m == -np.inf, 0, m)
alpha = np.exp(m_old - shift)
P_ij = np.exp(S_ij - shift[:, None])
l = alpha * l_old + P_ij.sum(axis=1)
O_acc = alpha[:, None] * O_acc_old + P_ij @ V_j
after = m, l, O_acc
"""


STEP = "step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, seen=True)"


class State(NamedTuple):
    """What is known of a block of rows after some keys."""

    m: Any  # (B_r,)
    l: Any  # (B_r,)
    O_acc: Any  # (B_r, d)


def program(signature, *before, **names) -> Program:
    """Return the Program `def signature:` of the lines `before` and the update."""
    return defined(signature, *before, LINES, "return after", **names)


def looped(text, signature=STEP, *before, **names) -> Program:
    """Return the Program of a function that calls `step`, the update with lines before it."""
    step = program(signature, *before)
    return Program(f"{step.source}\n\n\n{textwrap.dedent(text).strip()}", NAMES | names)


def start(n_r, d, dtype=np.float64) -> State:
    """Return the State of n_r rows that have seen no key."""
    return State(np.full(n_r, -np.inf, dtype), np.zeros(n_r, dtype), np.zeros((n_r, d), dtype))


def state(S, V) -> State:
    """Return the State of rows of scores S (n, N) with the values V (N, d), all keys at once: what is true."""
    m = S.max(axis=1, initial=-np.inf)
    P = np.exp(S - np.where(m == -np.inf, 0, m)[:, None])
    return State(m, P.sum(axis=1), P @ V)


def uses_scale(answer, known):
    """Return answer, whose last argument is scale, with it found that scale changes nothing that it returns.

    known: a Known whose program is a right answer.
    """

    def outputs(f, arguments, scale):
        result = attempt(f, *(x.copy() if isinstance(x, np.ndarray) else x for x in arguments), scale)
        result = result.result if isinstance(result, Measured) else result
        return result if isinstance(result, tuple | list) else (result,)

    depends = []  # cases in which it does: elsewhere another mistake may hide it

    @wraps(answer)
    def run(*arguments):
        result, right = answer(*arguments), known.program.function
        others, scales = arguments[:-1], (arguments[-1], 1.5 * arguments[-1])
        given, true = ([outputs(f, others, scale) for scale in scales] for f in (answer, right))
        if not _are_same(*given):
            depends.append(arguments)
        elif not depends and len(given[0]) == len(true[0]) and not _are_same(*true):
            result = result if isinstance(result, Measured) else Measured(result, None)
            return result._replace(found=result.found or Finding("scale_unused"))
        return result

    return run


def _are_same(results, others):
    return all(map(same, results, others, repeat(1e-9)))
