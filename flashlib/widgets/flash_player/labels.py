"""The words that stand for rows: who looks at whom, where Q, K and V are of a sentence."""

from collections.abc import Iterable, Sequence

import numpy as np


def checked(words: Iterable[str] | None, inputs: Sequence[np.ndarray]) -> list[str] | None:
    """Return the words as a list, None for none; raise TypeError or ValueError if they do not fit to Q and K.

    There is one for each row of K, and the last N_q of them are those of Q. inputs: Q, K, V; empty if random.
    """
    if words is None:
        return None
    if isinstance(words, str):
        raise TypeError(f"words is the text {words!r:.40}; pass a list, e.g. words.split()")
    words = list(words)
    if not inputs:
        raise TypeError("words are given without Q, K and V; pass these too, since random ones have no words")
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"words contains {word!r:.40}, of type {type(word).__name__}; each word is a str")
    N_q, N_k = len(inputs[0]), len(inputs[1])
    if len(words) != N_k:
        raise ValueError(f"words has length {len(words)}, and K has {N_k} rows; pass one word for each row of K")
    if N_q > N_k:
        raise ValueError(
            f"Q has {N_q} rows and K has {N_k}; with words, Q may not have more rows than K, "
            "since its rows are the last of the words"
        )
    return words
