"""Where a loop over tiles first goes wrong: the verdict names the step, the tile and the row of the matrix."""

import pytest

pytest.importorskip("cloudpickle")

from flashlib.checks.engine import solutions  # noqa: E402
from flashlib.checks.engine.exercises import examine_answer  # noqa: E402

WRONG = """yield Step(i, j, m, l, O_acc) -> if (i, j) == (1, 1) and len(Q_i) > 1:
                l[1] *= 3
            yield Step(i, j, m, l, O_acc)"""


def test_the_first_wrong_number_is_named_by_its_step_tile_and_row():
    found = examine_answer("fa2", solutions.program("fa2").edited(WRONG).function, 0)
    setting = found.run.setting
    T_c = -(-len(setting["K"]) // setting["B_c"])
    assert not setting["causal"] and found.run.setting["opens_at"] == T_c + 1
    assert dict(found.details)["first wrong"] == f"step {T_c + 2}, tile (1, 1), row {setting['B_r'] + 1}: l"
