"""A learner's own generator of steps: run it, check what it yields, and say what it should have yielded."""

import inspect
from numbers import Integral

import numpy as np

from flashlib import tiled
from flashlib.memory import HBM
from flashlib.softmax import IDENTITY, State, merge
from flashlib.state import Step
from flashlib.widgets.player.frames import Recording, Write

SETTING = ("B_r", "B_c", "causal", "order", "scale")
BIGGEST = 1e300  # what stands for infinity, which JSON has not
REQUIRED = ("i", "j", "m", "l", "O_acc")


def accepted(my_steps):
    """Return which of B_r, B_c, causal, order and scale my_steps takes; raise TypeError if it cannot be called."""
    if not callable(my_steps):
        kind = type(my_steps).__name__
        raise TypeError(f"my_steps is a {kind}; pass the function itself, e.g. FlashPlayer.from_steps(my_steps)")
    parameters = inspect.signature(my_steps).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return SETTING
    return tuple(p.name for p in parameters if p.name in SETTING)


def record(my_steps, Q, K, V, **setting) -> Recording:
    """Run my_steps(Q, K, V, ...) with those of B_r, B_c, causal, order and scale it takes; return its Recording.

    Each thing yielded needs i, j, m, l and O_acc, as a Step has them; what else a Step has is filled in from these
    and from the true scores. O is taken to be O_acc / l after the last step of each row block. A step's `true` is
    the state of the tiles that its row block has seen so far, each counted once, in whatever order they came.
    Raises ValueError if nothing can be played: an exception, or something that is no step, before the first step.
    """
    name = getattr(my_steps, "__name__", "my_steps")
    run = _Run(name, Q, K, V, **setting)
    on_hbm = HBM.put(*(X.copy() for X in (Q, K, V)))
    moved = on_hbm[0].traffic
    arguments = {name: setting[name] for name in accepted(my_steps)}
    read, written, remark = [], [0], ""
    try:
        with np.errstate(all="ignore"):  # what overflows or divides by zero is seen in the numbers
            for given in my_steps(*on_hbm, **arguments):
                if len(run.steps) == run.most:
                    remark = f"{name} goes on after {run.most} steps, one for each tile of S; it was stopped"
                    break
                run.take(given)
                read.append(moved.read)
                written.append(moved.written)
    except _NotAStep as error:
        remark = str(error)
    except Exception as error:  # whatever it is, it is the learner's, and worth reading
        remark = f"{name} raised {type(error).__name__}: {error}"
    if not run.steps:
        raise ValueError(
            remark or f"{name} yielded nothing; it should yield a Step for each tile of S it computes"
        )
    return run.recording([*read, moved.read], [*written, moved.written], remark)


def errors(recording) -> list:
    """Return how far m, l and O_acc of each row of each step are from the truth, a list of (3, B_r) arrays.

    The error of m is a difference, which is a relative one of all that is multiplied by exp(-m). Those of l and
    O_acc are relative, to the largest of the row.
    """
    found = []
    for step, true in zip(recording.steps, recording.true, strict=True):
        rows = []
        for x, t, size in (
            (step.m, true.m, 1.0),
            (step.l, true.l, np.abs(true.l)),
            (step.O_acc, true.O_acc, np.abs(true.O_acc).max(axis=1, keepdims=True, initial=0)),
        ):
            with np.errstate(all="ignore"):
                error = np.where(x == t, 0, np.abs(x - t) / np.where(size == 0, 1, size))
            rows.append(np.nan_to_num(error.reshape(len(x), -1).max(axis=1), nan=np.inf))
        found.append(np.array(rows))
    return found


def verdict(recording) -> dict:
    """Return what the page says of a learner's recording.

    errors: the largest error of each step. first: the first step, the name and the row where one parts from the
    truth by more than sqrt(eps) of its dtype, or None. O: [its largest difference from the true O, the first row
    that differs], or None. missed, remark: those of the recording.
    """
    found = errors(recording)
    tolerance = float(np.sqrt(np.finfo(recording.lse.dtype).eps))
    first = None
    for k, error in enumerate(found):
        if first is None and error.max(initial=0) > tolerance:
            name, row = np.unravel_index(np.argmax(error > tolerance), error.shape)
            first = [k, ("m", "l", "O_acc")[name], recording.steps[k].rows.start + int(row)]
    largest = [min(float(error.max(initial=0)), BIGGEST) for error in found]
    missed = [list(tile) for tile in recording.missed]
    return {
        "errors": largest,
        "tolerance": tolerance,
        "first": first,
        "O": _wrong_O(recording, max(tolerance, float(np.finfo(recording.O.dtype).eps))),
        "missed": missed,
        "remark": recording.remark,
    }


def _wrong_O(recording, tolerance):
    """Return the largest difference of O from the truth and the first row that differs, or None."""
    O, true = (X.astype(np.float64) for X in (recording.O, recording.O_true))
    apart = np.nan_to_num(np.abs(O - true), nan=BIGGEST, posinf=BIGGEST)
    size = np.abs(true).max(initial=0) or 1.0
    rows = np.flatnonzero(apart.max(axis=1, initial=0) > tolerance * size)
    return [float(apart.max()), int(rows[0])] if len(rows) else None


class _NotAStep(ValueError):
    """What was yielded cannot be played."""


