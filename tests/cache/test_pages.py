"""The allocator of pages: what is shared, kept and evicted, and whether `check` finds damage."""

import copy

import numpy as np
import pytest

from flashlib.cache import OutOfPages, Pages
from tests.cache.paged import computed, evict, prompt


@pytest.mark.parametrize("page", [1, 4, 16])
@pytest.mark.parametrize("N", [1, 3, 16, 17, 61])
def test_a_second_sequence_of_the_same_tokens_shares_all_full_pages_but_the_last_token(N, page, rng):
    pages, tokens = Pages(200, page), prompt(rng, N)
    first, n = computed(pages, tokens)
    assert n == 0 and pages.used == -(-N // page)
    second, n = computed(pages, tokens)
    assert n == (N - 1) // page * page
    assert pages.used == 2 * -(-N // page) - n // page
    a, b = pages.table([first, second])
    same = n // page
    assert (a[:same] == b[:same]).all() and not set(a[same:]) & set(b[same:])
    pages.check()


@pytest.mark.parametrize("page", [1, 4])
def test_equal_tokens_after_different_beginnings_are_not_shared(page):
    x, y, z = ([token] * page for token in (1, 2, 3))
    pages = Pages(50, page)
    computed(pages, x + y + z)
    for tokens, n in ((x + y, 2), (x + z + y, 1), (z + y, 0), (y + z, 0), (y + x, 0), (x + y + z + z, 3)):
        assert known(pages, [*tokens, 9]) == n * page, tokens
    pages.check()


def test_tokens_without_ids_and_all_after_them_are_not_shared():
    pages = Pages(50, 4)
    sequence, _ = pages.start()
    pages.append(sequence, 4)
    pages.append(sequence, [1] * 8)
    for tokens in ([1] * 5, [0] * 5):
        assert pages.start(tokens)[1] == 0
    pages.free(sequence)
    assert pages.kept == 0 and pages.free_pages == 50
    pages.check()


def test_dropped_tokens_are_not_found_again_but_those_of_others_are(rng):
    tokens = prompt(rng, 21)
    alone, shared = Pages(50, 4), Pages(50, 4)
    for pages in (alone, shared):
        first, _ = computed(pages, tokens)
    second = shared.fork(first)
    for pages in (alone, shared):
        pages.drop(first, 6)  # its fourth page has 3 tokens now
        pages.check()
    assert known(alone, tokens) == 12 and known(shared, tokens) == 20 and alone.kept == 0
    shared.append(first, [5])
    other = [*tokens[:15], 5]
    assert known(shared, tokens) == 20 and known(shared, [*other, 0]) == 16
    shared.free(second)
    shared.drop(first, 3)
    assert known(shared, tokens) == 20 and known(shared, [*other, 0]) == 12
    shared.free(first)
    assert known(shared, tokens) == 20 and shared.kept == 5
    shared.check()


def known(pages, tokens):
    """Return how many of these tokens are known, without a trace in the cache."""
    return copy.deepcopy(pages).start(tokens)[1]


@pytest.mark.parametrize("used_again", [False, True])
def test_the_least_recently_used_page_is_evicted_first_and_ends_before_beginnings(used_again, rng):
    pages = Pages(8, 4)
    first, second = prompt(rng, 16), prompt(rng, 16)
    for tokens in (first, second):
        pages.free(computed(pages, tokens)[0])
    if used_again:
        pages.free(pages.start([*first, 0])[0])
        first, second = second, first
    assert pages.kept == 8 and pages.free_pages == 0
    other, _ = pages.start()
    for taken in range(1, 9):
        pages.append(other, 4)
        left = 4 * min(4, max(0, 4 - taken)), 4 * min(4, 8 - taken)
        assert (known(pages, [*first, 0]), known(pages, [*second, 0])) == left
        pages.check()
    assert pages.used == 8


def test_each_content_is_kept_once(rng):
    pages, tokens = Pages(50, 4), prompt(rng, 12)
    for _ in range(3):
        pages.free(computed(pages, tokens)[0])  # the last page is computed again each time
        assert pages.kept == 3 and pages.used == 0
        pages.check()


def test_a_content_that_two_computed_is_found_while_one_of_them_lives(rng):
    pages, tokens = Pages(50, 4), prompt(rng, 9)
    first, second = (pages.start()[0] for _ in range(2))
    for sequence in (first, second):
        pages.append(sequence, tokens)
    pages.free(first)
    evict(pages, pages.kept)
    assert known(pages, tokens) == 8 and pages.used == 3
    pages.check()


@pytest.mark.parametrize("kind", [list, tuple, np.array, "torch"])
def test_tokens_may_be_any_kind_of_list_of_ids(kind):
    if kind == "torch":
        kind = pytest.importorskip("torch").tensor
    pages = Pages(9, 2)
    computed(pages, [3, 1, 4, 1, 5])
    assert known(pages, kind([3, 1, 4, 1, 5])) == 4


def test_out_of_pages_says_how_many_and_a_sequence_goes_on_afterwards(rng):
    pages = Pages(5, 4)
    pages.free(computed(pages, prompt(rng, 4))[0])
    sequence, _ = computed(pages, prompt(rng, 9))
    before = copy.deepcopy(vars(pages))
    for tokens in (12, 10**15, [1] * 12):
        with pytest.raises(OutOfPages, match=r"need \d+ pages; of 5, 1 are free, and 1 more"):
            pages.append(sequence, tokens)
        assert vars(pages) == before
    pages.append(sequence, 11)
    assert pages.used == 5 and pages.waste == 0
    pages.check()


def test_a_sequence_number_is_never_reused():
    pages = Pages(3, 2)
    made = []
    for _ in range(5):
        made += [pages.start()[0], pages.fork(pages.start()[0])]
        pages.free(made[-1])
    assert len(set(made)) == 10


BREAKS = {
    "a page is lost": lambda p: p._free.pop(),
    "a page is free twice": lambda p: p._free.append(p._free[0]),
    "owned and free": lambda p: p._free.append(p._sequences[0].pages[0]),
    "owned and kept": lambda p: p._kept.update({p._sequences[0].pages[0]: None}),
    "an owner too many": lambda p: p._owners.__setitem__(p._sequences[0].pages[0], 5),
    "a page too many": lambda p: p._sequences[0].pages.append(p._free.pop()),
    "a token too many": lambda p: p._sequences[0].tokens.extend([1] * 4),
    "written though shared": lambda p: p._sequences[1].tokens.__setitem__(9, 10**6),
    "full page changed": lambda p: p._sequences[0].tokens.__setitem__(2, 10**6),
    "index of another page": lambda p: next(iter(p._index.values())).add(p._free[0]),
    "content without index": lambda p: p._index.popitem(),
    "free page with content": lambda p: p._content.update({p._free[0]: b""}),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_check_finds_what_is_broken(broken, rng):
    pages = Pages(20, 4)
    first, _ = computed(pages, prompt(rng, 10))
    pages.fork(first)
    pages.free(computed(pages, prompt(rng, 6))[0])
    pages.check()
    BREAKS[broken](pages)
    with pytest.raises(AssertionError, match=r"\w+ \w+ \w+"):
        pages.check()
