"""The README, Start here, CONTRIBUTING and docs/results.md agree with the registry, records and answers."""

import re
import shutil
from importlib.util import find_spec

import pytest

nbformat = pytest.importorskip("nbformat")
from flashlib.chapters import (  # noqa: E402
    CHAPTERS,
    FROM_ZERO,
    KNOWN,
    NEEDS,
    NOTEBOOKS,
    PARTS,
    ROUTES,
    UNNUMBERED,
    chapter,
    named,
)
from tests.bench import recorded  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402
from tools import (  # noqa: E402
    card_questions,
    chapter_heads,
    kernel_list,
    markdown,
    minutes,
    notebooks,
    results,
    tables,
    totals,
)

FOLDER = tables.START_HERE.parent


@pytest.mark.parametrize("path, made", [(tables.README, tables.readme), (tables.CHANGELOG, tables.changelog)])
def test_the_tables_of_a_file_are_up_to_date(path, made):
    text = path.read_text(encoding="utf-8")
    assert made(text) == text, "run python -m tools.tables"


@pytest.mark.parametrize("path, made", [(tables.README, totals.in_short), (tables.CONTRIBUTING, totals.in_full)])
def test_the_totals_are_up_to_date(path, made):
    text = path.read_text(encoding="utf-8")
    assert markdown.replaced(text, "totals", made()) == text, "run python -m tools.tables"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of Start here and Online softmax in a temporary folder; return the folder."""
    for path in (tables.README, tables.CONTRIBUTING, tables.CHANGELOG, tables.RESULTS):
        shutil.copy(path, tmp_path)
        monkeypatch.setattr(tables, path.stem.upper(), tmp_path / path.name)
    chapters = CHAPTERS[0], CHAPTERS[3]
    for c in chapters:
        shutil.copy(FOLDER / f"{c.slug}.ipynb", tmp_path)
    monkeypatch.setattr(tables, "START_HERE", tmp_path / tables.START_HERE.name)
    monkeypatch.setattr(tables, "CHAPTERS", chapters)
    monkeypatch.setattr(tables, "NOTEBOOKS", chapters)
    monkeypatch.setattr(tables, "ROUTES", ROUTES[:1])
    monkeypatch.setattr(card_questions, "write", lambda: None)
    for name in ("in_short", "in_full"):
        monkeypatch.setattr(totals, name, lambda: "")
    return tmp_path


def test_changed_chapters_are_to_be_executed_again_and_a_second_run_changes_nothing(course, monkeypatch):
    tables.write()
    assert tables.write() == set()
    path = course / f"{CHAPTERS[3].slug}.ipynb"
    nb = notebooks.read(path)
    nb.cells[1].source += "\n\n### Exercise: Another\n\n*20 minutes · easy*"
    notebooks.write(path, notebooks.to_text(nb))
    monkeypatch.setattr(tables, "EXERCISES", [*tables.EXERCISES, "another"])
    assert tables.write() == {"00", "03"}
    texts = {path: path.read_text(encoding="utf-8") for path in course.iterdir()}
    assert tables.write() == {"00"}, "its stored list of exercises is still out of date"
    assert texts == {path: path.read_text(encoding="utf-8") for path in course.iterdir()}


def test_the_readme_is_short():
    read = re.sub("<!--.*-->", "", tables.README.read_text(encoding="utf-8"))
    assert len(minutes.WORD.findall(read)) <= 1200


def test_the_page_of_results_is_up_to_date():
    assert tables.RESULTS.read_text(encoding="utf-8") == results.page(), "run python -m tools.tables"


@pytest.fixture
def record():
    """Two sizes of a made-up run: ours at 8 and 2, the others at 4, SDPA's flash at 1."""
    rows = [
        {"d": 64, "causal": False, "N": 16384, "H": 32, "H_k": 8, "dtype": "bfloat16"},
        {"d": 64, "causal": True, "N": 16384, "H": 32, "H_k": 8, "dtype": "bfloat16"},
    ]
    for row, mine in zip(rows, (8.0, 2.0), strict=True):
        others = dict.fromkeys(("sdpa_cudnn", "flex", "eager", "fa4"), 4.0)
        row["tflops"] = {"ours": mine, "hopper": 8.0, "sdpa_flash": 1.0} | others
        row["runs"] = {name: [speed] for name, speed in row["tflops"].items()}
    rows[1]["tflops"]["eager"] = None
    about = {"gpu": "GPU", "torch": "2", "triton": "3", "date": "today", "dtype": "bfloat16"}
    return about | {"rows": rows, "more": rows, "grouped": rows, "rungs": rows}


