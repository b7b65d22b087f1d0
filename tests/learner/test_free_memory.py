"""Free memory is that of the machine or, if it is less, that of the container."""

import os

import pytest

from flashlib.learner.free_memory import CONTAINER, free_bytes

GB = 2**30
MEMINFO = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"


@pytest.fixture
def root(tmp_path):
    """A folder with the files of a machine that has 8 GB left."""
    write(tmp_path / "proc/meminfo", MEMINFO)
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_on_a_machine_it_is_what_programs_can_still_get(root):
    assert free_bytes(root) == 8 * GB


@pytest.mark.parametrize("files", CONTAINER)
@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [(2 * GB, GB // 2, 3 * GB // 2), (64 * GB, 0, 8 * GB), ("max", 0, 8 * GB), (5, 9, 0)],
)
def test_in_a_container_its_limit_counts_if_it_leaves_less(root, files, limit, used, free):
    for name, text in zip(files, (limit, used), strict=True):
        write(root / name, f"{text}\n")
    assert free_bytes(root) == free


def test_without_proc_a_quarter_of_the_memory_counts_as_free(tmp_path, monkeypatch):
    machine = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", lambda name: machine[name], raising=False)
    assert free_bytes(tmp_path) == 1000 * 4096 // 4


def test_a_system_that_does_not_say_counts_as_full(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert free_bytes(tmp_path) == 0
