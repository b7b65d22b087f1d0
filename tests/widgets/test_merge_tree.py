"""MergeTree sends the results of flashlib's summarise and merge to the page, bit for bit."""

import base64
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib.pictures.number_text import number
from flashlib.softmax import IDENTITY, merge, safe, summarise
from flashlib.widgets import MergeTree
from flashlib.widgets.merge_tree.checks import MAX_LEAVES
from flashlib.widgets.merge_tree.tree import moves_of

INF = np.inf


def inputs(rng, N, d):
    x = rng.normal(scale=3, size=N)
    x[rng.random(N) < 0.2] = -INF
    return x, rng.normal(size=(N, d))


def rows(shown):
    """Return what is sent to the page: a row of numbers for each node, and one for the whole row."""
    result = shown.result
    N, d = result["N"], result["d"]
    return np.frombuffer(result["buffer"], "<f8")[N * (1 + d) :].reshape(-1, 3 * d + 4)


def expected(x, V, cuts, moves):
    """Return the States of the nodes, computed only with flashlib's functions."""
    states = [summarise(x[a:b], V[a:b]) for a, b in pairwise([0, *cuts, len(x)])]
    for move in moves:
        states.append(merge(*(states[k] for k in move)) if move else IDENTITY)
    return states


def refusal(shown, **settings):
    """Send a request as the page does; return the answer, after checking that nothing else changed."""
    before = shown.result
    shown.set_state(settings)
    assert shown.result is before
    assert {name: getattr(shown, name) for name in before["setting"]} == before["setting"]
    return shown.refused


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("N", [2, 5, 8, 16])
def test_nodes_are_summarise_and_merge_bit_for_bit(rng, N, d):
    for order in ("left to right", "balanced", "random order"):
        x, V = inputs(rng, N, d)
        cuts = sorted(rng.choice(np.arange(1, N), size=min(N - 1, 7), replace=False).tolist())
        shown = MergeTree(x, V, cuts=cuts, order=order)
        assert len(shown.moves) == len(cuts)
        states = expected(x, V, cuts, shown.moves)
        for row, state in zip(rows(shown), [*states, summarise(x, V)], strict=False):
            O_acc = np.broadcast_to(state.O_acc, d)
            assert row[0] == state.m
            assert row[1] == state.l
            assert np.array_equal(row[2 : 2 + d], O_acc)
            assert np.array_equal(row[2 + d : 2 + 2 * d], O_acc / state.l if state.l else O_acc)
        for k, (_, _, children, _) in enumerate(shown.result["nodes"]):
            if children:
                m, alphas = states[k].m, rows(shown)[k, -2:]
                assert alphas.tolist() == [np.exp(states[c].m - m) if m > -INF else 0 for c in children]


def test_any_cuts_and_any_order_give_the_whole_row(rng):
    for _ in range(40):
        x, V = inputs(rng, 9, 3)
        cuts = sorted(rng.choice(np.arange(1, 9), size=rng.integers(1, 9), replace=False).tolist())
        shown = MergeTree(x, V, cuts=cuts)
        shown.moves = [[]]
        shown.order = "random order"
        assert len(shown.moves) == len(cuts) + 2
        whole = summarise(x, V)
        m, l = rows(shown)[len(shown.result["nodes"]) - 1, :2]
        assert m == whole.m
        assert np.isclose(l, whole.l, rtol=1e-13, atol=0)
        found = shown.result["differences"]
        assert found["l"] == abs(l - whole.l)
        assert found["O"] < 1e-13
        O = rows(shown)[len(shown.result["nodes"]) - 1, 5:8]
        assert np.allclose(O, safe(x) @ V, rtol=1e-12, atol=1e-13)


def test_orders_are_complete_trees_of_the_depth_they_promise():
    for parts in range(1, 9):
        for order in ("left to right", "balanced", "random order"):
            moves = moves_of(order, 0, parts, identities=2)
            leaves = parts + 2
            assert moves[:2] == [[], []]
            assert sorted(sum(moves, [])) == list(range(2 * leaves - 2))  # all but the root have a parent
        levels = [0] * leaves
        for a, b in moves_of("balanced", None, leaves, 0):
            levels.append(1 + max(levels[a], levels[b]))
        assert levels[-1] == int(np.ceil(np.log2(leaves)))
    assert moves_of("left to right", None, 4, 0) == [[0, 1], [4, 2], [5, 3]]


