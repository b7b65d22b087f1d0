"""Loads, stores and atomic operations of the stand-in for Triton's C++ part do what Triton's own do.

The same bytes lie in an array, whose real addresses Triton's own takes, and in storages of a page's memory.
"""

import gc

import numpy as np
import pytest

from web.live import beside

libtriton = pytest.importorskip("triton._C.libtriton")
page_memory, page_libtriton = beside.loaded("page_memory"), beside.loaded("page_libtriton")

TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
SIZES = 512, 96, 64  # bytes of the storages


class Twice:
    """Some bytes twice: for Triton's own functions, and for those of a page."""

    def __init__(self, rng):
        self.own = [rng.integers(0, 2, size, dtype=np.uint8) for size in SIZES]
        self.page = [page_memory.Storage(held.copy()) for held in self.own]

    def addresses(self, rng, shape, item, aligned=True):
        """Return the same random places as (real addresses, addresses on a page)."""
        which = rng.integers(0, len(SIZES), shape)
        at = rng.integers(0, np.array(SIZES)[which] // item) * item if aligned else rng.integers(0, 40, shape)
        starts = (
            [held.__array_interface__["data"][0] for held in self.own],
            [storage.start for storage in self.page],
        )
        return [np.array(start, np.uint64)[which] + at.astype(np.uint64) for start in starts]

    def assert_equal(self):
        for held, storage in zip(self.own, self.page, strict=True):
            np.testing.assert_array_equal(held, storage.bytes)


def numbers(rng, shape, kind):
    if np.dtype(kind).kind == "f":
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(0, 2 if kind == "bool" else 100, shape).astype(kind)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (4, 8), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_loads_and_stores(kind, shape, rng):
    twice, item = Twice(rng), np.dtype(kind).itemsize
    for aligned in (True, False) if kind != "bool" else (True,):
        some = np.array(rng.random(shape) < 0.6)
        for mask in (some, some.astype(np.int32), np.ones(shape, bool), np.zeros(shape, bool)):
            own, page = twice.addresses(rng, shape, item, aligned)
            other = numbers(rng, shape, kind)
            loaded = [
                module.load(ptrs, mask, other, np.dtype(kind))
                for module, ptrs in ((libtriton.interpreter, own), (page_libtriton.interpreter, page))
            ]
            assert loaded[0].dtype == loaded[1].dtype and loaded[0].tobytes() == loaded[1].tobytes()
            values = numbers(rng, shape, kind)
            libtriton.interpreter.store(own, values, mask)
            page_libtriton.interpreter.store(page, values, mask)
            twice.assert_equal()


def atomic(module, operation, ptrs, values, mask):
    """Return what lay there before, where the mask is True, or the error."""
    try:
        order = module.MEM_SEMANTIC.RELAXED
        return module.atomic_rmw(getattr(module.RMW_OP, operation), ptrs, values, mask, order)[mask].tolist()
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("operation", page_libtriton.interpreter.RMW_OP.__members__)
@pytest.mark.parametrize("kind", TYPES)
def test_atomic_operations(kind, operation, rng):
    twice, item = Twice(rng), np.dtype(kind).itemsize
    for shape in ((), (5,), (4, 16)):  # of 64 addresses some are the same
        own, page = twice.addresses(rng, shape, item)
        values, mask = numbers(rng, shape, kind), np.array(rng.random(shape) < 0.8)
        before = atomic(libtriton.interpreter, operation, own, values, mask)
        assert atomic(page_libtriton.interpreter, operation, page, values, mask) == before
        twice.assert_equal()


@pytest.mark.parametrize("kind", TYPES)
def test_compare_and_swap(kind, rng):
    twice, item = Twice(rng), np.dtype(kind).itemsize
    for shape in ((1,), (40,)):
        own, page = twice.addresses(rng, shape, item)
        expected = libtriton.interpreter.load(own, np.ones(shape, bool), np.zeros(shape, kind), np.dtype(kind))
        expected = np.where(rng.random(shape) < 0.5, expected, numbers(rng, shape, kind))
        values = numbers(rng, shape, kind)
        before = [
            module.atomic_cas(ptrs, expected.copy(), values, module.MEM_SEMANTIC.RELAXED).tobytes()
            for module, ptrs in ((libtriton.interpreter, own), (page_libtriton.interpreter, page))
        ]
        assert before[0] == before[1]
        twice.assert_equal()


def illegal(does, address, kind="float32"):
    """Return the sentence of the error of a load or a store at an address."""
    ptrs, mask = np.array([address], np.uint64), np.ones(1, bool)
    with pytest.raises(page_memory.IllegalAddress) as error:
        if does == "load":
            page_libtriton.interpreter.load(ptrs, mask, np.zeros(1, kind), np.dtype(kind))
        else:
            page_libtriton.interpreter.store(ptrs, np.zeros(1, kind), mask)
    return str(error.value)


def test_an_address_where_no_tensor_lies_is_an_error():
    storages = [page_memory.Storage(np.zeros(size, np.uint8)) for size in (64, 32)]
    first, last = storages
    assert illegal("load", first.end) == (
        "the kernel loads 4 bytes at an address where no tensor lies: 0 bytes past the end of a tensor of 64 bytes"
    )
    assert illegal("store", last.start - 8).endswith("8 bytes before the start of a tensor of 32 bytes")
    assert illegal("load", last.end - 2).endswith("2 of them past the end of a tensor of 32 bytes")
    assert "loads 1 byte at" in illegal("load", last.end + 7, "int8")


def test_memory_that_was_given_back_is_no_memory():
    storage = page_memory.Storage(np.zeros(64, np.uint8))
    start = storage.start
    del storage
    gc.collect()
    assert "no tensor lies" in illegal("load", start)


def test_a_mask_hides_an_address_where_no_tensor_lies():
    storage = page_memory.Storage(np.arange(8, dtype=np.uint8))
    ptrs = np.array([storage.start, storage.end + 100], np.uint64)
    mask, other = np.array([True, False]), np.full(2, 9, np.int8)
    found = page_libtriton.interpreter.load(ptrs, mask, other, np.dtype(np.int8))
    assert found.tolist() == [0, 9]


def test_storages_that_are_gone_are_forgotten():
    kept = [page_memory.Storage(np.full(4, k, np.uint8)) for k in range(5)]
    for _ in range(3000):
        page_memory.Storage(np.zeros(4, np.uint8))
    assert len(page_memory._RANGES.starts) < 1000
    starts = np.array([storage.start for storage in kept], np.uint64)
    assert page_memory.read(starts, np.dtype(np.uint8)).tolist() == [0, 1, 2, 3, 4]
