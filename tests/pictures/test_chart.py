"""A small chart: numbers at their pixels, and the words of its axes around the place, never in it."""

import pytest

from flashlib.pictures.canvas import Picture
from flashlib.pictures.chart import Chart
from tests.pictures.places import Places

PLACE = 60, 40, 200, 90  # left, top, width, height


@pytest.fixture
def drawn(monkeypatch):
    """What is drawn of the axes of a chart, with the words by what they say."""
    places = Places(monkeypatch)
    chart = Chart(Picture(320, 190, "a chart"), PLACE, (2, 10), (0, 4))
    chart.axes("title", {2: "first", 10: "last"}, {0: "low", 4: "high"}, "name")
    assert (places.outside(), places.overlapping()) == ([], [])
    return chart, {text: (left, top, right, bottom) for left, top, right, bottom, text in places.words}


def test_words_stay_on_their_side_of_the_axes(drawn):
    left, top, width, height = PLACE
    _, words = drawn
    assert words["title"][3] <= top and words["title"][0] == left
    for text in ("first", "last", "name"):
        assert words[text][1] >= top + height
    assert words["name"][1] >= words["first"][3]
    for text in ("low", "high"):
        assert words[text][2] <= left


def test_a_tick_is_at_its_number(drawn):
    chart, words = drawn
    for text, x in (("first", 2), ("last", 10)):
        assert (words[text][0] + words[text][2]) / 2 == pytest.approx(chart.at(x, 0)[0])
    for text, y in (("low", 0), ("high", 4)):
        assert (words[text][1] + words[text][3]) / 2 == pytest.approx(chart.at(0, y)[1])


def test_positions_are_proportional_and_larger_numbers_are_higher():
    chart = Chart(None, PLACE, (2, 10), (0, 4))
    left, top, width, height = PLACE
    assert chart.at(2, 0) == (left, top + height) and chart.at(10, 4) == (left + width, top)
    assert chart.at(4, 1) == (left + width / 4, top + height * 3 / 4)
    assert chart.bar(6, 1, 3, wide=2) == (left + width * 3 / 8, top + height / 4, width / 4, height / 2)
