"""A learner's own generator of steps: run it, check its steps, and compute the correct ones."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from flashlib.learner.error_text import error_text
from flashlib.learner.loop import InvalidStep, Recorder
from flashlib.memory import HBM
from flashlib.widgets.flash_player.frames import ForwardRecording, StoredRows

SETTING = ("B_r", "B_c", "causal", "order", "scale", "mask")
OF_KERNELS: dict = {"kernel": False, "lse": None, "note": ""}  # the other keys of a verdict on a kernel
BIGGEST = 1e300  # in place of infinity, which JSON lacks


def accepted(my_steps: Callable) -> tuple[str, ...]:
    """Return which of SETTING my_steps takes as parameters; raise TypeError if it cannot be called."""
    if not callable(my_steps):
        kind = type(my_steps).__name__
        raise TypeError(f"my_steps is a {kind}; pass the function itself, e.g. FlashPlayer.from_steps(my_steps)")
    parameters = inspect.signature(my_steps).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return SETTING
    return tuple(p.name for p in parameters if p.name in SETTING)


def record(my_steps: Callable, Q: np.ndarray, K: np.ndarray, V: np.ndarray, **setting: Any) -> ForwardRecording:
    """Run my_steps(Q, K, V, ...) with those of SETTING that it takes, and return its ForwardRecording.

    Each yielded object needs i, j, m, l and O_acc, as in a Step; a Step's other fields are computed from these and
    from the true scores. O is taken to be O_acc / l after the last step of each row block. A step's `true` is the
    state of the tiles that its row block has seen so far, each counted once, in any order. Raises ValueError if
    nothing can be played: if there is an exception, or something that is not a step, before the first step.
    """
    name = getattr(my_steps, "__name__", "my_steps")
    recorder = Recorder(Q, K, V, **setting)
    on_hbm = HBM.put(*(X.copy() for X in (Q, K, V)))
    moved = on_hbm[0].traffic
    given = {name: value for name, value in setting.items() if name != "mask" or value is not None}
    arguments = {name: given[name] for name in accepted(my_steps) if name in given}
    read, written, remark = [], [0], ""
    try:
        with np.errstate(all="ignore"):  # overflow and division by zero show in the numbers
            for _ in recorder.follow(my_steps(*on_hbm, **arguments)):
                read.append(moved.read)
                written.append(moved.written)
    except InvalidStep as error:
        remark = _said(error, name, len(recorder.steps))
    except Exception as error:  # whatever it is, it comes from the learner's code and is worth reading
        remark = f"{name} raised {error_text(error)}"
    if not recorder.steps:
        raise ValueError(
            remark or f"{name} yielded nothing; it should yield a Step for each tile of S it computes"
        )
    return _recording(recorder, [*read, moved.read], [*written, moved.written], remark)


def _said(error, my_steps, k):
    """Return a sentence on something yielded as step k that is not a step."""
    why, given = error.why, error.fields.get("given")
    name = error.fields.get("name")
    if why == "goes_on":
        return f"{my_steps} goes on after {k} steps, one for each tile of S; it was stopped"
    if why == "no_step":
        kind = type(given).__name__
        return f"{my_steps} yielded a {kind} without {name}; yield Step(i, j, m, l, O_acc), from flashlib.types"
    if why == "no_block":
        last = error.fields["count"] - 1
        return f"{my_steps} yielded a step with {name} = {given!r}; its blocks are 0 .. {last}"
    what = f"shape {given.shape}" if hasattr(given, "shape") else f"type {type(given).__name__}"
    (i, j), shape = error.fields["tile"], error.fields["expected"]
    return f"{my_steps}: {name} has {what} at step {k}, tile ({i}, {j}); expected an array of shape {shape}"


def _recording(recorder, read, written, remark):
    """Return the recorded steps as a ForwardRecording; O is O_acc / l of the last step of each row block."""
    steps = [
        _complete(step, recorder.before(k), recorder.tiles.get((step.i, step.j)))
        for k, step in enumerate(recorder.steps)
    ]
    O, lse = np.full_like(recorder.O, np.nan), np.full(len(recorder.O), np.nan, recorder.dtype)
    writes = []
    for i in set(range(len(recorder.rows))) - recorder.last.keys() - {i for i, _ in recorder.tiles}:
        O[recorder.rows[i]], lse[recorder.rows[i]] = 0, -np.inf  # it sees no key
        writes.append(StoredRows(-1, recorder.rows[i], O[recorder.rows[i]].copy()))
    for k in recorder.last.values():
        step = steps[k]
        divisor = np.where(step.l == 0, 1, step.l)
        with np.errstate(all="ignore"):
            O[step.rows] = step.O_acc / divisor[:, None]
            lse[step.rows] = step.m + np.log(divisor)
        writes.append(StoredRows(k, step.rows, O[step.rows].copy()))
    missed = tuple(tile for tile in recorder.tiles if tile not in recorder.truth.seen)
    return ForwardRecording(steps, writes, read, written, O, lse, recorder.true, recorder.O, missed, remark)


def _complete(step, state, true):
    """Return the step with its missing fields filled in: the state before, and the scores of the true step."""
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


def errors(recording: ForwardRecording) -> list:
    """Return the errors of m, l and O_acc of each row of each step, a list of (3, B_r) arrays.

    The error of m is a difference, which is the relative error of everything multiplied by exp(-m). Those of l and
    O_acc are relative to the largest in the row.
    """
    found = []
    for step, true in zip(recording.steps, recording.true, strict=True):  # type: ignore[arg-type]
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


def verdict(recording: ForwardRecording) -> dict:
    """Return the page's verdict on a learner's recording.

    errors: the largest error of each step. first: the first step, the name and the row where one differs
    from the truth by more than sqrt(eps) of its dtype, or None. O: [its largest difference from the true O, the
    first row that differs], or None. missed, remark: those of the recording. kernel, lse, note: see
    `kernel.PlayedKernel`.
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
        "O": wrong_rows(recording.O, recording.O_true, max(tolerance, float(np.finfo(recording.O.dtype).eps))),
        "missed": missed,
        "remark": recording.remark,
        **OF_KERNELS,
    }


def wrong_rows(X: np.ndarray, true: Any, tolerance: float) -> list | None:
    """Return the largest difference of O from the truth, or of lse, and the first row that differs, or None."""
    X, true = (Y.astype(np.float64).reshape(len(Y), -1) for Y in (X, true))
    with np.errstate(all="ignore"):
        apart = np.nan_to_num(np.where(X == true, 0, np.abs(X - true)), nan=BIGGEST, posinf=BIGGEST)
    size = np.abs(true[np.isfinite(true)]).max(initial=0) or 1.0
    rows = np.flatnonzero(apart.max(axis=1, initial=0) > tolerance * size)
    return [float(apart.max()), int(rows[0])] if len(rows) else None