def test_the_identity_changes_no_bit():
    shown = MergeTree(cuts=(4,))
    shown.moves = [[], [0, 2]]
    before, after = rows(shown)[0], rows(shown)[3]
    assert np.array_equal(before[:6], after[:6])  # m, l, O_acc, O
    assert after[-2:].tolist() == [1, 0]
    assert "the other one stays" in shown.result["words"]
    shown.moves = [[], [], [2, 3]]
    assert rows(shown)[4, :2].tolist() == [-INF, 0]
    assert "= −∞\nNeither has a finite score" in shown.result["words"]
    masked = MergeTree(np.full(4, -INF), np.ones((4, 1)), cuts=(1,), order="balanced")
    assert rows(masked)[2].tolist() == [-INF, 0, 0, 0, 0, 0, 0]
    assert masked.result["differences"] == {"m": 0, "l": 0, "O": 0, "plain": 0}


def test_plain_mean_is_the_mean_of_two_outputs_and_wrong():
    x, V = np.log([1.0, 2.0, 1.0, 4.0]), np.array([[10.0], [20.0], [30.0], [40.0]])
    shown = MergeTree(x, V, cuts=(2,), order="balanced")  # Online softmax says 30, and 27.33 for the mean
    assert np.isclose(rows(shown)[2, 3], 30)
    assert np.isclose(rows(shown)[2, 4], (50 / 3 + 38) / 2)
    assert np.isclose(shown.result["differences"]["plain"], 30 - (50 / 3 + 38) / 2)


def test_words_describe_the_last_merge():
    shown = MergeTree([1.32, 0.0, 2.07, -1.0], np.array([[1.0], [2.0], [3.0], [4.0]]), cuts=(2,), order="balanced")
    l_a, l_b = 1 + np.exp(-1.32), 1 + np.exp(-3.07)
    l, O_acc = np.exp(-0.75) * l_a + l_b, np.exp(-0.75) * (1 + 2 * np.exp(-1.32)) + 3 + 4 * np.exp(-3.07)
    assert shown.result["words"].split("\n") == [
        "Merge 1, of a = x[0:2] and b = x[2:4]:",
        "m = max(1.320, 2.070) = 2.070",
        "alpha_a = exp(1.320 − 2.070) = 0.4724",
        "alpha_b = exp(2.070 − 2.070) = 1",
        f"l = 0.4724 · {l_a:.3f} + 1 · {l_b:.3f} = {l:.3f}",
        f"O_acc = {O_acc:.3f}, likewise",
        f"O = O_acc / l = {O_acc / l:.3f}",
    ]
    assert "exp(−2 − (−1))" in MergeTree([-2, -1], cuts=(1,), order="balanced").result["words"]


def test_every_node_is_described():
    shown = MergeTree(cuts=(4,))
    shown.moves = [[], [0, 2]]
    leaf, other, identity, merged = shown.result["accounts"]
    assert leaf.split("\n")[1] == "m = 2.200"
    assert f"O_acc = ({number(rows(shown)[1, 2])}, {number(rows(shown)[1, 3])})" in other
    assert identity.split("\n")[1:] == ["m = −∞", "l = 0", "O_acc = 0"]
    assert merged == shown.result["words"]
    shown.moves = []
    assert "2 parts" in shown.result["words"]


def test_it_opens_with_one_merge_done_and_one_left():
    assert MergeTree().moves == MergeTree(cuts=(2, 5)).moves == [[0, 1]]
    assert MergeTree(cuts=(4,)).moves == MergeTree(cuts=()).moves == MergeTree(moves=()).moves == []
    assert MergeTree(moves=[[1, 2], []]).moves == [[1, 2], []]
    assert MergeTree(order="balanced").moves == [[0, 1], [2, 3], [4, 5]]
    assert MergeTree(moves=[[0, 9]]).problem.startswith("a move is [0, 9]")