class _Run:
    """The steps taken so far, each completed, and the truth beside each."""

    def __init__(self, name, Q, K, V, **setting):
        self.name, self.Q, self.K, self.V = name, Q, K, V
        self.O_true = np.empty_like(Q)
        self.tiles = {(step.i, step.j): step for step in tiled.steps(Q, K, V, **setting, O=self.O_true)}
        self.rows, self.cols = (list(tiled.blocks(len(X), setting[B])) for X, B in ((Q, "B_r"), (K, "B_c")))
        self.most = len(self.rows) * len(self.cols)
        self.dtype = np.promote_types(Q.dtype, np.float32)
        self.steps, self.true = [], []
        self.last = {}  # of each row block: (the index of its last step, the true State after it)
        self.seen = set()

    def take(self, given):
        """Complete what was yielded to a Step and keep it; raises _NotAStep if it cannot be played."""
        i, j = self._index(given, "i", self.rows), self._index(given, "j", self.cols)
        rows, cols = self.rows[i], self.cols[j]
        n_r, n_c, d = rows.stop - rows.start, cols.stop - cols.start, self.Q.shape[1]
        shapes = dict.fromkeys(("m", "l", "m_old", "alpha", "l_old"), (n_r,))
        shapes |= dict.fromkeys(("O_acc", "O_acc_old"), (n_r, d)) | dict.fromkeys(("S_ij", "P_ij"), (n_r, n_c))
        arrays = {name: self._array(given, name, shape) for name, shape in shapes.items()}
        k, before = self.last.get(i, (None, self._identity(n_r, d)))
        state = before if k is None else self.steps[k]
        self.steps.append(_complete(Step(i, j, rows=rows, cols=cols, **arrays), state, self.tiles.get((i, j))))
        self.true.append(before if (i, j) in self.seen else self._merged(before, (i, j)))
        self.seen.add((i, j))
        self.last[i] = len(self.steps) - 1, self.true[-1]

    def _index(self, given, name, blocks):
        value = getattr(given, name, None)
        if value is None:
            raise _NotAStep(
                f"{self.name} yielded a {type(given).__name__} without {name}; yield Step(i, j, m, l, O_acc), "
                "from flashlib.state"
            )
        if not isinstance(value, Integral) or not 0 <= value < len(blocks):
            last = len(blocks) - 1
            raise _NotAStep(f"{self.name} yielded a step with {name} = {value!r}; its blocks are 0 .. {last}")
        return int(value)

    def _array(self, given, name, shape):
        """Return a copy of what was given under `name`, or None where nothing need be and nothing was."""
        value = getattr(given, name, None)
        if value is None and name not in REQUIRED:
            return None
        try:
            X = np.array(np.nan if value is None else value, self.dtype)
        except (TypeError, ValueError):
            X = np.array(np.nan)
        if X.shape != shape:
            what = f"shape {value.shape}" if hasattr(value, "shape") else f"type {type(value).__name__}"
            where = f"step {len(self.steps)}, tile ({given.i}, {given.j})"
            raise _NotAStep(f"{self.name}: {name} has {what} at {where}; expected an array of shape {shape}")
        return X

    def _identity(self, n_r, d):
        """Return the State of a row block that has seen nothing."""
        shapes = (n_r,), (n_r,), (n_r, d)
        return State(*(np.full(shape, x, self.dtype) for shape, x in zip(shapes, IDENTITY, strict=True)))

    def _merged(self, state, tile):
        """Return the true State of a row block that has seen one more tile; a skipped one changes nothing."""
        if tile not in self.tiles:
            return state
        S_ij, cols = self.tiles[tile].S_ij, self.tiles[tile].cols
        m = S_ij.max(axis=1)
        P = np.exp(S_ij - np.where(m == -np.inf, 0, m)[:, None])
        return merge(state, State(m, P.sum(axis=1), P @ tiled.load(self.V, cols)))

    def recording(self, read, written, remark):
        """Return what was taken as a Recording; O is O_acc / l of the last step of each row block."""
        O, lse = np.full_like(self.Q, np.nan), np.full(len(self.Q), np.nan, self.dtype)
        writes = []
        for i in set(range(len(self.rows))) - self.last.keys() - {i for i, _ in self.tiles}:
            O[self.rows[i]], lse[self.rows[i]] = 0, -np.inf  # it sees no key
            writes.append(Write(-1, self.rows[i], O[self.rows[i]].copy()))
        for k, _ in self.last.values():
            step = self.steps[k]
            divisor = np.where(step.l == 0, 1, step.l)
            with np.errstate(all="ignore"):
                O[step.rows] = step.O_acc / divisor[:, None]
                lse[step.rows] = step.m + np.log(divisor)
            writes.append(Write(k, step.rows, O[step.rows].copy()))
        missed = tuple(tile for tile in self.tiles if tile not in self.seen)
        return Recording(self.steps, writes, read, written, O, lse, self.true, self.O_true, missed, remark)


def _complete(step, state, true):
    """Return the step with what was not given: the state before, and the scores of the true step."""
    masked = np.full((len(step.m), step.cols.stop - step.cols.start), -np.inf, step.m.dtype)
    given = lambda name, X: X if getattr(step, name) is None else getattr(step, name)  # noqa: E731
    m_old, S_ij = given("m_old", state.m), given("S_ij", masked if true is None else true.S_ij)
    shift = np.where(step.m == -np.inf, 0, step.m)
    with np.errstate(all="ignore"):
        return step._replace(
            m_old=m_old,
            l_old=given("l_old", state.l),
            O_acc_old=given("O_acc_old", state.O_acc),
            S_ij=S_ij,
            alpha=given("alpha", np.exp(m_old - shift)),
            P_ij=given("P_ij", np.exp(S_ij - shift[:, None])),
        )