def test_a_table_has_the_speeds_of_each_row_and_the_means_of_ratios(record):
    found = results.passes({**record, "rows": [dict(row, runs={}) for row in record["rows"]]})
    assert (
        "| 64 | no | 16384 | 8 | 4 | 4 | 1 | 4 | 8.00 |\n| 64 | yes | 16384 | 2 | 4 | 4 | 1 | - | 2.00 |\n"
        in found
    )
    assert "The geometric mean of the last column is 4.00." in found
    assert "| 64 | 32 / 8 | no | 16384 | 8 | 4 | 4 | 1 |\n" in found
    hopper = results.hopper(record)
    assert "one run:\n" in hopper
    assert "| 64 | no | 16384 | 8 | 8 | 4 | 4 |\n| 64 | yes | 16384 | 8 | 2 | 4 | 4 |\n" in hopper
    assert "| 16384 | 1.00 to 4.00 | 2.00 to 2.00 | 2.00 to 2.00 |\n" in hopper


def test_the_hopper_kernel_is_compared_for_each_length(record):
    """A mean over N would hide that it is faster at one and slower at another."""
    short = {**record["rows"][0], "N": 1024, "tflops": {**record["rows"][0]["tflops"], "fa4": 16.0}}
    found = results.hopper({**record, "rows": [short, *record["rows"]]})
    assert "| 1024 | 1.00 to 1.00 | 2.00 to 2.00 | 0.50 to 0.50 |\n| 16384 | 1.00 to 4.00 |" in found
    assert "mean" not in found


def test_several_runs_show_their_median_and_their_range(record):
    for row in record["rows"]:
        row["runs"]["hopper"] = [7.6, 8.0, 9.4]
    hopper = results.hopper(record)
    assert "medians of 3 runs, with their range:\n" in hopper
    assert "| 64 | no | 16384 | 8 (8 to 9) | 8 | 4 | 4 |\n" in hopper


def test_eight_bits_have_the_share_of_the_pass_and_their_bias_if_known(record):
    speeds = dict.fromkeys(results.IN_EIGHT_BITS, 4.0) | {"fp8": 8.0, "fp8_whole": 6.0, "one_level": None}
    same = {"tflops": speeds, "runs": {"fp8": [8.0, 8.0]}, "pass_us": {"fp8": 12.3}}
    errors = dict.fromkeys(results.WITH_ERRORS, 0.05) | {"cudnn_fp8": 0.25}
    both = [{"kind": kind, "N": 9, "d": 64, "H": 3, "error": errors} for kind in ("plain", "positive")]
    both[1]["bias"] = dict.fromkeys(results.WITH_BIAS, -0.255)
    found = results.eight_bits({"rows": [row | same for row in record["rows"]], "errors": both})
    assert "| 64 | no | 16384 | 8 | 4 | - | 4 | 4 | 4 | 6 | 12 | 25% |\n" in found and "medians of 2 runs" in found
    assert "e4m3 is 2.00 times that of cuDNN in e4m3, from 2.00 to 2.00" in found
    assert "| plain | 9 | 0.2500 |" in found and found.count("| - | - | - |\n") == 1
    assert found.endswith("| -25.5% | -25.5% | -25.5% |\n")


def test_the_short_table_has_long_causal_sequences_only(record):
    found = results.in_short(record, record)
    assert (
        "| forward | 64 | 32/8 | 2 | 8 | 4 | 4 | 2.00 |\n| backward | 64 | 32/8 | 2 | 8 | 4 | 4 | 2.00 |\n"
        in found
    )
    assert len(found.splitlines()) == 6


def test_all_lines_of_a_table_have_as_many_cells():
    for text in (results.page(), tables.README.read_text(encoding="utf-8")):
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({line.count("|") for line in block.splitlines()}) == 1, block


def test_each_part_of_the_results_names_the_command_that_makes_its_record():
    commands = {record.file: record.command for record in recorded.RECORDS}
    for part in results.PARTS:
        assert find_spec(part.module.split()[0]), part.module
        assert commands.get(f"{part.record}.json", part.command) == part.command
    shown = {f"{part.record}.json" for part in results.PARTS} | {"h200_timelines.json", "h200_clocks.json"}
    assert shown == {path.name for path in results.DATA.glob("*.json")}


def test_every_part_has_chapters_in_order():
    parts = list(dict.fromkeys(c.part for c in CHAPTERS))
    assert parts == list(PARTS) and [*PARTS.values()] == sorted(PARTS.values())
    assert {named(name).part for name in ("start_here", "triton_flash")} == {"The route"}
    assert named("eight_bits").part == "The machine"


