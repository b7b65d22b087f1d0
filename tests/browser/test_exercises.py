"""Verdicts as a learner sees them, in JupyterLab, in both themes."""

import pytest

pytest.importorskip("anywidget")
from flashlib.checks.engine import solutions  # noqa: E402
from tests.browser.contrast import too_low  # noqa: E402
from tests.browser.lab import THEMES  # noqa: E402

pytestmark = pytest.mark.browser

IMPORTS = "import numpy as np\nfrom flashlib import checks"
STUB = "def my_online_step(m, l, x_j):\n    raise NotImplementedError"
WRONG = solutions.text("online_step").replace("l * np.exp(m_old - m)", "l")
CHECK = "checks.online_step(my_online_step)"
CELLS = [
    *(IMPORTS, STUB, CHECK, WRONG, CHECK, solutions.text("online_step"), CHECK),
    *('checks.predict("third_score", ...)', 'checks.predict("third_score", 2.5)', "checks.progress()"),
]
SHOWN = [
    "Not solved yet",
    "Wrong: l is not rescaled",
    "Right: in all",
    "Not answered yet:",
    "Wrong: not 2.5",
]


@pytest.fixture(scope="module")
def outputs(open_lab):
    with open_lab("exercises.ipynb", CELLS) as lab:
        assert lab.run_all() == []
        outputs = lab.page.locator(".jp-OutputArea-output.jp-RenderedHTML")
        outputs.nth(len(SHOWN)).wait_for()
        yield lab, outputs


@pytest.mark.parametrize("theme", THEMES)
def test_verdicts_are_shown_and_readable(outputs, theme):
    lab, outputs = outputs
    lab.theme(theme)
    for text, output in zip(SHOWN, outputs.all(), strict=False):
        assert text in " ".join(output.inner_text().split())
        assert too_low(output) == []
    assert "exercises solved" in outputs.nth(len(SHOWN)).inner_text()
    assert too_low(outputs.nth(len(SHOWN))) == []


def test_a_wrong_loop_is_played(open_lab):
    wrong = solutions.text("fa2").replace("l = alpha * l +", "l = l +")
    imports = (
        f"{IMPORTS}\nfrom flashlib.types import Step\nfrom flashlib.tiled import blocks, is_hidden, is_visible"
    )
    with open_lab("play.ipynb", [imports, wrong, "checks.fa2(my_fa2).play()"]) as lab:
        assert lab.run_all() == []
        player = lab.page.locator(".flash-widget")
        player.wait_for()
        told = player.inner_text()
        assert "red: how far off each step is" in told and "your lines: here l is wrong" in told
        shown = [player.get_attribute(f"data-{name}") for name in ("step", "part")]
        assert shown == ["1", "add"], "it opens at the first wrong step, on the part that is wrong"
        assert "Wrong: l is not rescaled" in lab.page.locator(".jp-RenderedHTML").last.inner_text()


def test_a_sentence_is_shown_during_a_wait_and_gone_after_it(open_lab, tmp_path):
    over = tmp_path / "over"
    over.touch()
    imports = "import pathlib, time\nfrom flashlib.checks.engine import waiting\nwaiting.PATIENCE = 0.0"
    wait = f"while not pathlib.Path({str(over)!r}).exists(): time.sleep(0.02)"
    with open_lab("wait.ipynb", [imports, f"with waiting.told('Please wait.'):\n    {wait}\n5"]) as lab:
        assert lab.run_all() == []
        over.unlink()
        lab.begin(1)
        output = lab.page.locator(".jp-OutputArea").last
        sentence = output.get_by_text("Please wait.")
        sentence.wait_for()
        over.touch()
        sentence.wait_for(state="detached")
        output.get_by_text("5").wait_for()
        assert output.inner_text().split()[-1] == "5"
        room = (
            output.bounding_box()["height"] - output.locator(".jp-OutputArea-child").last.bounding_box()["height"]
        )
        assert room < 4, "what is gone leaves no room behind"
