"""Pictures of layouts show the compiler's layouts, and each number of a tile has a holder."""

import pytest

pytest.importorskip("triton")
from triton.experimental.gluon import language as gl  # noqa: E402

import flashlib.kernels  # noqa: E402, F401  before triton
from flashlib.checks.engine.prediction import questions  # noqa: E402
from flashlib.pictures import layouts  # noqa: E402
from tests.pictures.places import Places  # noqa: E402

ACC = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
WIDE = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
OPERAND = gl.DotOperandLayout(operand_index=0, parent=ACC, k_width=2)


def test_an_accumulator_has_the_layout_in_the_ptx_manual():
    """PTX ISA, wgmma.mma_async, "D fragment": row and column of a thread's register."""
    held = layouts.holders(ACC, (64, 64))
    for row in range(64):
        for column in range(64):
            thread = row // 16 * 32 + row % 8 * 4 + column % 8 // 2
            register = column % 2 + row % 16 // 8 * 2 + column // 8 * 4
            assert held[row, column] == [(thread, register)]


def test_a_row_is_held_by_the_four_threads_that_share_it():
    of_row = layouts.holders(gl.SliceLayout(1, ACC), (64,))
    of_tile = layouts.holders(ACC, (64, 64))
    for row in range(64):
        assert {thread for thread, _ in of_row[row]} == {held[0][0] for held in of_tile[row]}


@pytest.mark.parametrize("one, other, shape, stays", [
    (ACC, OPERAND, (64, 64), True),
    (WIDE, ACC, (64, 128), True),
    (gl.SliceLayout(1, WIDE), gl.SliceLayout(1, ACC), (64,), True),
    (gl.SliceLayout(1, ACC), gl.SliceLayout(0, ACC), (64,), False),
    (ACC, gl.DotOperandLayout(operand_index=0, parent=ACC, k_width=4), (64, 64), False),
    (ACC, gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), (64, 64), False),
])  # fmt: skip
def test_which_conversions_move_numbers(one, other, shape, stays):
    assert layouts.same(one, other, shape) is stays


def test_the_card_on_conversions_says_what_the_compiler_says():
    S, O = (gl.NVMMADistributedLayout([3, 0], [4, 1], [16, n, 16]) for n in (128, 64))
    operand = gl.DotOperandLayout(operand_index=0, parent=O, k_width=2)
    blocked = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    assert questions()["hopper_moves"].answer() == {
        "P": layouts.same(S, operand, (64, 128)),
        "alpha_rows": layouts.same(gl.SliceLayout(1, S), gl.SliceLayout(1, O), (64,)),
        "alpha_columns": layouts.same(gl.SliceLayout(1, S), gl.SliceLayout(0, O), (64,)),
        "S": layouts.same(S, blocked, (64, 128)),
    }


@pytest.mark.parametrize("n_bytes", [2, 4])
def test_groups_of_16_bytes_in_a_shared_tile_are_where_the_swizzle_puts_them(n_bytes):
    element, columns, group = (gl.bfloat16, 64, 8) if n_bytes == 2 else (gl.float32, 32, 4)
    layout = gl.NVMMASharedLayout.get_default_for([64, columns], element)
    places = layouts.places(layout, (8, columns))
    for row in range(8):
        for column in range(columns):
            at = (column // group ^ row) * group + column % group
            assert places[row, column] == row * columns + at
    assert sorted(places.flat) == list(range(8 * columns))


def test_the_drawing_shows_the_compilers_layout_and_fits_the_picture(monkeypatch):
    places = Places(monkeypatch)
    low = gl.BlockedLayout([1, 1], [4, 8], [4, 1], [1, 0])
    layouts.draw_holders({"low": (low, (16, 8)), "S": (ACC, (64, 8))})  # 16 and 18 rows
    assert not places.outside()
    drawn = layouts.draw_holders({"S": (ACC, (64, 8)), "m": (gl.SliceLayout(1, ACC), (64,))}, rows=3)
    assert {"S", "m"} <= set(drawn.texts) and drawn.texts.count("11") == 2 and "8 9 10 11" in drawn.texts
    assert drawn.png() == layouts.draw_holders(
        {"S": (ACC, (64, 8)), "m": (gl.SliceLayout(1, ACC), (64,))}, rows=3
    ).png()  # fmt: skip
    shared = layouts.draw_places(gl.NVMMASharedLayout.get_default_for([64, 64], gl.bfloat16), (8, 64), "K")
    assert all(shared.texts.count(str(n)) >= 8 for n in range(8)) and "56-63" in shared.texts
