"""Benchmarks are tested without a GPU, with times from a made-up clock."""

from importlib.util import find_spec

import pytest

from tests.kernels.conftest import device, own_compiler  # noqa: F401, fixtures

collect_ignore_glob = [] if find_spec("triton") else ["test_*"]  # no packages for macOS and Windows


@pytest.fixture
def clock(monkeypatch):
    """A clock for the ladders: the first call takes 2 ms, each later one a tick less."""
    from flashlib.bench.common import harness

    times = iter(2 - i / 200 for i in range(200))
    monkeypatch.setattr(harness, "median_ms", lambda run, rep_ms: next(times))
