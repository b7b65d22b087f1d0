"""Which cells run before a cell, whatever a reader ran before."""

import ast

import pytest

from web.live.inside import needs
from web.live.inside.order import Order


class Reader:
    """Runs cells as the kernel of a page does."""

    def __init__(self, *sources):
        self.sources, self.space, self.ran = list(sources), {}, []
        self.order = Order(needs.all_names(sources))

    def run(self, number):
        """Return the value of the cell's last line, and the cells that ran for it."""
        self.ran = []
        for k in [*self.order.before(number), number]:
            tree = ast.parse(self.sources[k])
            last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "<cell>", "exec"), self.space)
            value = last and eval(compile(last, "<cell>", "eval"), self.space)
            self.order.ran(k)
            self.ran.append(k)
        return value

    def write(self, number, source):
        self.sources[number] = source
        self.order.change(number, *needs.all_names([source]))


def test_only_needed_cells_run_and_only_once():
    reader = Reader("x = 1", "y = 2", "z = x + 1", "z")
    assert (reader.run(3), reader.ran) == (2, [0, 2, 3])
    assert (reader.run(3), reader.ran) == (2, [3])
    assert (reader.run(1), reader.ran) == (None, [1])


def test_drawing_with_torch_changes_its_generator():
    seed, own, other, draw = needs.all_names(
        [
            "torch.manual_seed(0)",
            "g = Generator()\nx = torch.rand(3)",
            "torch.randn(3, generator=g)",
            "torch.randn(3)",
        ],
        {"torch"},
    )
    assert seed.given == {needs.TORCH} and other.changed == {"g"} and needs.TORCH not in other.taken
    assert own.changed == draw.changed == {needs.TORCH}
    assert needs.needed([seed, own, other, draw], 3) == {0, 1}
    assert needs.needed([seed, own, other, draw], 2) == {0, 1}


def test_in_order_nothing_runs_again():
    reader = Reader("x = [1]", "x.append(2)", "y = sum(x)", "x = 5", "x + y")
    for k in range(5):
        reader.run(k)
        assert reader.ran == [k]


@pytest.mark.parametrize("before", [[2, 4], [4, 4], [4, 2, 4], [3], []])
def test_a_cell_sees_the_values_that_the_cells_above_it_leave(before):
    reader = Reader("x = [1]", "x.append(2)", "len(x)", "x = [7, 8, 9]", "len(x)")
    for k in before:
        reader.run(k)
    assert reader.run(2) == 2
    assert reader.run(4) == 3
    assert reader.run(2) == 2


def test_a_cell_that_changes_a_value_gives_the_same_each_time():
    reader = Reader("x = 1", "x += 1\nx", "x")
    assert [reader.run(1) for _ in range(3)] == [2, 2, 2]
    assert reader.run(2) == 2


def test_a_cell_that_runs_again_changes_nothing_for_others():
    reader = Reader("m, l = 0, 0", "m = m + 1", "l = l + m\nl", "(m, l)")
    assert [reader.run(k) for k in (2, 2, 3, 1, 2, 3)] == [1, 1, (1, 1), None, 1, (1, 1)]


def test_a_cell_that_was_changed_runs_again_for_those_that_need_it():
    reader = Reader("x = 1", "y = x + 1", "y")
    assert reader.run(2) == 2
    reader.write(0, "x = 10")
    assert (reader.run(2), reader.ran) == (11, [0, 1, 2])
    reader.write(0, "x = 20")
    reader.run(0)
    assert (reader.run(2), reader.ran) == (21, [1, 2])
    reader.write(1, "y = 5")
    assert (reader.run(2), reader.ran) == (5, [1, 2])


def test_a_function_uses_the_values_at_the_time_of_its_call():
    reader = Reader("def f():\n    return a", "a = 1", "f()", "a = 2", "f()")
    assert [reader.run(k) for k in (4, 2, 4)] == [2, 1, 2]


def test_a_method_that_only_reads_changes_nothing():
    reader = Reader("import numpy as np\nx = np.ones(3)", "x.sum()", "x.sum()")
    assert [reader.run(k) for k in (2, 1, 1, 2)] == [3, 3, 3, 3]
    assert reader.ran == [2]
