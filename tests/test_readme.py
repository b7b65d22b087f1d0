"""The speed tables of the README are the recorded runs'."""

import pytest

from tools import speed_table


def test_the_speed_tables_are_the_recorded_runs():
    readme = speed_table.README.read_text(encoding="utf-8")
    assert speed_table.updated(readme, speed_table.recorded()) == readme, "run python tools/speed_table.py"


def test_a_readme_without_its_place_is_refused():
    with pytest.raises(ValueError, match="the README has no lines"):
        speed_table.updated("# Title\n", {})
