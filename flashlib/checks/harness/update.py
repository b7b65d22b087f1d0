"""The update of m, l and O_acc by one tile, whose known mistakes are in `shared/update.txt`.

Source: FlashAttention-2, Algorithm 1, lines 8-10.
"""

import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import repeat

import numpy as np

from flashlib.checks.engine import Finding, Known, Measured, ProgramText, attempt, defined, written
from flashlib.checks.engine.equality import same
from flashlib.softmax import State, summarise_rows
from flashlib.tiled import blocks

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


IN_FP32 = "Q_i, K_j, V_j = (X.astype(np.float32) for X in (Q_i, K_j, V_j))"  # before the update, as in kernels
STEP = "step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, seen=True)"


def program(signature: str, *before: str) -> ProgramText:
    """Return the ProgramText `def signature:` with the lines `before` and the update."""
    return defined(signature, *before, LINES, "return after")


def looped(text: str, *, signature: str = STEP, before: Sequence[str] = (), **names: object) -> ProgramText:
    """Return the ProgramText of a function that calls `step`, the update with lines before it.

    names: its globals besides np, `blocks` and `start`.
    """
    step = program(signature, *before)
    names = {"blocks": blocks, "start": start} | names
    return written(f"{step.source}\n\n\n{textwrap.dedent(text).strip()}", **names)


def start(n_r: int, d: int, dtype: type = np.float32) -> State:
    """Return the State of n_r rows that have seen no key, in fp32 as in a kernel."""
    return summarise_rows(np.empty((n_r, 0), dtype), np.empty((0, d), dtype))


def finished(state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return O and lse of rows; 0 and -inf for rows that have seen no key."""
    divisor = np.where(state.l == 0, 1, state.l)
    return state.O_acc / divisor[:, None], state.m + np.log(divisor)


def uses_scale(answer: Callable, known: Known) -> Callable:
    """Return answer, whose last argument is scale; it reports if scale does not change any of the results.

    known: a Known whose program is a right answer.
    """

    def outputs(f, arguments, scale):
        result = attempt(f, *(x.copy() if isinstance(x, np.ndarray) else x for x in arguments), scale)
        result = result.result if isinstance(result, Measured) else result
        return result if isinstance(result, tuple | list) else (result,)

    depends = []  # cases in which scale changes them: elsewhere another mistake may hide its effect

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