def test_cutting_starts_over_by_hand_and_keeps_an_order():
    shown = MergeTree()
    shown.moves = [[], [0, 1]]
    shown.cuts = [3]
    assert shown.moves == [[]]  # the identity stays
    shown.order = "left to right"
    shown.cuts = [3, 5]
    assert (shown.order, shown.moves) == ("left to right", [[], [0, 1], [4, 2], [5, 3]])
    shown.moves = shown.moves[:-1]  # undo
    assert shown.order == ""
    shown.cuts = []
    shown.moves = []
    assert repr(shown) == "MergeTree(N=8, d=2, cuts=[]: 0 merges, m = 2.200, l = 2.572)"
    assert shown.result["differences"]["l"] == 0


def test_the_page_gets_one_result_for_each_request():
    shown, seen = MergeTree(), []
    shown.observe(lambda change: seen.append(change.new), names="result")
    for settings in ({"cuts": [1, 5]}, {"moves": [[0, 2]]}, {"order": "random order"}, {"order": "balanced"}):
        shown.set_state(settings)
        assert seen.pop() is shown.result
        assert seen == []
        assert shown.refused == ""


def test_each_press_of_random_order_tries_a_tree_that_was_not_tried():
    shown = MergeTree(cuts=(2, 4, 6))
    for count in range(1, 16):  # four leaves can be merged in 15 different ways
        shown.order = "random order"
        assert shown.result["count"] == count
    shown.order = "random order"
    assert shown.result["count"] == 15
    again = MergeTree(cuts=(2, 4, 6), order=shown.order)
    assert again.moves == shown.moves
    shown.order = "left to right"  # one of them, which is now the newest
    assert (shown.result["count"], shown.result["tried"][0][0]) == (15, "left to right")
    assert 0 < shown.result["spread"] < 1e-14


def test_left_and_right_may_be_swapped():
    shown = MergeTree(cuts=(4,))
    shown.moves = [[0, 1]]
    swapped = MergeTree(cuts=(4,))
    swapped.moves = [[1, 0]]
    assert np.array_equal(rows(shown)[2, :6], rows(swapped)[2, :6])
    shown.moves = [[1, 0]]
    assert shown.result["count"] == 1  # the same tree


def test_no_card_lies_on_another_or_on_an_edge():
    """A card is narrower than a column; an edge runs down the column of the child to the level of its parent."""
    orders = ["left to right", "balanced", *(f"random order {seed}" for seed in range(100))]
    for order in orders:
        nodes = MergeTree(cuts=range_of(1, 8), order=order).result["nodes"]
        ends = {child: level for *_, children, (_, level) in nodes for child in children}
        places = [place for *_, place in nodes]
        for k, (column, level) in enumerate(places):
            assert 0 <= column <= 7
            for n, (other, top) in enumerate(places):
                if n != k and top == level:
                    assert abs(column - other) > 0.999
                if top < level < ends.get(n, 0):
                    assert abs(column - other) > 0.499


def range_of(start, stop):
    return list(range(start, stop))


def test_inputs_are_not_kept(rng):
    x, V = rng.normal(size=6), rng.normal(size=(6, 2))
    shown = MergeTree(x, V, cuts=[3])
    before = shown.result["buffer"]
    x[:], V[:] = 0, 0
    shown.moves = [[0, 1]]
    shown.moves = []
    assert shown.result["buffer"].startswith(before[:-8])


