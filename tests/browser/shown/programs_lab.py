"""What ProgramsLab shows: for each program, the offsets that Python has for it, in their places and as numbers."""

import numpy as np

from flashlib.widgets import ProgramsLab
from tests.browser.labs import plain, text, wait_for

MARKS = {("load", 1): "load", ("store", 1): "store"}
# The offsets that are drawn in a panel, with what they are marked as; in the matrix, and in the block of numbers.
DRAWN = """(panel) => ["svg.flash-programs-matrix text.flash-programs-offset", ".flash-programs-numbers code"].map(
    (selector) => [...panel.querySelectorAll(selector)].filter((e) => e.textContent)
        .map((e) => [e.textContent, e.dataset.mark ?? ""]))"""


def check_program(lab, result, program, turn=0):
    """This program is shown, in this turn: its sentence, and what it loads and stores first."""
    assert lab.get_attribute("data-program") == str(program)
    words = f"{result['grid']['words']} {result['programs'][program]['words']}"
    assert text(lab, ".flash-headline-now") == plain_words(words)
    for kind in ("load", "store"):
        panel = lab.locator(f".flash-programs-{kind}s")
        its = [one for one in result["accesses"] if one["program"] == program and one["kind"] == kind]
        same = [one for one in its if one["line"] == its[0]["line"]]
        access = next(one for one in same if len(same) == 1 or one["turn"] == turn)
        expected = marked(result, access)
        matrix, block = panel.evaluate(DRAWN)
        numbers = [] if matrix_shows_the_block(matrix, result, access) else expected
        assert sorted(map(tuple, block)) == sorted(numbers)
        tensor = result["tensors"][access["tensor"]]
        drawn = {tuple(one) for one in matrix if one[1]}
        assert drawn == set(expected) and len(matrix) >= int(np.prod(tensor["shape"]))
        fault = panel.locator(".flash-programs-fault")
        assert fault.is_visible() == bool(access["fault"])
        if access["fault"]:
            assert fault.inner_text() == f"✕ {access['fault']}"


def matrix_shows_the_block(matrix, result, access):
    """Whether all offsets of an access can be read in the matrix, in the order and the rows of its block."""
    shape, its = access["shape"], places(result, access)
    across = shape[-1] if len(shape) > 1 else len(its)
    _, _, row, column = its[0]
    ordered = all(place[2:] == [row + k // across, column + k % across] for k, place in enumerate(its))
    return ordered and sum(bool(mark) and text != "✕" for text, mark in matrix) == len(its)


def plain_words(words):
    return plain(words) if "_ptr" not in words else words


def places(result, access):
    """Return offset, state, row and column of each place of an access."""
    every = np.frombuffer(result["buffer"], "<i4").reshape(-1, 4)
    return every[access["start"] :][: int(np.prod(access["shape"]))].tolist()


def marked(result, access):
    """Return the offsets of an access as texts, with what they are marked as."""
    found = []
    for offset, state, _, _ in places(result, access):
        mark = "masked" if state == 0 else MARKS.get((access["kind"], state), "wrong")
        found.append((f"✕{offset}" if mark == "wrong" else str(offset), mark))
    return found


def check_shown(lab, **setting):
    """The page shows what Python computes for this setting."""
    result = ProgramsLab(**setting).result
    wait_for(lab, result["setting"])
    lines = lab.locator(".flash-programs-code [data-kind] > span > code:first-child").all_inner_texts()
    assert [line.rstrip() for line in lines] == [line["text"] for line in result["lines"]]
    assert lab.locator(".flash-programs-cross").count() == sum(one["bad"] for one in result["programs"])
    for program in sorted(
        {0, len(result["programs"]) // 2, len(result["programs"]) - 1} & {*range(len(result["programs"]))}
    ):
        lab.evaluate("(lab, program) => lab.flashWidget.choose(program)", program)
        check_program(lab, result, program)
    return result


def check(lab):
    check_shown(lab, **lab.evaluate("lab => lab.flashWidget.result.setting"))
