"""MergeTree in JupyterLab, in a real browser: by keyboard and pointer; the numbers on the page."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib.pictures.number_text import number
from flashlib.softmax import IDENTITY, merge, summarise
from tests.browser.lab import wait_until_heard
from tests.browser.shown.merge_tree import card, expected, numbers

pytestmark = pytest.mark.browser

X = np.array([0.3, 1.7, -np.inf, 2.2, 0.9, -1.4])
V = np.array([[1.0, 0.2], [-0.5, 0.8], [0.3, -1.1], [1.6, 0.4], [-0.9, 0.7], [0.6, -0.3]])
CELLS = [
    "import numpy as np\nfrom flashlib.widgets import MergeTree",
    f"x = np.{X!r}\nV = np.{V!r}\n".replace("inf", "np.inf") + "tree = MergeTree(x, V, cuts=(2, 3))\ntree",
    "MergeTree(cuts=(9,))",
]


@pytest.fixture(scope="module")
def opened(open_lab):
    with open_lab("merge_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def tree(opened):
    """The widget, cut at 2 and 3, with nothing merged."""
    tree = opened.page.locator(".flash-merge").first
    tree.scroll_into_view_if_needed()
    tree.evaluate("tree => tree.flashWidget.ask({ cuts: [2, 3], moves: [], order: '' })")
    opened.page.wait_for_function(
        """tree => JSON.stringify(tree.flashWidget.sent.setting) === '{"cuts":[2,3],"moves":[],"order":""}'""",
        arg=tree.element_handle(),
    )
    tree.get_by_label("plain mean of the outputs").uncheck()
    return tree


def answered(tree, act):
    """Do something and wait until the page shows Python's answer."""
    loads = tree.get_attribute("data-loads")
    act()
    tree.page.wait_for_function(
        "([tree, loads]) => tree.dataset.loads !== loads", arg=[tree.element_handle(), loads]
    )


def test_it_says_what_it_is(tree):
    assert tree.get_by_role("heading", name="A row in parts: does the order of merging matter?").is_visible()


def button(tree, name):
    return tree.get_by_role("button", name=name, exact=True)


def leaves(cuts):
    return [summarise(X[a:b], V[a:b]) for a, b in pairwise([0, *cuts, len(X)])]


def compared(tree, name):
    """Return the table's values of a number: at the root, for the whole row, and their difference."""
    return tree.locator(f'tr[data-compared="{name}"] td').all_text_contents()


def account(tree):
    """Return the sentence on the last move, or on the node that is looked at, as it is shown."""
    return tree.locator(".flash-merge-account").inner_text().replace("\n", " ")


def press(element, key):
    element.focus()
    element.page.keyboard.press(key)


def test_leaves_are_the_parts(tree):
    assert tree.locator(".flash-merge-card:visible").count() == 3
    for k, (name, state) in enumerate(zip(("x[0:2]", "x[2:3]", "x[3:6]"), leaves([2, 3]), strict=True)):
        assert card(tree, k).locator(".flash-merge-name").text_content() == name
        assert numbers(card(tree, k)) == expected(state)
    row = tree.locator(".flash-merge-numbers > span[title]").all_text_contents()
    assert row == list(map(number, [*X, *V[:, 0], *V[:, 1]]))
    assert compared(tree, "m") == ["", number(X.max()), "3 nodes left to merge"]


def test_two_nodes_are_merged_by_pointer(tree):
    a, _, b = leaves([2, 3])
    card(tree, 0).click()
    assert card(tree, 0).get_attribute("aria-pressed") == "true"
    assert "x[0:2] is picked" in account(tree)
    answered(tree, card(tree, 2).click)
    assert numbers(card(tree, 3)) == expected(merge(a, b))
    factors = tree.locator(".flash-merge-alpha:visible").all_text_contents()
    assert factors == [f"× {number(np.exp(part.m - 2.2))}" for part in (a, b)]
    assert account(tree).startswith("The last move")
    assert "m = max(1.700, 2.200) = 2.200" in account(tree)
    card(tree, 0).click()  # it now has a parent, and can only be looked at
    assert card(tree, 0).get_attribute("aria-pressed") is None
    assert account(tree).startswith("A node: x[0:2]")
    assert f"l = {number(a.l)}" in account(tree)
    assert "Pick a node" in account(tree)


