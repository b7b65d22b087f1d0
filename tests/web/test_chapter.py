"""How the cells of a notebook become a page."""

import base64
import io
import re

import nbformat
import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from PIL import Image

from web import chapter, pictures


def markdown(text, *tags):
    return nbformat.v4.new_markdown_cell(text, metadata={"tags": [*tags]} if tags else {})


def code(text, *tags, said="", **data):
    outputs = [nbformat.v4.new_output("stream", text=said)] if said else []
    outputs += [nbformat.v4.new_output("display_data", data["data"])] if data else []
    return nbformat.v4.new_code_cell(text, outputs=outputs, metadata={"tags": [*tags]} if tags else {})


@pytest.fixture
def write(tmp_path):
    def page(*cells, shown=None, told=None):
        return chapter.Writer(shown or {}, pictures.Pictures(tmp_path), "", told).write(cells)

    return page


def covered(body):
    """Return (names of the cards, words) for each cover."""
    return [
        (names, re.sub(r"<[^>]+>", "", rest))
        for names, rest in re.findall(
            r'class="cover" data-cards="([^"]*)".*?</summary>(.*?)</details>', body, re.DOTALL
        )
    ]


def test_outputs_below_a_question_are_covered_by_its_card(write):
    page = write(
        markdown("# 99 · Title\n\nText"),
        code("1 + 1", said="2\n"),
        markdown("**Predict.** How many?"),
        code('checks.predict("one")'),
        code('checks.predict("two")'),
        code("print(3)", said="3\n"),
        code("print(4)", said="4\n"),
        markdown("So it is."),
        code("print(5)", said="5\n"),
    )
    assert covered(page.body) == [("one two", "3"), ("one two", "4"), ("one two", "So it is.\n")]
    assert page.cards == ["one", "two"] and "checks.predict" not in page.body
    assert "99 · Title" not in page.body, "the page has it already"


def test_a_widget_below_a_question_is_covered_too(write):
    widget = code("Player()", data={"text/plain": "Player()"})
    page = write(
        code('checks.predict("one")'),
        markdown("Play it."),
        widget,
        markdown("So it is. Counted:"),
        code("print(3)", said="3\n"),
        markdown("Now another."),
        code("print(4)", said="4\n"),
        shown={widget.id: {"class": "Player"}},
    )
    assert covered(page.body) == [("one", "Player()"), ("one", "3"), ("one", "Now another.\n")]


def test_an_output_that_answers_nothing_is_not_covered(write):
    page = write(
        code('checks.predict("one")'),
        code("print('equal')", "no-answer", said="equal\n"),
        markdown("Now count."),
        code("print(3)", said="3\n"),
    )
    assert covered(page.body) == [("one", "3")]
    assert "equal" in page.body
    assert re.search("<summary>(.*?)</summary>", page.body)[1] == "Opens when you answer the question above"


@pytest.mark.parametrize("after", ["### Next\n\nMore.", "**Predict.** Again?", "Another paragraph."])
def test_the_paragraph_below_an_answer_is_covered_too(write, after):
    ask, answer = code('checks.predict("one")'), code("print(3)", said="3\n")
    page = write(ask, answer, markdown(f"So it is.\n\n{after}"), code("print(4)", said="4\n"))
    assert covered(page.body) == [("one", "3"), ("one", "So it is.\n")]
    assert len(covered(write(ask, answer, markdown("So it is:"), code("x")).body)) == 1, "it leads to the cell"
    page = write(ask, answer, code("x"), markdown("Aside.", "no-answer"))
    assert covered(page.body)[-1] == ("one", "3")


def test_a_question_covers_outputs_up_to_the_next_heading(write):
    page = write(code('checks.predict("one")'), markdown("## Next"), code("print(3)", said="3\n"))
    assert covered(page.body) == []


def test_a_section_knows_its_questions_and_exercises(write):
    exercise = markdown("### Exercise: A\n\nWrite it.", "exercise:a")
    cells = markdown("## First"), code('checks.predict("one")'), markdown("## Next"), exercise
    page = write(code('checks.predict("zero")'), *cells, code('checks.predict("two")'))
    assert page.sections == [("First", "First", ["one"], []), ("Next", "Next", ["two"], ["a"])]
    assert (page.cards, page.exercises) == (["zero", "one", "two"], ["a"])


def test_an_exercise_is_one_box_with_its_stub_and_its_check(write):
    page = write(
        markdown("### Exercise: A\n\nWrite it.", "exercise:a"),
        code("def my_a():\n    raise NotImplementedError", "stub:a"),
        code("checks.a(my_a)", said="not solved yet"),
        code("print(1)", said="1\n"),
    )
    (box,) = re.findall(r'<section class="exercise" data-exercise="a">(.*?)</section>', page.body, re.DOTALL)
    assert "NotImplementedError" in box and "my_a" in box and 'data-solved="a"' in box
    assert "not solved yet" not in page.body and "print" not in box
    assert page.exercises == ["a"]


