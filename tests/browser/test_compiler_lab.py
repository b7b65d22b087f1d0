"""CompilerLab in JupyterLab, in a real browser: while it compiles, when it fails, and when it is cancelled.

A test undoes its changes: those below it continue from there.
"""

import re

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")
pytest.importorskip("nbconvert")

from tests.browser import sizes
from tests.browser.contrast import too_low
from tests.browser.lab import THEMES, opened_file, resized
from tests.browser.playing import active_cell
from tests.browser.probes import AXE, CONTROLS, FAR_REACHING, FOCUS, MISPLACED, MOVING, STOPS, VIOLATIONS
from tests.browser.saved import save

compiled = pytest.importorskip(
    "flashlib.kernels.compiler.compiled", exc_type=ImportError
)  # no Triton, no compiler
registry = pytest.importorskip("flashlib.kernels.compiler.registry", exc_type=ImportError)

pytestmark = pytest.mark.browser

CALLS = [
    "CompilerLab(d=64)",
    "CompilerLab(B_r=128, B_c=128, num_warps=4, num_stages=4)",  # does not fit, and spills
    "CompilerLab(d=64)",
    "CompilerLab(d=8)",
]
FIRST, TOO_LARGE, FAILED, PROBLEM = range(len(CALLS))
CELLS = [
    f"from flashlib.widgets.compiler_lab import CompilerLab\n{CALLS[0]}",
    CALLS[1],
    f"lab = {CALLS[2]}\nlab.B_r = 48  # no power of two\nlab.wait()\nlab",
    CALLS[3],
]


@pytest.fixture(scope="module")
def labs(open_lab):
    with open_lab("compiler_lab.ipynb", cells=CELLS) as labs:
        assert labs.run_all() == []
        labs.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        labs.page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        yield labs


def at(labs, n):
    lab = labs.page.locator(".flash-compiler-lab").nth(n)
    lab.scroll_into_view_if_needed()
    return lab


@pytest.fixture
def lab(labs):
    return at(labs, FIRST)


def status(lab, state):
    """Wait for a state of the compiler; return the line that shows it."""
    line = lab.locator(f".flash-compiler-status[data-state={state}]")
    line.wait_for(timeout=30_000)
    return line


def assert_shows(lab, report):
    """Wait until the lab shows this report."""
    most = report.maker.max_registers
    registers = lab.get_by_role("definition").filter(has_text=re.compile(rf"^{report.registers} of {most}$"))
    registers.wait_for(timeout=30_000)
    tile = f"tile {report.B_r} × {report.B_c}" if report.B_r else report.kernel
    lab.locator(".flash-strong", has_text=tile).wait_for()
    status(lab, "done")


@pytest.fixture
def compiling(lab):
    """The lab while it compiles for a minute; at the end it shows the old result again."""
    lab.get_by_label("B_r").select_option("256")
    lab.get_by_label("B_c").select_option("256")
    lab.get_by_text("fp32", exact=True).click()
    status(lab, "compiling").filter(has_text="float32").wait_for()
    yield lab
    lab.evaluate(  # like its buttons, which a test or the end of the compilation may have hidden
        """root => {
            root.flashWidget.model.send({ ask: "cancel" });
            root.flashWidget.ask({ B_r: null, B_c: null, dtype: "bfloat16" });
        }"""
    )
    assert_shows(lab, compiled.report(d=64))


def test_the_kernel_is_chosen_by_keyboard(labs, lab):
    assert_shows(lab, compiled.report(d=64))
    lab.get_by_label("GPU").focus()
    for key in ("ArrowDown", "ArrowDown"):  # H100, RTX 4090, A100
        labs.page.keyboard.press(key)
    assert_shows(lab, compiled.report(d=64, capability=80))
    lab.get_by_role("rowheader", name="mma.sync").wait_for()
    labs.page.keyboard.press("Home")
    assert_shows(lab, compiled.report(d=64))
    assert active_cell(labs) == 0


def test_an_amd_gpu_has_amds_listing_and_terms(lab):
    lab.get_by_text("SASS", exact=True).last.click()
    lab.get_by_label("GPU").select_option("MI300X (gfx942)")
    report = compiled.report(d=64, capability="gfx942")
    assert_shows(lab, report)
    for name in ("VGPRs of a thread", "LDS of a program", "wavefronts on a compute unit"):
        assert lab.get_by_text(name, exact=True).is_visible(), name
    assert lab.get_by_role("rowheader", name="MFMA").is_visible()
    heads = lab.locator("thead th[scope=col]").all_inner_texts()
    assert heads == ["AMDGCN", "AMDGCN"]
    assert lab.get_by_label("listing").locator("label:visible").all_inner_texts() == ["TTGIR", "AMDGCN"]
    assert "v_mfma" in lab.locator("pre:visible").first.inner_text(), "what the GPU runs, as was chosen before"
    assert lab.evaluate(MISPLACED) == []
    lab.get_by_label("GPU").select_option("H100, H200 (sm_90)")
    assert_shows(lab, compiled.report(d=64))
    assert lab.get_by_label("listing").locator("label:visible").all_inner_texts() == ["TTGIR", "PTX", "SASS"]
    lab.get_by_label("listing").get_by_text("TTGIR").click()


