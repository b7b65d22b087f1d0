"""The speed table of the README is the recorded run's."""

import json

import pytest

from tools import speed_table


def test_the_speed_table_is_the_recorded_run():
    readme = speed_table.README.read_text(encoding="utf-8")
    record = json.loads(speed_table.RECORD.read_text(encoding="utf-8"))
    assert speed_table.updated(readme, record) == readme, "run python tools/speed_table.py"


def test_a_readme_without_its_place_is_refused():
    with pytest.raises(ValueError, match="the README has no lines"):
        speed_table.updated("# Title\n", {})