def test_a_route_needs_only_what_is_on_it():
    known = {c.number: {named(name).number for name in c.builds_on} for c in CHAPTERS}
    for number in FROM_ZERO.numbers:
        assert known[number] <= set(FROM_ZERO.numbers), number
    assert set(KNOWN.numbers) <= set(FROM_ZERO.numbers)
    for route in ROUTES:
        assert set(route.numbers) <= known.keys() and list(route.numbers) == sorted(route.numbers)


def test_chapters_build_on_earlier_ones():
    for n, c in enumerate(CHAPTERS):
        assert set(c.builds_on) <= {earlier.name for earlier in CHAPTERS[:n]}, c.slug


def test_the_table_of_start_here_is_up_to_date():
    text = tables.START_HERE.read_text(encoding="utf-8")
    assert notebooks.to_text(tables.start_here(notebooks.read(tables.START_HERE))) == text, (
        "run python -m tools.tables"
    )


def test_the_list_of_kernels_is_up_to_date_and_has_every_folder():
    text = tables.KERNELS.read_text(encoding="utf-8")
    assert markdown.replaced(text, "kernels", kernel_list.table()) == text, "run python -m tools.tables"
    for name in (
        "hopper/forward.py",
        "hopper/backward.py",
        "hopper/fp8.py",
        "forward.py",
        "hopper/ladder/__init__.py",
    ):
        assert f"](../flashlib/kernels/{name}) | " in text
    assert "](../flashlib/kernels/hopper/launch.py)" not in text, "it has no kernel"


def test_a_text_without_its_place_is_refused():
    with pytest.raises(ValueError, match="there are no lines '<!-- speed"):
        markdown.replaced("# Title\n", "speed", "")


def test_every_chapter_is_registered_in_order():
    assert sorted(c.slug for c in NOTEBOOKS) == [path.stem for path in notebooks.chapters(FOLDER)]
    numbers = [c.number for c in CHAPTERS]
    assert numbers == sorted(set(numbers)) and all(numbers), "21 and 22 may come later"
    assert {c.number for c in UNNUMBERED} <= {""}
    with pytest.raises(KeyError, match="no chapter '99_none' .* there are 00_start_here, "):
        chapter("99_none")
    with pytest.raises(KeyError, match="no chapter 'none' .* there are start_here, "):
        named("none")


@each_case(NOTEBOOKS, lambda c: c.slug)
def test_the_head_of_a_chapter_says_where_it_is_and_how_long_it_takes(c):
    nb = notebooks.read(FOLDER / f"{c.slug}.ipynb")
    stated = chapter_heads.stated(nb, c)
    assert [cell.source for cell in stated.cells] == [cell.source for cell in nb.cells], (
        "run python -m tools.tables"
    )


def a_chapter(head, *texts):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text) for text in (head, *texts)])


def test_the_line_is_written_once_and_says_what_it_must():
    elective, on_route = named("counting_bytes"), named("one_pass")
    nb = a_chapter("# 07 · Old title\n\n*5 minutes · nowhere*\n\nWords, see [Softmax](softmax.ipynb).")
    once = chapter_heads.stated(nb, elective)
    title, said, words, _ = once.cells[0].source.split("\n\n")
    assert (title, words) == (f"# {elective.heading}", "Words, see [Softmax](01_softmax.ipynb).")
    assert said.startswith("*5 minutes · an elective · builds on [Tiling](05_tiling.ipynb) · no GPU needed")
    assert chapter_heads.stated(once, elective) == once
    takes = minutes.Minutes(74, 6)
    assert "*75 minutes (+ 10 optional) · [on the route](00_start_here.ipynb) · " in chapter_heads.line(
        on_route, takes
    )
    assert chapter_heads.line(named("speed"), takes).endswith(" · on Linux, no GPU needed*")
    assert chapter_heads.line(named("speed"), takes, is_live=True).endswith("(09_roofline.ipynb) · no GPU needed*")
    assert chapter_heads.line(named("glossary"), takes) == ""
    assert chapter_heads.stated(a_chapter("# Old"), named("glossary")).cells[0].source == "# Glossary"


def test_a_head_leaves_out_what_a_chapter_that_it_names_builds_on():
    line = chapter_heads.line(named("one_query"), minutes.Minutes(5, 0))
    assert "[Roofline]" in line and "[FlashAttention in Triton]" in line and "[Counting bytes]" not in line
    assert "attention" in named("one_query").all_before() - {*named("one_query").builds_on}


