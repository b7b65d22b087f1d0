"""Shared by the tests of the paged cache: sizes, all of its state, and prompts."""

import copy

import numpy as np

LAYERS, H_K, D, D_V = 2, 3, 5, 2


def plain(X):
    return X if isinstance(X, np.ndarray) else X.cpu().numpy()


def state(pages):
    """Return all that an operation can change, to be compared with ==."""
    numbers = {name: plain(X).tobytes() for name, X in vars(pages).items() if name in ("K", "V")}
    return numbers, copy.deepcopy({name: x for name, x in vars(pages).items() if name not in ("K", "V")})


def prompt(rng, n):
    return rng.integers(1000, size=n).tolist()


def computed(pages, tokens):
    """Return a new sequence that has all these tokens, and how many of them were known."""
    sequence, known = pages.start(tokens)
    pages.append(sequence, tokens[known:])
    return sequence, known


def evict(pages, n):
    """Free n kept pages: tokens without ids take these and all free ones, and return them."""
    sequence, _ = pages.start()
    pages.append(sequence, (pages.free_pages + n) * pages.page)
    pages.free(sequence)
