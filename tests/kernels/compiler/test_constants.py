"""An error about a size or layout without annotation is explained; all other errors stay as they are."""

import pytest

pytest.importorskip("triton")
from flashlib.kernels.compiler import constants  # noqa: E402

TENSOR = "<triton.language.core.tensor object at 0x7f00>"
SHAPE = f"all elements of 'shape' must be integers but got [{TENSOR}, 64]"
ELEMENT = "Shape element 1 must have type `constexpr[int]`, got `constexpr[<class 'triton.language.core.tensor'>]`"
LAYOUT = "TypeError(\"cannot convert SliceLayout(dim=1) of type <class 'triton.layouts.SliceLayout'> to tensor\")"
STEP = """@gluon.jit
def step(k, STAGES, m, BLOCK: gl.constexpr):
    B_C = k.type.shape[2]
    D: gl.constexpr = k.type.shape[3]
    K = k.index(0).reshape([B_C, D])
    BY_ROW = gl.SliceLayout(
        1, LAYOUT)
    slots = gl.allocate_shared_memory(k.dtype, [STAGES, 1, B_C, D], LAYOUT)
    slots, full = made(k_desc, STAGES), made(k, 1)
    m = gl.maximum(m, gl.max(K, 1))
    return gl.zeros([BLOCK, D], gl.float32, BY_ROW)
"""


@pytest.mark.parametrize("because, line, said", [
    (SHAPE, 5, "must know B_C, and without an annotation only the GPU does: write B_C: gl.constexpr = ..."),
    (ELEMENT, 5, "write B_C: gl.constexpr = ..."),
    (LAYOUT, 6, "must know BY_ROW, "),
    (LAYOUT, 7, "write BY_ROW: gl.constexpr = ..."),
    (SHAPE, 8, "must know STAGES and B_C, and without an annotation only the GPU does: "
               "write STAGES: gl.constexpr in the list of parameters"),
    (SHAPE, 9, "must know STAGES, "),  # the shape is in another function
])  # fmt: skip
def test_the_names_that_lack_an_annotation_are_named(because, line, said):
    assert said in constants.in_words(because, [(STEP, line)])


def test_the_innermost_line_that_has_such_a_name_counts():
    caller = "def kernel(k):\n    ROWS = 64\n    return step(k, [ROWS, 1])\n"
    found = [constants.in_words(SHAPE, at) for at in ([(caller, 3), (STEP, 10)], [(caller, 3), (STEP, 5)])]
    assert "write ROWS: tl.constexpr" in found[0] and "write B_C: gl.constexpr" in found[1]


@pytest.mark.parametrize("because, at", [
    ("module has no attribute foo", [(STEP, 5)]),  # another refusal
    (SHAPE, []),  # no line is known
    (SHAPE, [(STEP, 10)]),  # its names are tiles
    (SHAPE, [(STEP, 11)]),  # all are annotated
    (SHAPE, [(STEP, 99)]),
])  # fmt: skip
def test_an_error_without_such_a_name_is_unchanged(because, at):
    assert constants.in_words(because, at) == because
