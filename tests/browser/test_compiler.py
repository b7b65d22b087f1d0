"""CompilerLab in JupyterLab, in a real browser: by keyboard and by pointer, in both themes."""

import re
from pathlib import Path

import pytest

pytest.importorskip("ipywidgets")

from flashlib.widgets.compiler.shown import summary  # noqa: E402
from tests.browser.contrast import too_low

compiled = pytest.importorskip("flashlib.kernels.compiled", exc_type=ImportError)  # no Triton, no compiler

pytestmark = pytest.mark.browser

LAB = ".flash-compiler"
CELLS = [
    "from flashlib.widgets.compiler import CompilerLab\nCompilerLab(d=64)",
    "CompilerLab(B_r=128, B_c=128, num_stages=4)",
    "CompilerLab(d=8)",
]


@pytest.fixture(scope="module")
def labs(open_lab):
    with open_lab("compiler_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        yield lab


@pytest.fixture
def lab(labs):
    lab = labs.page.locator(LAB).first
    lab.scroll_into_view_if_needed()
    return lab


def shown(lab, report):
    """Wait until the lab shows this report."""
    lab.get_by_role("status").filter(has_text=summary(report)).wait_for(timeout=30_000)
    registers = lab.get_by_role("row", name=re.compile("registers of a thread")).get_by_role("cell").first
    assert registers.inner_text() == f"{report.registers:,}"
    assert lab.page.locator(".jp-OutputArea-output[data-mime-type*=error]").count() == 0


def test_the_kernel_is_chosen_by_keyboard(labs, lab):
    shown(lab, compiled.report(d=64))
    lab.get_by_label("GPU").focus()
    for key in ("ArrowDown", "ArrowDown"):  # H100, RTX 4090, A100
        labs.page.keyboard.press(key)
    shown(lab, compiled.report(d=64, capability=80))
    labs.page.keyboard.press("Home")
    shown(lab, compiled.report(d=64))
    assert (
        labs.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCell.model.type") == "code"
    )


def test_the_tile_is_chosen_by_pointer(labs, lab):
    lab.get_by_label("B_c").select_option("32")
    shown(lab, compiled.report(d=64, B_c=32))
    lab.get_by_label("causal").check()
    shown(lab, compiled.report(d=64, B_c=32, causal=True))
    lab.get_by_label("causal").uncheck()
    lab.get_by_label("B_c").select_option("default")
    shown(lab, compiled.report(d=64))


def test_it_says_that_it_compiles(labs, lab):
    labs.page.evaluate(
        """lab => {
            const say = () => window.said.push(lab.querySelector("[role=status]")?.textContent);
            window.said = [];
            new MutationObserver(say).observe(lab, { childList: true, subtree: true });
        }""",
        lab.element_handle(),
    )
    lab.get_by_label("stages").select_option("5")
    shown(lab, compiled.report(d=64, num_stages=5))
    assert "compiling ..." in labs.page.evaluate("() => window.said")
    lab.get_by_label("stages").select_option("default")
    shown(lab, compiled.report(d=64))


@pytest.mark.parametrize(
    "kind, word", [("SASS", "HGMMA"), ("PTX", "wgmma.mma_async"), ("TTGIR", "warp_group_dot")]
)
def test_the_listing_is_the_loop_and_unfolds(labs, lab, kind, word):
    lab.get_by_label("listing").select_option(kind)
    loop = lab.get_by_role("region", name=kind, exact=True)
    loop.filter(has_text=word).wait_for()
    whole = lab.get_by_role("region", name=f"{kind}, all")
    assert whole.count() == 0
    lab.locator("summary").focus()
    labs.page.keyboard.press("Enter")
    whole.wait_for()
    assert len(whole.inner_text()) > 2 * len(loop.inner_text())
    loop.focus()
    labs.page.keyboard.press("ArrowDown")
    labs.page.wait_for_function("e => e.scrollTop > 0", arg=loop.element_handle())


def test_what_is_wrong_is_said_in_its_place(labs):
    alert = labs.page.locator(LAB).nth(2).get_by_role("alert")
    assert alert.inner_text() == "d is 8; the kernel takes 16 to 256: pad Q, K and V"


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_it_can_be_read_and_operated_by_all(labs, theme):
    axe = pytest.importorskip("axe_playwright_python")
    labs.theme(theme)
    labs.page.add_script_tag(content=Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
    for n in range(len(CELLS)):
        lab = labs.page.locator(LAB).nth(n)
        lab.scroll_into_view_if_needed()
        violations = "async root => (await axe.run(root)).violations.map(({ id, nodes }) => id + nodes[0].html)"
        assert lab.evaluate(violations) == []
        assert too_low(lab) == []


@pytest.mark.parametrize("width", [860, 1440])
def test_nothing_is_cut_off(labs, lab, width):
    labs.page.set_viewport_size({"width": width, "height": 1000})
    labs.page.wait_for_timeout(300)
    assert lab.evaluate("root => root.scrollWidth - root.clientWidth") <= 1
