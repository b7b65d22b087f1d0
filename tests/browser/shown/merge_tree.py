"""What MergeTree shows: the State of each node on its card, and cards and edges in their places."""

import numpy as np

from flashlib.pictures.number_text import number
from flashlib.softmax import summarise
from flashlib.widgets import MergeTree
from flashlib.widgets.merge_tree.tree import differences, grow, output, roots_of, whole_row


def card(tree, k):
    return tree.locator(f'.flash-merge-card[data-node="{k}"]')


def numbers(card):
    """Return the numbers on a card by name."""
    found = {}
    for name, text in card.locator(".flash-merge-number").evaluate_all(
        "spans => spans.filter((span) => span.offsetParent).map((span) => [span.dataset.name, span.textContent])"
    ):
        found.setdefault(name, []).append(text)
    return found


def expected(state):
    O_acc = np.broadcast_to(state.O_acc, 2)
    O = O_acc / state.l if state.l else O_acc
    named = {"m": [state.m], "l": [state.l], "O_acc": O_acc, "O": O}
    return {name: list(map(number, values)) for name, values in named.items()}


def check(tree):
    made = MergeTree()
    setting = tree.evaluate("tree => tree.flashWidget.sent.setting")
    for order in (setting["order"], "balanced"):
        if order != setting["order"]:
            loads = tree.get_attribute("data-loads")
            tree.get_by_role("button", name=order, exact=True).click()
            tree.page.wait_for_function(
                "([tree, loads]) => tree.dataset.loads !== loads", arg=[tree.element_handle(), loads]
            )
            setting = tree.evaluate("tree => tree.flashWidget.sent.setting")
        check_nodes(tree, made._x, made._V, grow(made._x, made._V, setting["cuts"], setting["moves"]))


def check_nodes(tree, x, V, nodes):
    """Each node is a card with its State; edges are alpha wide; the root is compared with the whole row."""
    cards = tree.locator(".flash-merge-card:visible")
    assert cards.count() == len(nodes)
    widths = tree.evaluate(
        """tree => tree.flashWidget.tree.cards.map((card) =>
            card.edges.map((edge) => Number(edge.getAttribute("stroke-width"))))"""
    )
    for k, node in enumerate(nodes):
        assert card(tree, k).locator(".flash-merge-name").text_content() == node.name
        known = expected(node.state) | {"plain": list(map(number, node.plain))}
        for name, shown in numbers(card(tree, k)).items():
            assert shown == known[name], (node.name, name)
        assert np.allclose(widths[k], 1 + 3 * np.array(node.alphas or (0, 0)))
    check_places(tree, [node.place for node in nodes])
    whole, root = summarise(x, V), nodes[-1]
    alone = len(roots_of(nodes)) == 1
    for name, ours, true in (("m", root.state.m, whole.m), ("l", root.state.l, whole.l)):
        shown = tree.locator(f'tr[data-compared="{name}"] td').all_text_contents()[:2]
        assert shown == [number(ours) if alone else "", number(true)]
    shown = tree.locator('tr[data-compared="O"] td').all_text_contents()[1]
    assert shown == ", ".join(map(number, output(whole, V.shape[1])))
    if alone:
        found = differences(root, whole_row(x, V), V.shape[1])
        for name, size in found.items():
            how = f"✕ wrong by {number(size)}" if name == "plain" else f"{number(size)}, rounding"
            said = tree.locator(f'tr[data-compared="{name}"] td').all_text_contents()[2]
            assert said == (how if size else "equal to the last bit")


def check_places(tree, places):
    """Cards are in the columns and on the levels that Python gave them."""
    boxes = tree.locator(".flash-merge-card:visible").evaluate_all(
        "cards => cards.map((card) => [card.offsetLeft + card.offsetWidth / 2, card.offsetTop])"
    )
    stage = tree.locator(".flash-merge-stage").bounding_box()["width"]
    tops, leaves = sorted({top for _, top in boxes}), sum(level == 0 for _, level in places)
    for (x, top), (column, level) in zip(boxes, places, strict=True):
        assert abs(x - (column + 0.5) * stage / leaves) < 2
        assert tops[level] == top