def test_the_tile_is_chosen_by_pointer(labs, lab):
    lab.get_by_label("B_c").select_option("32")
    assert_shows(lab, compiled.report(d=64, B_c=32))
    lab.get_by_label("causal").check()
    assert_shows(lab, compiled.report(d=64, B_c=32, causal=True))
    lab.get_by_label("causal").uncheck()
    lab.get_by_label("B_c").select_option("default")
    assert_shows(lab, compiled.report(d=64))


def test_an_instruction_that_is_clicked_marks_its_lines(lab):
    """In the listing that is shown if it has them, else in the last one; a second click removes the marks."""
    listings = lab.evaluate("root => root.flashWidget.model.get('result').listings")
    name = "wgmma"
    lab.get_by_role("button", name=name, exact=True).click()
    lines, counted = listings["sass"]["loop"].split("\n"), listings["sass"]["counted"][name]
    group = lab.get_by_role("group", name="the loop in SASS")
    assert [text.rstrip("\n") for text in group.locator("mark").all_text_contents()] == [lines[n] for n in counted]
    assert f"{len(counted)} lines of {name} marked" in lab.locator(".flash-compiler-listing header").inner_text()
    assert group.locator("mark").first.evaluate(
        "e => { const [a, b] = [e, e.parentElement].map((x) => x.getBoundingClientRect());"
        " return b.top <= a.top && a.bottom <= b.bottom; }"
    )
    assert lab.evaluate(MISPLACED) == [] and too_low(lab) == []
    lab.get_by_role("group", name="listing").get_by_text("PTX").click()
    marks = lab.get_by_role("group", name="the loop in PTX").locator("mark")
    assert marks.count() == len(listings["ptx"]["counted"][name])
    button = lab.get_by_role("button", name=name, exact=True)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert marks.count() == 0 and button.get_attribute("aria-pressed") == "false"
    lab.get_by_label("listing").get_by_text("TTGIR").click()


def test_settings_that_a_kernel_does_not_take_are_disabled(lab):
    lab.get_by_label("kernel", exact=True).select_option("softmax")
    assert_shows(lab, compiled.report(kernel="softmax", d=64))
    off = lab.locator(".flash-settings :is(select, input):disabled").evaluate_all(
        "all => all.map((e) => e.dataset.name ?? e.type)"
    )
    assert off == ["checkbox", "B_r", "B_c", "num_warps", "num_stages", "descriptors"]
    lab.get_by_label("kernel", exact=True).select_option("forward")
    assert_shows(lab, compiled.report(d=64))


def test_a_hopper_kernel_shows_the_registers_of_each_role(lab):
    kernel = lab.get_by_label("kernel", exact=True)
    of_hopper = [name for name in registry.kernels() if name.startswith("hopper_")]
    assert kernel.locator("optgroup[label=Hopper] option").count() == len(of_hopper)
    kernel.select_option("hopper_forward")
    report = compiled.report(kernel="hopper_forward", d=64)
    assert_shows(lab, report)
    for name in ("in the producer", "in 2 consumers", "in 1 consumer", "at first; then each role uses"):
        assert lab.get_by_text(name).is_visible(), name
    producer = next(role for role in report.roles if role.name == "producer")
    assert lab.get_by_role("definition").filter(has_text=f"{producer.used} of {producer.given}").first.is_visible()
    assert lab.get_by_role("rowheader", name="mbarrier arrive").is_visible()
    assert lab.evaluate(MISPLACED) == []
    assert lab.get_by_label("B_c").is_disabled()
    kernel.select_option("forward")
    assert_shows(lab, compiled.report(d=64))


def test_it_counts_the_seconds_and_keeps_what_it_shows(labs, compiling):
    compiling.get_by_role("status").filter(has_text="tile 256 × 256").wait_for()
    elapsed = """([lab, least]) => {
        const seconds = parseInt(lab.querySelector(".flash-compiler-seconds").textContent);
        return seconds >= least && seconds;
    }"""
    root = compiling.element_handle()
    first = labs.page.wait_for_function(elapsed, arg=[root, 1]).json_value()
    labs.page.wait_for_function(elapsed, arg=[root, first + 1])
    old = compiling.locator(".flash-compiler-old")
    assert old.get_by_text("What is shown is for forward, d = 64, bfloat16").is_visible()
    assert old.get_by_text(f"{compiled.report(d=64).registers} of 255").is_visible()
    assert compiling.get_by_role("button", name="Go back").is_hidden()


def test_cancelling_by_keyboard_leaves_the_keys_in_the_lab(labs, compiling):
    compiling.get_by_role("button", name="Cancel").focus()
    labs.page.keyboard.press("Enter")
    assert status(compiling, "cancelled").inner_text().startswith("Cancelled: forward, d = 64, float32")
    assert compiling.get_by_text("What is shown is for forward, d = 64, bfloat16").is_visible()
    assert compiling.evaluate("root => document.activeElement === root")
    compiling.get_by_role("button", name="Try again").click()
    status(compiling, "compiling")


