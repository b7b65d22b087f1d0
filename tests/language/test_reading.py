"""Which strings are texts, and how values stand in them."""

import pytest

from flashlib.language import reading

TEXTS = """
the tile, recomputed
Row {0}
{0} of {1} tiles were
Waiting for Python{0}.
tile ({0}, {1}) of
Request{0} {1}
K_j, V_j come; Q_i stays
not written yet
one query of d = 4, in fp64
m is wrong for {0}
B_r is {0}; pass a whole number from 4 to 1024
shared memory
O_acc = {0}, likewise
""".strip().splitlines()
OTHERS = [
    *"play row FlashPlayer {0} m_old exp({0}) masks.window({0},{1}) bfloat16".split(),
    "flash-panel flash-words",
    "M{0} 0V{1} L{2} {3}h{4}z",
    "; first = length * part // parts; last = 4",
    "grid-template-columns: repeat({0}, auto)",
    "input[type=range], button",
    "S_ij = Q_i K_j^T",
    "def my_merge(a, b):",
    "    seen = x\n    return seen + one",
    "import numpy as np",
    "Lt LtE Gt GtE",
    r"^(export )?(?:async )?\bfunction",
    "for k in range(n):",
]


@pytest.mark.parametrize("text", TEXTS)
def test_strings_that_read_as_words_are_texts(text):
    assert reading.is_text(text) and not reading.is_word(text)


@pytest.mark.parametrize("text", OTHERS)
def test_names_code_and_styles_are_not_texts(text):
    assert not reading.is_text(text)


def test_values_without_words_between_them_are_a_frame():
    assert all(map(reading.is_frame, ["{0} {1}", "{0} {1}{2}/s", "{0}, {1}: {2}"]))
    assert not any(map(reading.is_frame, ["{0}{1}", "{0} rows", "a b", "flash-{0} flash-{1}"]))


def test_a_template_is_written_and_read():
    assert reading.template(["one text {"]) == "one text {"
    assert reading.template(["row ", " of {", "}"]) == "row {0} of {{{1}}}"
    assert reading.pieces("of {{{1}}}, {0}", 2) == ["of {", 1, "}", ", ", 0]
    assert reading.pieces("{ as it is", 0) == ["{ as it is"]


@pytest.mark.parametrize("text", ["{2}", "{name}", "{}", "{0"])
def test_a_missing_value_is_refused(text):
    with pytest.raises(ValueError):
        reading.pieces(text, 2)
