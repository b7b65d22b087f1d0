"""Where memory for 2^31 numbers is refused, as in a page, a right answer's verdict says what was not checked."""

import numpy as np
import pytest

pytest.importorskip("triton")

from flashlib.checks.engine.verdict import Outcome, Verdict  # noqa: E402
from flashlib.checks.harness import far_cache, far_heads, far_memory, far_parts, far_pool  # noqa: E402


def never_called(*arguments):
    raise AssertionError


def test_without_the_memory_nothing_is_checked(monkeypatch):
    def refused(*size, **options):
        raise RuntimeError("can't allocate memory")

    monkeypatch.setattr(far_memory.torch, "empty", refused)
    K, table = np.zeros((2, 1, 16, 16), np.float16), np.zeros((1, 1), np.int32)
    assert far_heads.reached(never_called) is None
    assert far_parts.part_reached(never_called) is None
    assert far_parts.row_reached(never_called) is None
    assert far_cache.reached(never_called, K, K, K, np.ones(2, np.int32), 1, ()) is None
    assert far_pool.reached(never_called, K, K, K, np.ones(1, np.int32), table, 1, ()) is None


@pytest.mark.parametrize(
    "outcome, reached, is_noted",
    [(Outcome.RIGHT, None, True), (Outcome.RIGHT, True, False), (Outcome.WRONG, None, False)],
)
def test_a_right_verdict_says_what_was_not_checked(outcome, reached, is_noted):
    verdict = far_memory.noted(Verdict("decode", outcome, "it decodes"), reached)
    said = "not checked: tensors with more than 2^31 numbers, which need GiB of memory"
    assert (said in repr(verdict)) == is_noted
