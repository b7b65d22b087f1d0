"""The exercise under More: FLOPs for each byte."""

from collections.abc import Callable

from flashlib import cost
from flashlib.checks.chapters.counting_bytes.exercises import (
    BYTES,
    FA2,
    ROW_BLOCKS,
    SIZES,
    any_sizes,
    fa2_moved,
    program_of,
)
from flashlib.checks.engine import Known, Verdict, examine, exercise
from flashlib.checks.harness import sizes

PER_BYTE = """
    flops = 4 * N_q * N_k * d
    found = flops / total
    return found
"""


@exercise(
    title="FLOPs per byte",
    minutes=5,
    difficulty="easy",
    optional=True,
    program=program_of(FA2[0].replace("fa2_bytes", "intensity"), ROW_BLOCKS, BYTES, PER_BYTE),
)
def intensity(answer: Callable, known: Known) -> Verdict:
    def right(N_q, N_k, d, B_r, itemsize):
        return cost.flops(N_q, N_k, d) / fa2_moved(N_q, N_k, d, B_r, itemsize)

    return examine(answer, sizes.cases(right, SIZES, any_sizes), known)