def test_an_exercise_that_a_page_lacks_something_for_says_so_once(write):
    stub, check = code("def my_a(): ...", "stub:a"), code("checks.a(my_a)")
    after = code("print(1)", said="1\n")
    told = {one.id: {"missing": "This cell needs Gluon.", "lacks": {}} for one in (stub, check, after)}
    page = write(markdown("### Exercise: A", "exercise:a"), stub, check, after, told=told)
    assert re.findall('<p class="note">(.*?)</p>', page.body) == [
        "This exercise needs Gluon. You can solve it in the notebook.",
        "This cell needs Gluon. Its stored output is shown here.",
    ]
    assert page.body.index("This exercise needs") < page.body.index("checks") < page.body.index("This cell needs")


def test_code_is_folded_where_the_notebook_folds_it(write):
    page = write(code("# The <sums>.\nx = 1", "folded"), code("y = 2"))
    assert page.body.count("<details") == 1 and "<summary>The &lt;sums&gt;.</summary>" in page.body


def test_what_is_said_to_readers_in_jupyterlab_alone_is_left_out(write):
    page = write(
        markdown("### Here\n\nYour machine.", "lab-only"), code("print(1)", "lab-only", said="1\n"), code("x = 1")
    )
    assert "machine" not in page.body and "print" not in page.body and page.body.count('class="cell') == 1


def test_imports_at_the_head_of_a_chapter_are_folded(write):
    imports = code("import json\nimport math\n\nnp.set_printoptions(4)")
    assert write(imports).body.count("<summary>Imports</summary>") == 1
    assert "<details" not in write(markdown("## Later"), imports).body
    assert "<details" not in write(code("import json\n\nfor k in range(3):\n    print(json.dumps(k))")).body


def test_progress_is_that_of_the_reader(write):
    stored = {"text/html": '<a href="01_x.ipynb">0 of 3</a>', "text/plain": "0 of 3"}
    page = write(code("from flashlib import checks\n\nchecks.progress()", data=stored))
    assert "0 of 3" not in page.body and "about.html#progress" in page.body


def test_outputs_are_text_not_markup(write):
    page = write(code("print()", said="\x1b[31m<b>red</b>\x1b[0m\n"))
    assert "&lt;b&gt;red&lt;/b&gt;" in page.body and "\x1b" not in page.body


def test_a_picture_is_a_file_with_few_colours_and_a_description(write, tmp_path):
    buffer = io.BytesIO()
    Image.linear_gradient("L").convert("RGBA").save(buffer, "PNG")
    png = base64.b64encode(buffer.getvalue()).decode()
    page = write(code("# Ramps.\nplot()", data={"image/png": png, "text/plain": "<Figure size 1x1>"}))
    (name,) = re.findall(r'src="static/pictures/([^"]*)" width="256" height="256"', page.body)
    with Image.open(tmp_path / name) as picture:
        assert picture.format == "WEBP" and picture.size == (256, 256)
    assert 'alt="Ramps."' in page.body


@pytest.mark.parametrize(("width", "scrolls"), [(270, False), (600, True)])
def test_a_plot_is_two_svgs_one_for_phones(write, tmp_path, width, scrolls):
    svg = '<svg width="{}pt" height="30pt" viewBox="0 0 1 1"></svg>'
    forms = {"image/svg+xml": svg.format(540), chapter.PHONE: svg.format(width)}
    page = write(code("# Times.\nplot()", data={"image/png": "", "text/plain": "<Figure size 1x1>"} | forms))
    (narrow,) = re.findall(
        rf'<source media="[^"]*" srcset="static/pictures/([^"]*)" width="{width * 4 // 3}"', page.body
    )
    (wide,) = re.findall(r'<img class="picture" src="static/pictures/([^"]*)" width="720" height="40"', page.body)
    assert [(tmp_path / name).read_text() for name in (wide, narrow)] == [*forms.values()]
    assert ('class="plot wide" tabindex="0"' in page.body) == scrolls


def test_the_words_of_each_section_can_be_searched(write):
    page = write(markdown("# 99 · T\n\nStart $x$ here."), markdown("## One\n\nalpha **beta**\n\n### Two\n\ngamma"))
    assert [[anchor, heading, words.strip()] for anchor, heading, words in page.words] == [
        ["", "", "Start x here."],
        ["One", "One", "alpha beta"],
        ["Two", "Two", "gamma"],
    ]


def test_the_terms_of_a_glossary_can_be_searched(write):
    table = "| | |\n|---|---|\n| tile, $B_r$ | *some* rows |\n| $m$ | the maximum |"
    page = write(markdown(f"## Glossary\n\nWords.\n\n{table}\n\nAfter."))
    assert page.terms == [["term-tile-B_r", "tile, B_r", "some rows"], ["term-m", "m", "the maximum"]]
    assert page.words[1] == ["Glossary", "Glossary", "Words. After."]
    assert all(f'id="{anchor}"' in page.body for anchor, *_ in page.terms)