def test_everything_by_keyboard(tree):
    answered(tree, lambda: press(tree.locator('[data-cut="1"]'), "Enter"))
    assert tree.locator('[data-cut="1"]').get_attribute("aria-pressed") == "true"
    answered(tree, lambda: press(tree.locator('[data-cut="3"]'), " "))
    assert tree.locator('[data-cut="3"]').get_attribute("aria-pressed") == "false"
    parts = leaves([1, 2])
    assert [numbers(card(tree, k)) for k in range(3)] == list(map(expected, parts))
    press(card(tree, 2), "Enter")
    press(card(tree, 2), "Escape")
    assert card(tree, 2).get_attribute("aria-pressed") == "false"
    press(card(tree, 2), " ")
    answered(tree, lambda: press(card(tree, 0), " "))
    assert card(tree, 0).evaluate("card => card === document.activeElement")  # it can be continued from here
    answered(tree, lambda: press(button(tree, "add the identity"), "Enter"))
    assert numbers(card(tree, 4)) == expected(IDENTITY)
    press(card(tree, 4), "Enter")
    answered(tree, lambda: press(card(tree, 3), "Enter"))
    assert numbers(card(tree, 5)) == numbers(card(tree, 3)) == expected(merge(parts[2], parts[0]))
    answered(tree, lambda: press(button(tree, "undo"), "Enter"))
    assert tree.locator(".flash-merge-card:visible").count() == 5
    answered(tree, lambda: press(button(tree, "start over"), "Enter"))
    assert tree.locator(".flash-merge-card:visible").count() == 3
    assert button(tree, "undo").get_attribute("aria-disabled") == "true"
    assert tree.locator(".flash-spoken").count() == 1


def test_tab_reaches_the_cuts_and_the_nodes_in_order(tree):
    button(tree, "start over").focus()
    reached = []
    for _ in range(9):
        tree.page.keyboard.press("Tab")
        reached.append(tree.evaluate("() => Object.values(document.activeElement.dataset).join(' ')"))
    assert reached[1:6] == ["1", "2", "3", "4", "5"]  # after the switch, the cuts
    assert [words.split()[0] for words in reached[6:]] == ["0", "1", "2"]


def test_every_order_gives_the_whole_row(tree):
    whole = summarise(X, V)
    for order in ("left to right", "balanced", "random order", "random order"):
        answered(tree, button(tree, order).click)
        assert [compared(tree, name)[:2] for name in "ml"] == [[number(whole.m)] * 2, [number(whole.l)] * 2]
        assert compared(tree, "O")[0] == ", ".join(map(number, whole.O_acc / whole.l))
        assert compared(tree, "m")[2] == "equal to the last bit"
        assert compared(tree, "l")[2] == "equal to the last bit" or compared(tree, "l")[2].endswith("rounding")
        newest = tree.locator(".flash-merge-log tbody tr").first.locator("td").all_text_contents()
        assert newest[0].startswith(order)
        assert newest[1] == "equal to the last bit" or newest[1].endswith("rounding")
    answered(tree, tree.locator('[data-cut="5"]').click)  # the order stays, and is applied to the new parts
    assert compared(tree, "l")[0] == number(whole.l)
    assert "x[5:6]" in tree.locator(".flash-merge-log tbody tr").first.text_content()


def test_plain_mean_is_shown_on_request(tree):
    answered(tree, button(tree, "left to right").click)
    assert "plain" not in numbers(card(tree, 4))
    height = card(tree, 4).bounding_box()["height"]
    tree.get_by_label("plain mean of the outputs").check()
    tree.page.wait_for_function("tree => tree.flashWidget.tree.plain", arg=tree.element_handle())
    outputs = [np.broadcast_to(state.O_acc, 2) / (state.l or 1) for state in leaves([2, 3])]
    wrong = ((outputs[0] + outputs[1]) / 2 + outputs[2]) / 2
    assert numbers(card(tree, 4))["plain"] == list(map(number, wrong))
    whole = summarise(X, V)
    error = np.abs(wrong - whole.O_acc / whole.l).max()
    assert compared(tree, "plain")[2] == f"✕ wrong by {number(error)}"
    assert card(tree, 4).bounding_box()["height"] > height


