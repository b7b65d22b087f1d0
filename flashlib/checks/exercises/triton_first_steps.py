"""The exercises of chapter 09. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

import numpy as np

from flashlib.checks.examine import Case, Mistake, examine
from flashlib.checks.exercise import exercise

CHAPTER = "09_triton_first_steps"
NOT_WRITTEN = "nan, or not written"


@exercise(chapter=CHAPTER, title="Scale and exponentiate", minutes=10, difficulty="easy", triton=True)
def scale_exp(answer):
    from flashlib.checks.launches import Out, launched

    cases = []
    for N in (1, 3, 32, 33, 100):
        x = np.linspace(-3, 3, N).round(2)
        cases.append(Case(f"{N} elements", (x, Out((N,)), 0.5), np.exp(0.5 * x), 1e-5))
    mistakes = [
        Mistake("the scale is missing: y = exp(x * scale)", lambda x, y, scale: np.exp(x)),
        Mistake("the exponential is missing: y = exp(x * scale)", lambda x, y, scale: x * scale),
        Mistake(
            "the scale is applied after the exponential: y = exp(x * scale)",
            lambda x, y, scale: np.exp(x) * scale,
        ),
        Mistake(
            "the last elements are not written: the grid must round up, triton.cdiv(N, BLOCK)",
            lambda x, y, scale: _first(np.exp(x * scale), len(x) // 32 * 32),
        ),
        Mistake(
            "only the first block is written: each program has its own block, from program_id * BLOCK on",
            lambda x, y, scale: _first(np.exp(x * scale), 32),
        ),
        Mistake("nothing is written", lambda x, y, scale: _first(x, 0)),
    ]
    return examine(launched(answer), cases, mistakes, nan=NOT_WRITTEN)


def _first(y, n):
    """Return y with nan from the n-th element on, as if it had not been written."""
    return np.where(np.arange(len(y)) < n, y, np.nan)