@pytest.mark.filterwarnings("error")
def test_extremes_raise_no_warning():
    x = [1.7e308, -1.7e308, -INF, 0, 5e-324, -INF]
    shown = MergeTree(x, np.full((6, 1), 1e100), cuts=range_of(1, 6), order="random order")
    assert rows(shown)[-1, :2].tolist() == [1.7e308, 1]
    shown.figure().png()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(x=3), "x is 3; pass a list or a NumPy array.*2 to 16 numbers"),
        (dict(x=[1.0]), r"x has shape \(1,\); accepted are 2 to 16"),
        (dict(x=np.ones(17)), r"x has shape \(17,\)"),
        (dict(x=[[1.0, 2.0]]), r"x has shape \(1, 2\)"),
        (dict(x=[[1.0], [2.0, 3.0]]), "x has rows that differ in length"),
        (dict(x=[1.0, "two"]), "x has 'two' in it, which is not an fp64 number"),
        (dict(x=[1, 10**400]), "x has a number too large in it"),
        (dict(x=[True, False]), "x has True in it"),
        (dict(x=[1.0, np.nan]), "x has nan in it; accepted are 2 to 16 numbers, finite or -inf"),
        (dict(x=[1.0, np.inf]), "x has inf in it"),
        (dict(V=[1.0] * 8), r"V has shape \(8,\); expected \(8, d\) with d from 1 to 4"),
        (dict(V=np.ones((8, 5))), r"V has shape \(8, 5\)"),
        (dict(x=[1, 2, 3], V=np.ones((2, 1))), r"V has shape \(2, 1\); expected \(3, d\)"),
        (dict(V=np.full((8, 1), -INF)), "V has -inf in it; accepted are numbers from -1e[+]100"),
        (dict(cuts=4), "cuts is 4; pass a list or a tuple.*from 1 to 7"),
        (dict(cuts=(0,)), "cuts has 0 in it; accepted are whole numbers from 1 to 7"),
        (dict(cuts=(8,)), "cuts has 8 in it"),
        (dict(cuts=(2.5,)), "cuts has 2.5 in it"),
        (dict(cuts=(True,)), "cuts has True in it"),
        (dict(cuts=(3, 3)), r"cuts is \(3, 3\); .*each once"),
        (dict(x=np.ones(16), cuts=range_of(1, 16)), "16 leaves; 10 can be drawn: join two parts"),
        (dict(order="up"), "order is 'up'; accepted are 'left to right', 'balanced', 'random order'"),
        (dict(order=3), "order is 3"),
    ],
    ids=str,
)
def test_a_sentence_in_its_place_says_what_cannot_be_shown(arguments, words):
    shown = MergeTree(**arguments)
    with pytest.raises(AssertionError, match=words):  # shows the sentence if it does not match
        raise AssertionError(shown.problem)
    assert shown.problem.endswith(".")
    assert repr(shown) == f"MergeTree({shown.problem})"
    assert "image/png" not in shown._repr_mimebundle_()[0]


def test_a_refused_request_changes_nothing():
    shown = MergeTree(cuts=range_of(1, 8))
    assert "cuts has 0 in it" in refusal(shown, cuts=[0])
    assert "two nodes without a parent" in refusal(shown, moves=[[0, 0]])
    assert "a move is [0, 99]" in refusal(shown, moves=[[0, 99]])
    assert "a move is [0, 2], but free are [2, 3" in refusal(shown, moves=[[0, 1], [0, 2]])
    for move in ([1], [0, 1, 2], ["0", 1], [0.0, 1], 3, None):
        assert "a move is" in refusal(shown, moves=[move])
    assert "order is 'down'" in refusal(shown, order="down")
    assert f"{MAX_LEAVES} can be drawn" in refusal(shown, moves=[[]] * 3)
    again, seen = shown.refused, []
    shown.observe(lambda change: seen.append(change.new), names="refused")
    assert refusal(shown, moves=[[]] * 3) == again
    assert seen == ["", again]  # the same sentence counts as a new answer
    shown.set_state({"moves": [[]] * 2})
    assert shown.refused == ""


def test_repr():
    assert repr(MergeTree()) == "MergeTree(N=8, d=2, cuts=[2, 4, 6]: 1 merge, 3 nodes left)"
    assert repr(MergeTree([1, 2], cuts=(1,), order="balanced")).endswith("1 merge, m = 2, l = 1.368)")


def test_picture_for_viewers_without_a_kernel(rng):
    x, V = inputs(rng, 16, 4)
    bundle = lambda **settings: MergeTree(x, V, **settings)._repr_mimebundle_()[0]  # noqa: E731
    for settings in (dict(), dict(cuts=range_of(1, 10), order="left to right")):
        data = bundle(**settings)
        png = base64.b64decode(data["image/png"])
        assert png.startswith(b"\x89PNG")
        assert len(png) < 60_000
        assert data["image/png"] == bundle(**settings)["image/png"]
        assert data["text/plain"] == repr(MergeTree(x, V, **settings))
    plain, merged = MergeTree(), MergeTree(order="left to right")
    assert text_of(plain) - text_of(merged) == {
        "The State of each part of the row, merged into that of the whole, here from left to right"
    }
    merged.plain_mean = True
    assert any("The plain mean of the outputs is wrong by" in words for words in text_of(merged))


def text_of(shown):
    return set(shown.figure().texts)