def test_links_to_chapters_get_the_file_of_the_name():
    given = "[a](tiling.ipynb) [b](17_tiling.ipynb#grid) [c](../tiling.ipynb) [d](data/x.json)"
    slug = named("tiling").slug
    assert (
        chapter_heads.linked(given)
        == f"[a]({slug}.ipynb) [b]({slug}.ipynb#grid) [c](../{slug}.ipynb) [d](data/x.json)"
    )
    with pytest.raises(KeyError, match="no chapter 'hoper'"):
        chapter_heads.linked("[a](hoper.ipynb)")


def test_the_next_chapter_is_named_before_what_is_optional():
    nb = a_chapter("# T", "## Sources\n\nNext: [old](05_tiling.ipynb).", "## More (optional)\n\nx")
    first, second = chapter_heads.stated(nb, CHAPTERS[0]), CHAPTERS[1]
    link = f"Next: [{second.number} · {second.title}]({second.slug}.ipynb)."
    assert [cell.source for cell in first.cells[1:]] == [f"## Sources\n\n{link}", "## More (optional)\n\nx"]
    assert chapter_heads.following(CHAPTERS[-1]) == ""


def test_the_time_of_a_route_is_rounded_up():
    for total in range(1, 400):
        count, unit = minutes.in_words(total).split()
        late = float(count) * (60 if unit == "hours" else 1) - total
        assert 0 <= late < (30 if total > 60 else 10)


@pytest.mark.parametrize("totals", [(472.3, 91.1, 249.8, 674.4, 497.7), (61, 62, 63, 64), (90, 120.1, 90), (100,)])
def test_the_times_of_parts_add_up_to_the_time_of_all(totals):
    hours = [float(time.removesuffix(" hours")) for time in minutes.in_parts(totals)]
    assert f"{sum(hours):g} hours" == minutes.in_words(sum(totals))
    assert all(abs(60 * time - total) < 30 for time, total in zip(hours, totals, strict=True))
    assert f"{hours[0]:g} hours" == minutes.in_words(totals[0])


def test_the_parts_of_the_readme_take_as_long_as_the_whole_course():
    *parts, whole = re.findall(r"^\| \*.*\| ([\d.]+) hours \|$", tables.chapters(), re.MULTILINE)
    assert len(parts) > 1 and sum(map(float, parts)) == float(whole)


def test_minutes_are_of_words_lines_predictions_and_exercises():
    nb = nbformat.v4.new_notebook()

    def add(text, code=False, **metadata):
        make = nbformat.v4.new_code_cell if code else nbformat.v4.new_markdown_cell
        nb.cells.append(make(text, metadata=metadata))

    add("# Title\n\n" + "word " * 129 + "<details>" + "hidden " * 500 + "</details>")
    assert minutes.of(nb) == pytest.approx((1, 0), abs=0.01)
    add("x = 1\n\n" * 60, code=True)
    add("# What this cell does.\n" + "x = 1\n" * 500, code=True, tags=["folded"])
    add("checks.predict('x')", code=True)
    assert minutes.of(nb) == pytest.approx((1 + 61 * 7 / 60 + 1.5, 0), abs=0.01)
    before = minutes.of(nb)
    add("### Exercise: A\n\n*20 minutes · hard*\n\n" + "word " * 500, tags=["exercise:a"])
    add("def my_a():\n    " + "word\n" * 500, code=True, tags=["stub:a"])
    add("### Exercise: B\n\n*20 minutes · hard*\n\n" + "word " * 500, tags=["exercise:b"])
    add("@gluon.jit\ndef my_b():\n    " + "word\n" * 500, code=True, tags=["stub:b"])
    assert minutes.of(nb) == pytest.approx((before.core + 15 + 20, 0), abs=0.01)
    before = minutes.of(nb)
    add("## More (optional)\n\n" + "word " * 129)
    add("### Exercise: C\n\n*20 minutes · hard*", tags=["exercise:c"])
    assert minutes.of(nb) == pytest.approx((before.core, 16), abs=0.05)
    assert minutes.of(nb).rounded() == (45, 20)


@each_case(CHAPTERS, lambda c: c.slug)
def test_a_chapter_agrees_with_the_registry(c):
    cells = notebooks.read(FOLDER / f"{c.slug}.ipynb").cells
    assert cells[0].source.startswith(f"# {c.number} · {c.title}\n")
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert {*c.needs, *c.more_needs} <= NEEDS.keys()
    assert ("triton" in c.needs + c.more_needs) == bool(
        re.search(r"^(import|from) (triton|flashlib\.kernels)", code, re.MULTILINE)
    )
    shown = re.findall(r"^(?:\w+ = )?(\w+(?:Player|Players|Lab|Tree))\b[.(]", code, re.MULTILINE)
    assert set(c.widgets) == set(shown)
