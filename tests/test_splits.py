"""How keys are split: no number of parts costs less by the model, and a few heads occupy a GPU."""

import pytest

from flashlib import splits

SMS = 132


@pytest.mark.parametrize("tiles, heads", [(512, 8), (512, 128), (7, 1), (2048, 100), (1, 3), (331, 1000)])
def test_no_number_of_parts_costs_less(tiles, heads):
    costs = {n: splits.cost(n, tiles, heads, SMS) for n in range(1, tiles + 1)}
    assert costs[splits.chosen(tiles, heads, SMS)] == min(costs.values())


def test_a_few_heads_get_a_program_for_each_multiprocessor_and_many_heads_no_more_than_they_need():
    assert splits.chosen(512, 1, SMS) in range(100, SMS + 1)
    assert [splits.chosen(512, heads, SMS) for heads in (4, 33, 66, 132)] == [32, 4, 2, 1]
    assert [splits.chosen(tiles, 1, SMS) for tiles in (1, 2, 5)] == [1, 2, 5], "no part without a tile"
    assert splits.cost(128, 512, 1, SMS) < splits.cost(132, 512, 1, SMS), "four tiles either way, and more States"
    assert splits.chosen(512, 132, SMS, ragged=True) >= 2 and splits.chosen(1, 132, SMS, ragged=True) == 1
