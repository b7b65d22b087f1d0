"""An allocator as required by the exercise `pages`, which reports less than `Pages`."""

from typing import Any

import numpy as np


def as_played(allocator: Any) -> Any:
    """Return an allocator's class in PagesLab's form: itself if it has `lengths`, which the exercise's lacks.

    The exercise's append takes a count and returns slots and what was copied, and its table takes one sequence.
    """
    if not isinstance(allocator, type) or hasattr(allocator, "lengths") or not hasattr(allocator, "table"):
        return allocator

    class Played:
        def __init__(self, n_pages, page):
            self.own, self.counted = allocator(n_pages, page), []  # pairs: a sequence, and its tokens

        def start(self):
            return self._counted(self.own.start(), 0)

        def append(self, sequence, tokens):
            n = tokens if isinstance(tokens, int) else len(tokens)
            slots, _ = self.own.append(sequence, n)
            self._counted(sequence, self._length(sequence) + n)
            return slots

        def free(self, sequence):
            self.own.free(sequence)

        def table(self, sequences):
            return np.array([self.own.table(sequence) for sequence in sequences])

        def lengths(self, sequences):
            return np.array([self._length(sequence) for sequence in sequences])

        def _counted(self, sequence, n):
            self.counted = [(other, N) for other, N in self.counted if other != sequence] + [(sequence, n)]
            return sequence

        def _length(self, sequence):
            return next(N for other, N in self.counted if other == sequence)

    if hasattr(allocator, "fork"):
        Played.fork = lambda self, sequence: self._counted(self.own.fork(sequence), self._length(sequence))  # type: ignore[attr-defined]
    Played.__name__ = allocator.__name__
    return Played