def test_a_failure_is_reported_next_to_the_last_result(labs):
    lab = at(labs, FAILED)
    assert status(lab, "failed").inner_text().startswith("▲ forward, d = 64, bfloat16, for H100 and H200; Br = 48")
    assert lab.get_by_text(f"{compiled.report(d=64).registers} of 255").is_visible()
    assert lab.get_by_label("B_r").evaluate("list => list.selectedOptions[0].text") == "48"


def test_an_excess_is_marked_by_a_sign(labs):
    lab = at(labs, TOO_LARGE)
    assert lab.get_by_role("definition").filter(has_text="▲ 289 of 227 KB").is_visible()
    assert lab.locator(".flash-compiler-over").count() == 1


@pytest.mark.parametrize(
    "kind, word", [("SASS", "HGMMA"), ("PTX", "wgmma.mma_async"), ("TTGIR", "warp_group_dot")]
)
def test_the_listing_is_the_loop_and_all_of_it_comes_when_unfolded(labs, lab, kind, word):
    lab.get_by_role("group", name="listing").get_by_text(kind).click()
    loop = lab.get_by_role("group", name=f"the loop in {kind}")
    loop.filter(has_text=word).wait_for()
    whole = lab.get_by_role("group", name=f"all of {kind}")
    assert whole.count() == 0
    lab.locator("summary").focus()
    labs.page.keyboard.press("Enter")
    text = getattr(compiled.report(d=64), kind.lower())
    whole.filter(has_text=text.splitlines()[-1].strip()).wait_for()
    assert whole.text_content() == text
    loop.focus()
    labs.page.keyboard.press("ArrowDown")
    labs.page.wait_for_function("e => e.scrollTop > 0", arg=loop.element_handle())
    lab.locator("summary").click()


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible(labs, theme):
    labs.theme(theme)
    for n in range(len(CALLS)):
        assert at(labs, n).evaluate(VIOLATIONS) == []
        assert too_low(at(labs, n)) == []


@pytest.mark.parametrize("theme", THEMES)
def test_dimmed_text_is_legible(labs, compiling, theme):
    labs.theme(theme)
    assert compiling.evaluate(VIOLATIONS) == []
    assert too_low(compiling) == []


@pytest.mark.parametrize("n", [FIRST, FAILED])
def test_tab_reaches_every_control_and_leaves(labs, n):
    lab = at(labs, n)
    count = lab.evaluate(f"root => (window.stops = ({STOPS})(root)).length")
    lab.focus()
    reached = []
    for _ in range(count + 1):
        labs.page.keyboard.press("Tab")
        reached.append(lab.evaluate(FOCUS))
    assert count > 12 and reached == [*map(str, range(count)), None]


def test_every_control_has_a_name(labs):
    lines = [line.strip("- ") for line in at(labs, FAILED).aria_snapshot().splitlines()]
    controls = [line for line in lines if re.match(rf"({CONTROLS})\b", line)]
    assert len(controls) > 12
    assert [line for line in controls if not re.match(r'\w+ "[^"]*\w', line)] == []


@pytest.mark.parametrize("width", sizes.WIDTHS)
def test_nothing_is_cut_off(labs, width):
    wide = "root => [...root.querySelectorAll('pre')].map((e) => e.scrollWidth - e.clientWidth)"
    with resized(at(labs, FIRST), width):
        assert max(at(labs, FIRST).evaluate(wide)) <= 1, "lines of code go on below"
        assert [at(labs, n).evaluate(MISPLACED) for n in (FIRST, TOO_LARGE, FAILED)] == [[], [], []]


def test_everything_above_the_listing_fits_a_laptop(labs, compiling):
    with resized(compiling, sizes.LAPTOP):
        top = compiling.bounding_box()["y"]
        assert 300 < compiling.locator(".flash-compiler-listing").bounding_box()["y"] - top < 620


def test_nothing_moves_and_no_rule_reaches_further(labs, compiling):
    assert compiling.evaluate(MOVING) == []
    count, found = labs.page.evaluate(FAR_REACHING)
    assert count  # rules of other widgets may have stayed on the page
    assert found == []


def test_a_sentence_in_its_place_says_what_is_wrong(labs):
    alert = at(labs, PROBLEM).get_by_role("alert")
    assert alert.text_content() == "d is 8; the kernel takes 16 to 256: pad Q, K and V"


def test_a_saved_page_shows_it_and_its_listings(browser, tmp_path):
    with opened_file(browser, save([CELLS[FIRST]], tmp_path)) as page:
        lab = page.locator(".flash-compiler-lab")
        assert_shows(lab, compiled.report(d=64))
        assert lab.locator(".flash-settings").evaluate("e => e.matches(':disabled')")
        lab.get_by_role("group", name="listing").get_by_text("SASS").click()
        lab.get_by_role("group", name="the loop in SASS").filter(has_text="HGMMA").wait_for()
        assert lab.locator("summary").is_hidden()
        assert lab.locator(".flash-compiler-status button:visible").count() == 0