def test_cards_are_in_python_s_places_and_hold_their_text(tree):
    answered(tree, button(tree, "balanced").click)
    boxes = tree.locator(".flash-merge-card:visible").evaluate_all(
        "cards => cards.map((card) => [card.offsetLeft + card.offsetWidth / 2, card.offsetTop])"
    )
    stage = tree.locator(".flash-merge-stage").bounding_box()["width"]
    places = tree.evaluate("tree => tree.flashWidget.sent.nodes.map((node) => node[3])")
    tops = sorted({top for _, top in boxes})
    for (x, top), (column, level) in zip(boxes, places, strict=True):
        assert abs(x - (column + 0.5) * stage / 3) < 2
        assert tops[level] == top
    assert clipped(tree) == []


def clipped(tree):
    """The cards and the cells of the row that are too small for their text."""
    return tree.evaluate(
        """tree => [...tree.querySelectorAll(".flash-merge-card, .flash-merge-numbers > [title]")].filter((box) =>
            box.checkVisibility() && (box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth)
        ).map((box) => box.outerHTML)"""
    )


def test_text_fits_with_any_number_of_leaves(tree):
    for identities in range(1, 8):
        answered(tree, button(tree, "add the identity").click)
        assert clipped(tree) == [], identities
    answered(tree, button(tree, "balanced").click)
    assert clipped(tree) == []


def test_the_panel_of_the_tree_is_as_high_as_the_tree(tree):
    """It grows with each level, without free space for later ones."""
    merge_one = "(tree, move) => tree.flashWidget.ask({ moves: [...tree.flashWidget.moves, move] })"
    answered(tree, tree.locator('[data-cut="1"]').click)
    heights = [tree.locator(".flash-merge-scroller").bounding_box()["height"]]
    for move in ([0, 1], [4, 2], [5, 3]):
        answered(tree, lambda move=move: tree.evaluate(merge_one, move))
        heights.append(tree.locator(".flash-merge-scroller").bounding_box()["height"])
        ends = tree.locator(".flash-merge-card").evaluate_all(
            "all => all.map((e) => e.offsetTop + e.offsetHeight)"
        )
        assert heights[-1] - max(ends) < 6
    assert all(20 < b - a < 120 for a, b in pairwise(heights))


def test_the_widths_of_edges_are_alpha(tree):
    a, _, b = leaves([2, 3])
    card(tree, 0).click()
    answered(tree, card(tree, 2).click)
    widths = tree.evaluate(
        "tree => tree.flashWidget.tree.cards[3].edges.map((edge) => Number(edge.getAttribute('stroke-width')))"
    )
    assert np.allclose(widths, [1 + 3 * np.exp(part.m - 2.2) for part in (a, b)])


def test_a_new_node_moves_down_except_with_reduced_motion(tree):
    tree.evaluate("""() => {
        const animate = (window.animated = Element.prototype.animate);
        window.moved = [];
        Element.prototype.animate = function (...how) {
            window.moved.push(this.dataset.node);
            return animate.apply(this, how);
        };
    }""")
    try:
        answered(tree, button(tree, "balanced").click)
        assert {"3", "4"} < set(tree.evaluate("() => window.moved"))
        answered(tree, button(tree, "start over").click)
        tree.page.emulate_media(reduced_motion="reduce")
        tree.evaluate("() => (window.moved = [])")
        answered(tree, button(tree, "balanced").click)
        assert tree.evaluate("() => window.moved") == []
    finally:
        tree.page.emulate_media(reduced_motion="no-preference")
        tree.evaluate("() => { Element.prototype.animate = window.animated; }")  # the page is used again


def test_a_refusal_is_reported(tree):
    for _ in range(7):
        answered(tree, button(tree, "add the identity").click)
    button(tree, "add the identity").click()
    status = tree.get_by_role("status")
    tree.page.wait_for_function(
        "status => status.textContent.includes('10 can be drawn')", arg=status.element_handle()
    )
    assert tree.locator(".flash-merge-card:visible").count() == 10
    answered(tree, button(tree, "undo").click)
    wait_until_heard(tree)
    assert status.text_content() == ""


def test_a_problem_is_reported_in_place_of_the_widget(opened):
    problem = opened.page.locator(".flash-merge .flash-problem")
    problem.scroll_into_view_if_needed()
    assert (
        problem.text_content() == "cuts has 9 in it; accepted are whole numbers from 1 to 7, each once, e.g. (4,)."
    )
