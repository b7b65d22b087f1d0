"""Python in the pages of chapters: cells, exercises and widgets, in Chromium on the built site."""

import json
import re
import shutil
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")
pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib.chapters import named
from flashlib.checks.engine import solutions
from tests.browser import test_site, verdicts
from tests.browser.probes import AXE
from tests.checks.engine import spoilers
from tests.required import missing
from tests.web import live_chapters
from tools import notebooks
from web.live import cells, parts
from web.live.inside import no_input

pytestmark = pytest.mark.browser

FEW, KERNELS = "online_softmax", "triton_first_steps"
NOT_LIVE = "triton_backward"  # where the site has no kernels
LIVE = [*live_chapters.EXERCISES]  # the names of chapters
OTHERS = [name for name in LIVE if name not in ("start_here", FEW)]
AMOUNTS = [("few", FEW), *(("all", name) for name in OTHERS)]
WITH_EXERCISES = [(amount, name) for amount, name in AMOUNTS if live_chapters.EXERCISES[name]]
PATIENCE = 120_000  # milliseconds, on a machine that is also busy with other things
RAN = ".cell[data-cell='{}'][data-ran='{}']"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A function that returns the site with Python in it, of one chapter or of all live ones; each built once."""
    try:
        parts.check(parts.folder())
    except parts.Missing as reason:
        missing(str(reason))
    made = {}

    def of(amount):
        if amount not in made:
            names = [FEW, KERNELS] if amount == "few" else LIVE
            made[amount] = test_site.Course(tmp_path_factory.mktemp("live"), names, is_live=True)
        return made[amount]

    yield of
    for one in made.values():
        one.stop()


@cache
def notebook(name):
    return live_chapters.read(named(name))


class Reader:
    """A user of the page of a chapter."""

    def __init__(self, page):
        self.page = page

    def cell(self, id):
        return self.page.locator(f".cell[data-cell='{id}']")

    def button(self, id, name):
        return self.cell(id).locator(f"button:text-is('{name}')")

    def outputs(self, id):
        return self.cell(id).locator(":scope > .outputs")

    def write(self, id, text):
        """Write a text into a cell."""
        if not self.cell(id).locator("textarea").count():
            self.unfold(id)
            self.button(id, "Edit").click()
        self.cell(id).locator("textarea").fill(text)

    def unfold(self, id):
        self.cell(id).evaluate("e => e.querySelector('details.folded')?.setAttribute('open', '')")

    def run(self, id, button="Run", patience=PATIENCE):
        """Run a cell, and return the text of its outputs; wait for it at most `patience` milliseconds."""
        before = int(self.cell(id).get_attribute("data-ran") or 0)
        self.unfold(id)
        self.button(id, button).click()
        self.wait(id, before + 1, patience)
        return self.outputs(id).inner_text()

    def wait(self, id, times, patience=PATIENCE):
        self.page.wait_for_selector(RAN.format(id, times), timeout=patience)

    def said(self, id):
        return self.cell(id).locator(".said").inner_text()


@contextmanager
def reading(browser, site, name, **options):
    with test_site.visit(browser, f"{site.address}{named(name).slug}.html", **options, keeps=True) as page:
        yield Reader(page)


@pytest.fixture(scope="module")
def readers(browser, course):
    """A function that returns a Reader of a chapter, whose page several tests use one after another."""
    opened = {}
    with ExitStack() as stack:

        def of(amount, name):
            if (amount, name) not in opened:
                opened[amount, name] = stack.enter_context(reading(browser, course(amount), name))
            return opened[amount, name]

        yield of


def exercises_of(name):
    """Return the exercises that can be solved on the page: the name, the id of the stub and that of the check."""
    running = live_chapters.runs_in(named(name))
    pairs = zip(running, running[1:], strict=False)
    return [(one, stub.id, check.id) for stub, check in pairs if (one := cells.exercise_of(stub))]


def plain(name):
    """Return the first exercise whose answer is a function in Python, not a part of a kernel, or None."""
    return next((one for one in exercises_of(name) if "@triton.jit\ndef my_" not in solutions.text(one[0])), None)


def some_cell(name):
    """Return a cell that prints something, after others that it needs; a short one, if there is one."""
    found = [
        cell
        for cell in live_chapters.runs_in(named(name))
        if printed(cell) and not cell.source.startswith("checks.") and not live_chapters.says_what_is_here(cell)
    ]
    short = [cell for cell in found if len(cell.source) < 400 and "folded" not in notebooks.tags(cell)]
    return (short or found)[len(short or found) // 2]


def printed(cell):
    """Return what a stored cell has printed."""
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")


@pytest.mark.parametrize("amount, name", AMOUNTS)
def test_a_cell_runs_is_changed_and_fails_as_in_a_notebook(readers, amount, name):
    reader, cell = readers(amount, name), some_cell(name)
    assert reader.run(cell.id).strip() == printed(cell).strip()
    assert "Ran here" in reader.said(cell.id)
    reader.write(cell.id, f"{cell.source}\nprint('mine', 6 * 7)")
    assert reader.run(cell.id).strip() == f"{printed(cell).strip()}\nmine 42"
    reader.write(cell.id, "x_ = 0\n1 / x_")
    said = reader.run(cell.id)
    assert re.search(r"ZeroDivisionError +Traceback.*\nCell In\[\d+\], line 2\n +1 x_ = 0\n-+> 2 1 / x_", said)
    assert said.endswith("ZeroDivisionError: division by zero")
    reader.button(cell.id, "Original").click()
    stored = reader.outputs(cell.id).locator("pre").first.text_content()  # perhaps under a question, as it was
    assert stored.strip() == printed(cell).strip()
    assert not reader.cell(cell.id).locator("textarea").count()


@pytest.mark.parametrize("amount, name", WITH_EXERCISES)
def test_an_exercise_is_solved_wrongly_and_rightly_and_an_endless_loop_ends(readers, amount, name):
    reader, (exercise, stub, check) = readers(amount, name), plain(name) or pytest.skip("all are parts of kernels")
    assert "Not solved yet" in reader.run(check, "Check")
    text = solutions.text(exercise)
    head = re.search(r"^def my_\w+\(.*\):$", text, re.MULTILINE)[0]
    reader.write(stub, f"{head}\n    while True: pass")
    reader.page.evaluate("flashSite.live.slower = 0.1")
    said = reader.run(check, "Check")  # kernels may take longer
    assert "did not end within 0.4 seconds" in said or "did not end within 1.5 seconds" in said
    assert "Python was restarted" in reader.said(check) and "again automatically" in reader.said(check)
    reader.page.evaluate("flashSite.live.slower = 30")
    reader.write(stub, f"{head}\n    return None")
    assert "Wrong" in reader.run(check, "Check")
    tick = reader.page.locator(f"[data-solved={exercise}]")
    assert not tick.is_visible(), "the check says it"
    reader.write(stub, text)
    assert reader.run(check, "Check").startswith("✓ Right")
    assert tick.is_checked() and tick.is_visible()
    reader.write(stub, f"{head}\n    return None")
    assert "Wrong" in reader.run(check, "Check")
    assert tick.is_checked() and not tick.is_visible(), "not under a wrong answer, though it stays solved"


KERNEL = solutions.text("causal_softmax")
UNMASKED = KERNEL.replace("offs <= row", "offs < N")
ENDLESS = re.sub(r"(\n +)(row = tl)", r"\1while True:\1    pass\1\2", KERNEL)


def test_a_kernel_runs_in_tritons_interpreter(readers):
    reader = readers("few", KERNELS)
    stub, check = next((stub, check) for name, stub, check in exercises_of(KERNELS) if name == "causal_softmax")
    reader.page.evaluate("flashSite.live.slower = 30")
    for answer, said in ((KERNEL, "✓ Right"), (UNMASKED, "the causal mask is missing")):
        reader.write(stub, answer)
        assert said in reader.run(check, "Check"), answer
    reader.page.evaluate("flashSite.live.slower = 0.2")
    reader.write(stub, ENDLESS)
    assert "did not end within" in reader.run(check, "Check")
    assert "Python was restarted" in reader.said(check)
    assert reader.page.get_by_text("torch is a small stand-in: it").count() == 1
    assert "Triton's compiler, which runs in JupyterLab or Colab, not in a page" in reader.page.content()


def test_only_a_page_with_kernels_fetches_what_they_need(readers):
    of = "flashSite.live.parts.map(({ name }) => name)"
    assert parts.KERNELS in readers("few", KERNELS).page.evaluate(of)
    assert parts.KERNELS not in readers("few", FEW).page.evaluate(of)


def test_an_answer_that_breaks_the_checks_spoils_no_later_one(readers):
    reader, cell = readers("few", FEW), some_cell(FEW)
    source = Path(spoilers.__file__).read_text(encoding="utf-8")
    names = ["the code of a function", "a class of a cell"]  # Python elsewhere tries all
    ask = f"found = outcomes({{name: SPOILERS[name] for name in {names}}}, CELL)"
    reader.write(cell.id, f"{source}\n{ask}\nimport json\nprint(json.dumps(found))")
    reader.page.evaluate("flashSite.live.slower = 30")
    assert json.loads(reader.run(cell.id)) == dict.fromkeys(names, ["wrong", "right"])
    reader.write(cell.id, cell.source)


WAITING = "name = input('your name? ')", "import sys\nsys.stdin.read()", "breakpoint()"


def test_a_cell_that_waits_for_input_is_told_what_to_do_instead(readers):
    reader, cell = readers("few", FEW), some_cell(FEW)
    for text in WAITING:
        reader.write(cell.id, text)
        assert reader.run(cell.id).endswith(f"StdinNotImplementedError: {no_input.SENTENCE}")
    reader.write(cell.id, cell.source)


def test_changes_are_kept_and_saved_as_a_notebook(readers, tmp_path):
    reader, (_, stub, _) = readers("few", FEW), exercises_of(FEW)[0]
    reader.write(stub, "def mine():\n    return 5")
    other = reader.page.context.new_page()
    other.goto(reader.page.url)
    other.wait_for_selector(test_site.READY, state="attached")
    assert Reader(other).cell(stub).locator("textarea").input_value() == "def mine():\n    return 5"
    other.close()
    with reader.page.expect_download() as download:
        reader.page.get_by_role("button", name="Save as a notebook").click()
    download.value.save_as(tmp_path / "mine.ipynb")
    found = json.loads((tmp_path / "mine.ipynb").read_text(encoding="utf-8"))
    texts = {cell["id"]: "".join(cell["source"]) for cell in found["cells"]}
    assert texts.pop(stub) == "def mine():\n    return 5"
    stored = {cell.id: cell.source for cell in notebook(FEW).cells}
    assert texts == {id: text for id, text in stored.items() if id != stub}
    reader.page.get_by_role("button", name="Undo all changes").click()
    assert "NotImplementedError" in reader.cell(stub).locator("textarea").input_value()


def test_the_download_can_be_stopped_and_its_loss_is_reported(browser, course):
    with reading(browser, course("few"), FEW, errors=None) as reader:
        cell = some_cell(FEW)
        reader.page.route("**/static/live/course.zip*", lambda route: None)  # it never comes
        reader.button(cell.id, "Run").click()
        assert "Python is starting" in reader.said(cell.id)
        reader.page.locator(".python-bar button:visible").click()
        reader.wait(cell.id, 1)
        assert "You have stopped this cell" in reader.outputs(cell.id).inner_text()
        assert not reader.said(cell.id) and reader.page.locator(".python-bar").is_hidden()
        reader.page.evaluate("flashSite.live.parts.at(-1).url = '../static/none.zip'")
        assert "Python could not be started: course.zip was not found (404)." in reader.run(cell.id)
        assert "Try again" in reader.page.locator(".python-bar").inner_text()


@pytest.mark.parametrize("amount, name", [("all", "softmax")])
def test_a_cell_is_stopped_and_python_restarts(readers, amount, name):
    reader, cell = readers(amount, name), some_cell(name)
    reader.write(cell.id, "while True: pass")
    before = int(reader.cell(cell.id).get_attribute("data-ran") or 0)
    reader.button(cell.id, "Run").click()
    reader.page.locator("html[data-python=ready]").wait_for(state="attached", timeout=PATIENCE)
    reader.page.locator(".python-bar button:visible").click()
    reader.wait(cell.id, before + 1)
    assert "You have stopped this cell" in reader.outputs(cell.id).inner_text()
    reader.write(cell.id, cell.source)
    assert reader.run(cell.id).strip() == printed(cell).strip()


# Moves a slider of a widget, or presses a control that asks Python for a different setting; returns the refusal,
# and how long the answer took.
ASKED = """async (root) => {
    const { model } = root.flashWidget;
    const before = model.get("asked");
    const start = performance.now();
    const isThere = (e) => !e.disabled && e.checkVisibility();
    const of = (selector) => [...root.querySelectorAll(selector)].filter(isThere);
    for (const field of of(".flash-settings input[type=range]").slice(-1)) {
        field.value = field.value === field.max ? field.min : field.max;
        for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
    }
    for (const button of of(".flash-settings button, .flash-asks, .flash-settings label"))
        if (model.get("asked") === before) button.click();
    const isRecorded = model.get("frames")?.learner; // of a kernel that has run: its settings are fixed
    if (model.get("asked") === before) return [isRecorded ? "" : "nothing asks", 0];
    while (model.get("heard") !== model.get("asked")) {
        if (performance.now() - start > 100000) return ["no answer", 0];
        await new Promise((done) => setTimeout(done, 2));
    }
    return [model.get("refused"), performance.now() - start];
}"""


@pytest.mark.parametrize("amount, name", AMOUNTS)
def test_a_setting_of_each_widget_is_answered(readers, amount, name):
    reader = readers(amount, name)
    reader.page.evaluate(test_site.UNCOVERED)
    for root in reader.page.locator("[data-cell] .widget .flash-widget:has(.flash-settings)").all():
        root.scroll_into_view_if_needed()
        assert root.evaluate(ASKED)[0] == ""


SEEN = [("few", FEW, "phone"), ("all", "one_pass", "desk"), ("all", "tiling", "phone")]


@pytest.mark.parametrize("amount, name, size", SEEN)
def test_a_live_page_fits_and_is_accessible(readers, amount, name, size):
    reader, cell = readers(amount, name), some_cell(name)
    width, height = test_site.WIDTHS[size]
    reader.page.set_viewport_size({"width": width, "height": height})
    reader.page.emulate_media(color_scheme="dark" if size == "phone" else "light")
    reader.write(cell.id, "1 / 0")
    reader.run(cell.id)
    assert reader.page.evaluate(test_site.TOO_WIDE) == []
    reader.page.evaluate(AXE.read_text(encoding="utf-8"))
    assert reader.page.evaluate(test_site.VIOLATIONS, amount) == []
    reader.write(cell.id, cell.source)


# Whether the layer in colours has the text of the field and takes as many lines, and the field shows whole lines.
LAYER = r"""(field) => {
    const [ink] = field.parentElement.children;
    const probe = Object.assign(field.cloneNode(), { value: field.value });
    field.after(probe);
    probe.style.cssText = "align-self: start; height: 0; padding-block: 0";
    const own = probe.scrollHeight;
    probe.remove();
    const lines = [...ink.children].map((line) => line.getBoundingClientRect().height);
    const height = lines.reduce((sum, one) => sum + one);
    const isWhole = field.scrollWidth <= field.clientWidth && lines.some((one) => one > 2 * lines[0]);
    return [Math.abs(height - own) < 2, ink.textContent === `${field.value}\n`, isWhole];
}"""
# As if a phone's keyboard left only the upper part of the window to be seen.
KEYBOARD = """(height) => {
    Object.defineProperty(visualViewport, "height", { value: height });
    visualViewport.dispatchEvent(new Event("resize"));
}"""
LONG_LINE = "    return m, l * np.exp(m_old - m) + np.exp(x_j - m)  # the old sum, rescaled"


def test_an_answer_is_typed_with_keys_for_code_on_a_phone(browser, course):
    context = browser.new_context(has_touch=True, viewport=test_site.NARROW, service_workers="block")
    page = context.new_page()
    page.route("**/static/live/*", lambda route: None)  # Python, which never comes
    page.goto(f"{course('few').address}{named(FEW).slug}.html")
    page.wait_for_selector(test_site.READY, state="attached")
    stub, check = page.locator(".stub").first, page.locator(".cell.check").first
    field, button = stub.locator("textarea"), check.locator(".tools button").first
    assert stub.locator(".keys").is_hidden()
    field.tap()
    field.evaluate("field => field.addEventListener('blur', () => (window.left = true))")
    keys = {key.get_attribute("aria-label"): key for key in stub.locator(".keys button").all()}
    assert {*"()[]:=,._", "indent", "unindent", "left", "right", "line above", "line below"} <= {*keys}
    assert min(key.bounding_box()["height"] for key in keys.values()) >= test_site.FINGER

    def write(*parts):
        """Type the texts, and press the keys that are named in lists; return what the field has then."""
        for part in parts:
            for one in part:
                keys[one].tap() if isinstance(part, list) else page.keyboard.type(one)
        assert not page.evaluate("window.left"), "it keeps the focus, and so a phone its keyboard"
        return field.input_value()

    before = field.input_value()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    assert write("def f", ["("], "x", [")", ":"]) == "def f(x):"
    page.keyboard.press("Enter")
    assert write("y", ["=", "["], "1", ["]"]) == "def f(x):\n    y=[1]"
    assert write(["left"], "2", ["line above"], "#", ["line below", "right"], "3") == "def f(x):#\n    y=[12]3"
    assert write(["unindent"]) == "def f(x):#\ny=[12]3"
    assert write(["indent"]) == "def f(x):#\n    y=[12]3"
    assert write(["undo"], "!") == "def f(x):#\ny=[12]3!", "what comes back is not selected"
    for _ in range(25):
        page.keyboard.press("Control+z")
    assert field.input_value() == before
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("“")
    assert field.input_value() == f'{before}"', "some phones turn quotes into others"
    field.fill(f"def f(x):\n\n{LONG_LINE}\n")
    assert field.evaluate(LAYER) == [True, True, True]
    coloured = stub.locator(".ink :is(.k, .c1, .nf)").all_text_contents()
    assert coloured == ["def", "f", "return", LONG_LINE[LONG_LINE.index("#") :]]
    stub.get_by_role("button", name="Original").tap()
    assert field.input_value() == before
    keys["undo"].tap()
    assert field.input_value().endswith(f"{LONG_LINE}\n"), "what was written comes back"
    button.tap()  # does not move when the field loses the focus
    assert check.get_attribute("aria-busy") == "true"
    stub, check = page.locator(".stub").nth(1), page.locator(".cell.check").nth(1)
    stub.locator("textarea").fill("x = 1\n" * 30)
    stub.locator("textarea").evaluate("field => field.setSelectionRange(150, 150)")  # line 26
    page.evaluate(KEYBOARD, 320)
    row, line = stub.locator(".keys").bounding_box(), stub.locator(".ink > div").nth(25).bounding_box()
    assert row["y"] + row["height"] == 320, "the keys are above the keyboard"
    assert line["y"] + line["height"] <= row["y"], "the line with the caret is above the keys"
    stub.locator(".keys button").last.tap()
    assert check.get_attribute("aria-busy") == "true"
    assert page.evaluate("document.activeElement.localName") != "textarea", "the keyboard closes"
    context.close()


def test_a_page_that_is_opened_as_a_file_has_no_python_and_shows_none(browser, course):
    folder = course("few").folder
    with test_site.visit(browser, (folder / f"{named(FEW).slug}.html").as_uri()) as page:
        assert not page.locator(".tools, .editor, [data-live]:visible").count()
        assert page.evaluate(test_site.DEAD) == []


@pytest.mark.parametrize("amount", ["all"])
def test_a_page_whose_code_does_not_run_says_so_at_its_top(monkeypatch, tmp_path, amount):  # noqa: ARG001
    monkeypatch.setattr(parts, "no_kernels", lambda: "Triton is not installed here")
    site = test_site.Course(tmp_path, [NOT_LIVE], is_live=True)
    site.stop()
    text = (site.folder / f"{named(NOT_LIVE).slug}.html").read_text(encoding="utf-8")
    top = text[text.index("<h1>") : text.index("<h2")]
    assert "<summary>The code does not run here</summary>" in top
    assert "This chapter needs torch, which does not run in a page." in top
    assert re.search(r'<a href="https://colab\.\S+">Open in Colab</a>', top)
    assert text.count("does not run in a page") == 1 and "data-cell" not in text


# Whether the parts of Python are kept.
KEPT = """async () => {
    const kept = (await (await caches.open("flashattention")).keys()).map(({ url }) => url);
    const parts = flashSite.live.parts.map(({ url }) => new URL(url.replace("../", ""), location.href).href);
    return parts.every((url) => kept.includes(url));
}"""


@pytest.mark.parametrize("amount, name", [("few", FEW), ("all", "softmax"), ("all", KERNELS)])
def test_it_works_without_a_network_after_the_first_visit(readers, course, amount, name):
    reader, cell, site = readers(amount, name), some_cell(name), course(amount)
    reader.write(cell.id, cell.source)
    reader.run(cell.id)
    reader.page.wait_for_function(KEPT)
    site.stop()
    try:
        reader.page.reload()
        reader.page.wait_for_selector(test_site.READY, state="attached")
        assert reader.page.evaluate(test_site.DEAD) == []
        if amount == "all":
            assert reader.run(cell.id).strip() == printed(cell).strip()
    finally:
        site.start(site.server.server_port)


@pytest.mark.parametrize("amount, name", [("all", name) for name in LIVE])
def test_every_cell_that_can_run_prints_its_stored_output(readers, amount, name):
    reader = readers(amount, name)
    told = {cell["id"]: cell["missing"] for cell in live_chapters.told_of(named(name))[0]}
    for cell in notebook(name).cells:
        if cell.cell_type != "code" or told[cell.id] or not reader.cell(cell.id).count():
            continue
        if "stub" in str(notebooks.tags(cell)):
            continue
        is_check = cell.source.startswith("checks.")
        found = reader.run(cell.id, "Check" if is_check else "Run")
        if not is_check and not live_chapters.says_what_is_here(cell):
            text = reader.outputs(cell.id).locator("pre.out").all_inner_texts()
            assert "".join(text).strip() == printed(cell).strip(), (cell.id, found)


@pytest.mark.parametrize("amount, name", [("all", name) for name in LIVE if live_chapters.EXERCISES[name]])
def test_the_verdicts_are_those_of_python_elsewhere(readers, amount, name):
    reader, cell = readers(amount, name), some_cell(name)
    exercises = [exercise for exercise, *_ in exercises_of(name)]
    assert len(exercises) == live_chapters.EXERCISES[name]
    source = Path(verdicts.__file__).read_text(encoding="utf-8")
    reader.write(cell.id, f"{source}\nimport json\nprint(json.dumps(of_exercises({exercises})))")
    reader.page.evaluate("flashSite.live.slower = 30")
    found = json.loads(reader.run(cell.id, patience=10 * PATIENCE))  # hundreds of answers
    reader.write(cell.id, cell.source)
    assert found == verdicts.of_exercises(exercises)
    assert all(outcome == "right" for _, mistake, outcome, _ in found if not mistake)


def test_a_build_without_pyodide_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PYODIDE", str(tmp_path))
    with pytest.raises(parts.Missing, match=r"has no pyodide\.js, .*: run python -m tools\.pyodide"):
        parts.check(parts.folder())


def test_another_wheel_is_refused(tmp_path, course):
    course("few")
    for path in parts.folder().iterdir():
        shutil.copy(path, tmp_path)
    wheel = parts.numpy_wheel(tmp_path)
    wheel.write_bytes(wheel.read_bytes() + b" ")
    with pytest.raises(parts.Missing, match="has the hash .* not the one in pyodide-lock"):
        parts.check(tmp_path)
