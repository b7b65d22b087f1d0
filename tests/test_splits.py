"""How keys are split: in the model no number of parts costs less, and a few heads fill a GPU."""

import pytest

from flashlib import splits

SMS = 132


@pytest.mark.parametrize("places", [1, 2])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("tiles, heads", [(512, 8), (512, 128), (7, 1), (2048, 100), (1, 3), (331, 1000)])
def test_no_number_of_parts_costs_less(tiles, heads, places, ragged):
    asked = {"places": places, "ragged": ragged}
    costs = {n: splits.cost(n, tiles, heads, SMS, **asked) for n in range(1, tiles + 1)}
    assert costs[splits.chosen(tiles, heads, SMS, **asked)] == min(costs.values())


def test_a_few_heads_get_a_program_for_each_place_and_many_heads_no_more_than_they_need():
    assert splits.chosen(512, 1, SMS) in range(100, SMS + 1)
    assert [splits.chosen(512, heads, SMS) for heads in (4, 33, 66, 132)] == [32, 4, 2, 1]
    assert [splits.chosen(512, heads, SMS, places=2) for heads in (8, 32, 64)] == [32, 8, 4]
    assert [splits.chosen(tiles, 1, SMS) for tiles in (1, 2, 5)] == [1, 1, 3], "two tiles come together"
    assert splits.cost(128, 512, 1, SMS) < splits.cost(132, 512, 1, SMS), "four tiles either way, and more States"


def test_long_parts_cost_more_where_lengths_are_not_known():
    """A long sequence has more parts than others, and one of them may start late, so parts are shorter."""
    same, ragged = (splits.chosen(436, 128, SMS, places=2, ragged=ragged) for ragged in (False, True))
    assert same == 2 and ragged > 2 * same


@pytest.mark.parametrize(
    "rows, D_V, programs", [(1, 16, 1), (1, 128, 4), (32, 128, 128), (33, 128, 132), (67, 64, 67)]
)
def test_few_rows_are_merged_by_several_programs_each(rows, D_V, programs):
    cols = splits.columns(rows, D_V, SMS)
    assert rows * D_V // cols == programs and splits.states_at_once(cols) * cols == splits.NUMBERS


def test_a_full_cache_that_is_one_part_saves_the_launch_of_the_merge():
    for n in (1, 2):
        told, not_told = (splits.cost(n, 32, 16, 132, places=2, full=full) for full in (True, False))
        assert told - not_told == pytest.approx(splits.SECOND * (n > 1))
    waves = splits.cost(1, 64, 512, 132, places=2, full=True)  # four, of which the last is not full
    assert waves > 4 * 64 and splits.chosen(64, 512, 132, places=2, full=True) == 1
