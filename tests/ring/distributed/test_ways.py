"""Every way to attend over ranks computes what one process computes."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
from tests.ring.distributed import on_ranks  # noqa: E402


@pytest.mark.parametrize("amount", ["few", "all"])
def test_every_way_equals_one_process(amount):
    found = on_ranks.run(on_ranks.random_cases, {"few": 8, "all": 150}[amount], 0)
    assert found == ["equal"] * 4
