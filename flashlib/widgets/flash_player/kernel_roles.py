"""Which variables of a kernel's loop are m, l and O_acc: found by what they hold, not by their names."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flashlib.learner.kernels.recording import LoopTurn
from flashlib.softmax import State

LN2 = float(np.log(2))
NAMES = {  # that are usual; where values do not decide, they do
    "m": ("m", "m_i", "m_prev", "row_max", "m_acc", "maximum"),
    "l": ("l", "l_i", "l_prev", "row_sum", "l_acc", "denominator"),
    "O_acc": ("O_acc", "acc", "o_acc", "acc_o", "O", "o"),
}
PLAIN = 0.5  # of the rows of first turns must be right for a variable to be told by its values


class Roles(NamedTuple):
    """The variables that are m, l and O_acc. unit: what m is multiplied by, to be that of scores in base e.

    transposed: whether O_acc is (d, B_r).
    """

    m: str
    l: str
    O_acc: str
    unit: float
    transposed: bool

    def state(self, turn: LoopTurn, n: int, d: int) -> State:
        """Return the State of the first n rows after a turn."""
        m, l = (turn.names[name].reshape(-1)[:n].astype(np.float32) for name in (self.m, self.l))
        return State(m * np.float32(self.unit), l, _matrix(turn.names[self.O_acc], self.transposed, n, d))


class Candidate(NamedTuple):
    """A variable, as what it may be.

    form: the unit of m, or whether O_acc is transposed. wrong: how many rows are not right. first: which part of
    the rows of first turns is.
    """

    name: str
    form: Any
    wrong: int
    first: float


def shapes(turns: Sequence[LoopTurn]) -> dict[str, tuple[int, ...]]:
    """Return {name: shape} of the tiles of floats that a loop holds."""
    return {name: X.shape for name, X in turns[0].names.items() if X.ndim and X.dtype.kind == "f"}


class Unknown(ValueError):
    """It cannot be told which variables are m, l and O_acc. missing: those that are not known."""

    def __init__(self, missing, names):
        super().__init__(missing, names)
        self.missing, self.names = missing, names


def find(
    turns: Sequence[LoopTurn],
    true: Sequence[State],
    B_r: int,
    scale: float,
    tolerance: float,
    given: dict[str, str],
) -> Roles:
    """Return the Roles of the variables of a loop; raise Unknown.

    turns: of one loop. true: the State that each should end with. scale: of scores; m may be that of scores which
    are not scaled, or in base 2. given: names that are known, {role: name}.

    If some variables are right after every turn, these are they. Else the kernel is wrong somewhere: then those
    that a turn leaves to the next are taken, by the usual names, or as they are right in most rows.
    """
    d = true[0].O_acc.shape[1]
    seen = _Variables(turns, B_r, d)
    by_role = {}
    for role, candidates in (("m", seen.vectors), ("l", seen.vectors), ("O_acc", seen.matrices)):
        forms = (1.0, LN2, scale) if role == "m" else (False, True) if role == "O_acc" else (None,)
        names = [given[role]] if role in given else candidates
        tried = [seen.tried(role, name, form, true, tolerance) for name in names for form in forms]
        by_role[role] = [one for one in tried if one]
    missing = [role for role, candidates in by_role.items() if not candidates]
    if missing:
        raise Unknown(missing, seen.shapes)
    m, l = _pair(by_role["m"], by_role["l"], seen.carried, given)
    O_acc = _best("O_acc", by_role["O_acc"], seen.carried)
    missing = [role for role, one in (("m", m), ("l", l), ("O_acc", O_acc)) if one is None and role not in given]
    if m is None or l is None or O_acc is None:
        raise Unknown(missing, seen.shapes)
    return Roles(m.name, l.name, O_acc.name, m.form, O_acc.form)


def _pair(ms, ls, carried, given):
    """Return the candidates for m and l, two variables; or None for both."""
    pairs = [(m, l) for m in ms for l in ls if m.name != l.name]
    right = [(m, l) for m, l in pairs if m.wrong == l.wrong == 0]
    if not right:
        usual = lambda role, one: role in given or one.name in NAMES[role] and one.name in carried  # noqa: E731
        named = [(m, l) for m, l in pairs if usual("m", m) and usual("l", l)]
        plain = [(m, l) for m, l in pairs if max(m.first, l.first) >= PLAIN]
        right = named or plain
    rank = lambda pair: (  # noqa: E731
        pair[0].wrong + pair[1].wrong,
        sum(one.name not in carried for one in pair),
        _rank("m", pair[0].name) + _rank("l", pair[1].name),
    )
    return min(right, key=rank, default=(None, None))


def _best(role, candidates, carried):
    """Return the candidate for a role: of those that a turn leaves to the next, if there are any."""
    kept = [one for one in candidates if one.name in carried] or candidates
    right = [one for one in kept if not one.wrong] or [one for one in kept if one.name in NAMES[role]]
    right = right or ([one for one in kept if one.first >= PLAIN] if len({one.name for one in kept}) > 1 else kept)
    return min(right, key=lambda one: (one.wrong, _rank(role, one.name)), default=None)


def _rank(role, name):
    return NAMES[role].index(name) if name in NAMES[role] else len(NAMES[role])


class _Variables:
    """The variables that all turns of a loop have: those with a number for each row, and with d for each."""

    def __init__(self, turns, B_r, d):
        self.turns, self.B_r, self.d = turns, B_r, d
        self.carried = turns[0].carried
        names = [name for name in turns[0].names if all(name in turn.names for turn in turns)]
        first = {name: turns[0].names[name] for name in names}
        floats = {name: X for name, X in first.items() if X.dtype.kind == "f"}
        self.shapes = shapes(turns)
        vectors = [name for name, X in floats.items() if X.size == B_r and max(X.shape, default=1) == B_r]
        kept = [name for name in vectors if name in self.carried]
        self.vectors = kept if len(kept) > 1 else vectors
        self.matrices = [name for name, X in floats.items() if {0, 1} & {*self._forms(X)}]

    def _forms(self, X):
        """Return how X may be O_acc: as it is, or transposed."""
        shape = X.shape if X.ndim == 2 else (1, *X.shape) if X.ndim == 1 and self.B_r == 1 else (0, 0)
        return [form for form, (n, d) in ((False, shape), (True, shape[::-1])) if n == self.B_r and d >= self.d]

    def tried(self, role, name, form, true, tolerance):
        """Return a variable as a Candidate, None if it has not the shape."""
        if name not in self.shapes and not (self.B_r == 1 and name in self.turns[0].names):
            return None
        X = self.turns[0].names[name]
        if form not in self._forms(X) if role == "O_acc" else X.size != self.B_r:
            return None
        turns = list(zip(self.turns, true, strict=True))
        wrong = [self._wrong(role, turn.names[name], form, t) > tolerance for turn, t in turns]
        first = np.concatenate([rows for rows, turn in zip(wrong, self.turns, strict=True) if turn.number == 0])
        return Candidate(name, form, int(sum(rows.sum() for rows in wrong)), 1 - float(first.mean()))

    def _wrong(self, role, X, form, true):
        """Return the error of each row; one that has seen nothing has no m."""
        n = len(true.m)
        with np.errstate(all="ignore"):
            if role == "O_acc":
                size = np.abs(true.O_acc).max(axis=1, initial=0)
                apart = np.abs(_matrix(X, form, n, self.d) - true.O_acc).max(axis=1, initial=0)
            else:
                x = X.reshape(-1)[:n] * (form or 1)
                exact = getattr(true, role)
                size = np.ones(n) if role == "m" else np.abs(exact)
                apart = np.where((x == exact) | (exact == -np.inf), 0, np.abs(x - exact))
            return np.nan_to_num(apart / np.where(size == 0, 1, size), nan=np.inf)


def _matrix(X, transposed, n, d):
    X = X.reshape(1, -1) if X.ndim == 1 else X.T if transposed else X
    return X[:n, :d].astype(np.float32)
