"""A formula as a line of text."""

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from web import prose, readable
from web.formulas import formula

LINES = {
    "m_{old}": "m_old",
    r"\alpha": "α",
    "e^{m_{old} - m}": "e^(m_old − m)",
    "e^{m_j}": "e^(m_j)",
    r"1 / \sqrt d": "1/√d",
    r"\sqrt{d + 1}": "√(d + 1)",
    r"\sqrt[3]{x}": "x^(1/3)",
    r"\frac{N_q}{B_r}": "N_q/B_r",
    r"\frac{a + b}{2 c}": "(a + b)/2c",
    r"\frac{1}{1 + e^{-x}}": "1/(1 + e^(−x))",
    r"\tilde P_{ij}": "P̃_ij",
    r"O_{acc} = \sum_j e^{x_j - m} v_j": "O_acc = ∑_j e^(x_j − m) v_j",
    "l_j v": "l_j v",
    "4 N^2 d": "4N^2 d",
    "S_c^K": "S_c^K",
    r"\log 2": "log 2",
    r"\max(-\infty, 1)": "max(−∞, 1)",
    "(N,)": "(N,)",
    r"B_r \times B_c": "B_r × B_c",
    r"\underbrace{a + b}_{c}": "a + b_c",
    "x'": "x′",
    r"\begin{matrix} a & b \\ c & d \end{matrix}": "a b; c d",
}


@pytest.mark.parametrize("tex", LINES)
@pytest.mark.parametrize("display", ["inline", "block"])
def test_a_formula_reads_as_a_line(tex, display):
    assert readable.line(formula(tex, display)) == LINES[tex]


def test_the_words_of_a_text_include_its_formulas_unbroken():
    markup, _ = prose.to_html("Divide by $l$: $0.1353 + 1.3679 + 0.1851 = 1.6883 < 2$, `a < b` & *so* on.")
    assert prose.words(markup) == "Divide by l: 0.1353 + 1.3679 + 0.1851 = 1.6883 < 2, a < b & so on."


def test_the_heading_of_a_column_is_not_repeated():
    markup, _ = prose.to_html("| $x_j$ | b |\n|---|---|\n| $y$ | 2 |")
    assert prose.words(markup) == "x_j b y 2"
