"""Formulas on pages: where a line may break, and LaTeX's spaces."""

import html
import re

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from latex2mathml import converter

from web import formulas, prose

TAG = re.compile(r"<[^>]+>")


def text(maths):
    return html.unescape(TAG.sub("", maths))


def spaced(tex, display="inline"):
    """Return the letters of a formula, with ~ for a thin space and quad for a wide one."""
    maths = formulas.formula(tex, display).replace('<mspace width="0.167em" />', "~")
    return text(re.sub(r'<mspace width="\dem" />', " quad ", maths))


@pytest.mark.parametrize(
    "tex, parts",
    [
        ("x", 1),
        ("x_j = q_i", 1),
        (r"l = 0.1353 \cdot 1.3679 + 1.3679 = 0.1851 + 1.3679 = 1.5530", 3),
        (r"\frac{aaaaaaaaaa = bbbbbbbbb}{cccccccccc}", 1),
        (r"(1.3679 - 0.1353)(-1.3679 + 0.1353)", 2),
    ],
)
def test_a_long_formula_may_break_after_a_sign_and_loses_nothing(tex, parts):
    cut = formulas.formula(tex)
    assert cut.count("<wbr>") == parts - 1 and cut.count("<math") == parts
    whole = converter.convert(tex)
    assert text(cut) == text(whole)
    for part in cut.split("<wbr>")[:-1]:
        assert text(part)[-1] in formulas.BREAKS and len(text(part)) >= formulas.SHORTEST


def test_a_formula_on_separate_lines_is_not_split():
    markup, _ = prose.to_html("$$\nl = 0.1353 \\cdot 1.3679 + 1.3679 = 0.1851 + 1.3679\n$$")
    assert markup.count("<math") == 1 and 'display="block"' in markup


def test_infinity_has_no_space_around_it():
    assert "<mi>∞</mi>" in formulas.formula(r"-\infty")


@pytest.mark.parametrize(
    "tex, expected",
    [
        (r"\log 2", "log~2"),
        (r"\log x", "log~x"),
        (r"\log l_i", "log~li"),
        (r"\log{2}", "log~2"),
        (r"{\log} 2", "log~2"),
        (r"\log \alpha", "log~α"),
        (r"\log\text{scale}", "log~scale"),
        (r"\log\frac{(a)}{b}", "log~(a)b"),
        (r"\log\sqrt 2", "log~2"),
        (r"\log\bar x", "log~x¯"),
        (r"\log|x|", "log~|x|"),
        (r"\log -x", "log~−x"),
        (r"\max + 1", "max~+1"),
        (r"\log_2 x", "log2~x"),
        (r"\log^2 x", "log2~x"),
        (r"\max_i x_i", "maxi~xi"),
        (r"\operatorname{lse} x", "lse~x"),
        (r"\log\log n", "log~log~n"),
        (r"2 \log 3", "2~log~3"),
        (r"(a + b) \log 3", "(a+b)~log~3"),
        (r"|x| \log y", "|x|~log~y"),
        (r"x^{\log 2}", "xlog~2"),
        (r"\frac{\log 2}{3}", "log~23"),
        (r"\sqrt{\log 2}", "log~2"),
    ],
)
@pytest.mark.parametrize("display", ["inline", "block"])
def test_a_function_has_space_to_its_neighbours(tex, expected, display):
    assert spaced(tex, display) == expected


@pytest.mark.parametrize(
    "tex",
    [
        *(r"\log(x)", r"\log\left(x\right)", r"\log{(x)}", r"\log\bigl(x\bigr)", r"\log_2(x)", r"\log^{-1}(x)"),
        *(r"\max(x)", r"\max\{a\}", r"\tanh\lfloor x", r"\operatorname{lse}(x)", r"\log[x]"),
        *(r"\log\left|x\right|", r"\log", r"x = \log", r"\log_2", r"\log = x", r"\log, x", r"m + \log"),
        *(r"(\log)", r"\operatorname{lse} - m", r"\operatorname{lse}_a"),
        *("a b", "a(b)", r"\mathrm{scale}", r"a \bmod b", r"\sum_j x", "x'"),
    ],
)
def test_there_is_no_space_before_a_parenthesis_at_an_end_or_next_to_a_sign(tex):
    assert "mspace" not in formulas.formula(tex)


@pytest.mark.parametrize(
    "tex, expected", [(r"\log\, x", "log~x"), (r"\log\quad x", "log quad x"), (r"2\,\log x", "2~log~x")]
)
def test_a_space_that_is_written_is_not_doubled(tex, expected):
    assert spaced(tex) == expected


@pytest.mark.parametrize("tex", [r"\max(x)", r"\min_i x", r"\operatorname{lse} = m", r"\lim x", r"\det A"])
def test_a_function_does_not_have_the_space_of_an_operator(tex):
    assert not re.search(r"<mo[^>]*>[a-z]", formulas.formula(tex))


@pytest.mark.parametrize(
    "tex, prefixes",
    [
        *(("-x", 1), ("= -x", 1), ("(-x)", 1), (r"\max(-\infty, -1)", 2), (r"a, \quad -c", 1), (r"\log -x", 1)),
        *(("|-x|", 1), ("a - b", 0), ("(a) - b", 0), ("|x| - 1", 0), (r"\left|x\right| - 1", 0), ("x' - 1", 0)),
        *((r"1 + \cdots + n", 0), ("x^2 - 1", 0), ("(x)^2 - 1", 0), (r"\frac 1 2 - 1", 0), ("n! - 1", 0)),
        *((r"\infty - 1", 0), (r"\operatorname{lse} - m", 0), (r"\operatorname{lse}_a - m", 0)),
    ],
)
def test_a_sign_is_close_to_its_only_term(tex, prefixes):
    signs = re.findall(r'<mo form="prefix">[+−±]', formulas.formula(tex, "block"))
    assert len(signs) == prefixes


def test_words_in_a_formula_may_contain_html_characters():
    assert "a\xa0&lt;\xa0b\xa0&amp;\xa0c" in formulas.formula(r"\text{a < b & c} = d", "block")
