"""A tensor core that multiplies numbers of eight bits: it rounds what it is given, or leaves causes of error out.

An attention written with it shows where its error comes from: run it with one cause at a time.
"""

from collections.abc import Collection

import numpy as np

from flashlib.inputs import check_floating
from flashlib.lowbit import sums
from flashlib.lowbit.formats import FORMATS, check_format, rounded
from flashlib.lowbit.recipe import CAUSES
from flashlib.lowbit.scales import quantised

EIGHT = [name for name, format in FORMATS.items() if format.bits == 8]
BEYOND = 1 + 1e-6  # times the largest number of a format: what is larger saturates


class TensorCore:
    """Multiplies in eight bits. Numbers beyond the largest of a format become the largest, without a word.

    causes: those of CAUSES that make errors, by default all; the others are exact.
    multiplied: the products so far, of two numbers each, by the name of the method. saturated: {what: the largest
    share of an operand that was beyond its format}. largest: {what: the largest number, in size, that was given}.
    stored_numbers: how many numbers were stored.
    """

    def __init__(self, causes: Collection[str] = tuple(CAUSES)) -> None:
        if unknown := set(causes) - CAUSES.keys():
            raise ValueError(f"causes has {min(unknown)!r}; accepted are {', '.join(map(repr, CAUSES))}")
        self.causes = frozenset(causes)
        self.multiplied = {"scores": 0, "values": 0}
        self.saturated: dict[str, float] = {}
        self.largest: dict[str, float] = {}
        self.formats: set[str] = set()
        self.stored_numbers = 0

    def __repr__(self) -> str:
        which = ", ".join(repr(cause) for cause in CAUSES if cause in self.causes)
        return f"TensorCore({'' if self.causes == CAUSES.keys() else f'{{{which}}}' if which else '()'})"

    def scores(self, Q: np.ndarray, K: np.ndarray, format: str) -> np.ndarray:
        """Return Q K^T of numbers rounded to a format: "e4m3", whose sums keep 13 bits, or "int8", exact sums.

        Q: (M, d); K: (n, d). No scale is applied.
        """
        check_floating(Q=Q, K=K)
        Q, K = (self._rounded(X, format, "inputs", name) for X, name in ((Q, "Q"), (K, "K")))
        self.formats.add(format)
        self._count("scores", Q, K.T)
        short = "S" in self.causes and format != "int8"
        return sums.product(Q, K.T).astype(Q.dtype) if short else Q @ K.T

    def values(self, P: np.ndarray, V: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """Return start + P V of numbers rounded to e4m3, in a sum of 13 bits; without `start` it begins at 0.

        P: (M, n); V: (n, d); start: (M, d).
        """
        check_floating(P=P, V=V)
        P, V = self._rounded(P, "e4m3", "P", "P"), self._rounded(V, "e4m3", "V", "V")
        self._count("values", P, V)
        if "sums" not in self.causes:
            return P @ V if start is None else start + P @ V
        return sums.product(P, V, start=start).astype(V.dtype)

    def stored(self, O: np.ndarray, format: str) -> np.ndarray:
        """Return O as it is written: in "bf16", or in eight bits with a scale for the tensor."""
        check_floating(O=O)
        bits = check_format("format", format).bits
        self.stored_numbers += O.size
        if "O" not in self.causes:
            return O
        return rounded(O, format) if bits > 8 else quantised(O, format, share="tensor").X

    def _rounded(self, X, format, cause, name):
        if check_format("format", format).bits != 8:
            raise ValueError(f"format is {format!r}; the core multiplies {', '.join(map(repr, EIGHT))}")
        beyond = float((np.abs(X) > FORMATS[format].largest * BEYOND).mean()) if X.size else 0.0
        self.saturated[name] = max(beyond, self.saturated.get(name, 0.0))
        self.largest[name] = max(float(np.abs(X).max(initial=0)), self.largest.get(name, 0.0))
        return rounded(X, format) if cause in self.causes else X

    def _count(self, name, A, B):
        self.multiplied[name] += A.shape[0] * A.shape[1] * B.shape[1]
