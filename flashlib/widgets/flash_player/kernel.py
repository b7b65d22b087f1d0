"""A learner's kernel as the player plays it: what its loop holds after each turn, with the truth beside it."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flashlib.inputs import resolve_scale
from flashlib.learner.kernels.recording import LoopTurn, Recording
from flashlib.learner.loop import Recorder
from flashlib.learner.stubs import name_of
from flashlib.types import Step
from flashlib.widgets.flash_player import kernel_roles, learner
from flashlib.widgets.flash_player.frames import ForwardRecording, StoredRows
from flashlib.widgets.flash_player.kernel_roles import Roles
from flashlib.widgets.flash_player.kernel_tiles import TiledRun, tiled_run

LOW = -1e20
WHAT = "a function of Q, K and V, of shape (B, H, N, d), and causal, that launches the kernel and returns O"


class PlayedKernel(NamedTuple):
    """A run of a kernel: its recording, the sizes of its tiles, and the text of the function with its loop.

    verdict: what the page says of it: that of `learner`, with lse, as O there, of the lse that was returned, and
    note, a sentence on what else is wrong, or "".
    """

    recording: ForwardRecording
    B_r: int
    B_c: int
    source: str
    verdict: dict


class LearnersKernel:
    """A learner's function that launches a kernel, run anew for each setting.

    given: m, l, O_acc, the names of these in its loop, where they are said.
    """

    def __init__(self, my_attention: Callable, **given: str | None) -> None:
        self.function, self.name = my_attention, name_of(my_attention)
        self.given = {role: name for role, name in given.items() if name is not None}

    @property
    def settings(self) -> tuple[str, ...]:
        """What of a setting it takes."""
        return ("causal",) if callable(self.function) and self._takes_causal(_parameters(self.function)) else ()

    def play(self, Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool) -> PlayedKernel:
        """Return what the kernel does with one head, in fp32; raise TypeError or ValueError with a sentence."""
        recording = self._recorded(Q, K, V, causal)
        run = tiled_run(recording, Q, K, V)
        if run is None or not run.turns:
            raise ValueError(self._nothing(recording))
        B_r, B_c = min(run.B_r, len(Q)), min(run.B_c, len(K))
        setting = {"B_r": B_r, "B_c": B_c, "causal": causal, "order": "fa2", "scale": None, "mask": None}
        true = Recorder(Q, K, V, **setting)
        roles = self._roles(run, true)

        def my_steps(Q, K, V):
            for i, j, turn in run.turns:
                n = min(run.B_r, len(Q) - i * run.B_r)
                yield Step(i, j, *_seen_nothing(roles[turn.loop].state(turn, n, Q.shape[1])))

        my_steps.__name__ = self.name
        played = learner.record(my_steps, Q, K, V, **setting)
        played = _with_own_output(played, recording)
        read = _bytes_read(recording, run.turns[: len(played.steps)])
        played = played._replace(read=read, remark=played.remark or self._remark(recording, run))
        found = learner.verdict(played)
        lse = learner.wrong_rows(played.lse, true.lse, found["tolerance"]) if len(recording.results) > 1 else None
        source = recording.sources.get(run.turns[0].turn.loop.function, "")
        found |= {"kernel": True, "lse": lse, "note": self._note(recording, played)}
        return PlayedKernel(played, B_r, B_c, source, found)

    def _remark(self, recording, run):
        """Return a sentence on why not all of the run is played, or ""."""
        if recording.error:
            return f"{self.name} raises {recording.error}"
        if run.shared:
            return f"Several programs compute row block {run.shared[0]}; the first of them is played"
        return ""

    def _note(self, recording, played):
        """Return a sentence on what is wrong beside the numbers, or ""."""
        shapes = [X.shape for _, X in recording.results]
        beside = next((a for a in recording.accesses if a.outside.any()), None)
        if beside:
            done = "stores" if beside.is_store else "loads"
            return f"Line {beside.line} of {beside.function} {done} beside the elements of {beside.pointer}"
        if not shapes:
            return f"{self.name} returns no tensor, so O is taken as O_acc / l"
        if np.prod(shapes[0]) != played.O.size:
            return f"{self.name} returns a tensor of shape {shapes[0]} as O, which is taken as O_acc / l"
        return ""

    def _recorded(self, Q, K, V, causal):
        """Return the Recording of a run with one sequence of one head."""
        try:
            from flashlib.learner.kernels import run  # here: Triton may be missing
        except ImportError as error:
            raise ValueError(str(error)) from None
        run.check(self.function)
        arguments, options = self._arguments(causal)
        heads = [np.ascontiguousarray(X, np.float32)[None, None] for X in (Q, K, V)]
        recording, printed = run.recorded(self.function, *heads, *arguments, **options)
        if printed:
            print(printed, end="")
        return recording

    def _arguments(self, causal):
        """Return what the function is called with beside Q, K and V, by position and by name."""
        parameters = _parameters(self.function)
        required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        others = [name for name in required[3:] if name != "causal"]
        positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
        if len(positional) < 3 and not any(p.kind is p.VAR_POSITIONAL for p in positional) or others:
            names = ", ".join(p.name for p in parameters)
            raise TypeError(f"{self.name} takes ({names}); pass {WHAT}")
        if self._takes_causal(parameters):
            return (), {"causal": causal}
        if causal:
            raise TypeError(f"{self.name} takes no causal, and causal=True was passed; leave it out")
        return (), {}

    def _takes_causal(self, parameters):
        return any(p.name == "causal" or p.kind is p.VAR_KEYWORD for p in parameters)

    def _nothing(self, recording):
        """Return a sentence on why there is nothing to play."""
        if recording.error:
            return f"{self.name} raises {recording.error}"
        if not recording.launches:
            return f"{self.name} launches no kernel: what plays is the loop of one, marked @triton.jit"
        names = ", ".join(dict.fromkeys(launch.kernel for launch in recording.launches))
        return f"no loop of {names} loads K or V, or multiplies tiles: what plays is the loop over K and V"

    def _roles(self, run: TiledRun, recorder: Recorder) -> dict:
        """Return {loop: Roles}; the variables of one loop are those of the next, where it has them."""
        true = [recorder.truth.after((i, j)) or recorder.identity(i) for i, j, _ in run.turns]
        scale, found = resolve_scale(None, recorder.d), {}
        for loop in dict.fromkeys(turn.loop for *_, turn in run.turns):
            pairs = [(one.turn, t) for one, t in zip(run.turns, true, strict=True) if one.turn.loop == loop]
            turns, states = zip(*pairs, strict=True)
            found[loop] = self._roles_of_loop(turns, states, run.B_r, scale, found)
        return found

    def _roles_of_loop(self, turns: Sequence[LoopTurn], true, B_r, scale, found: dict) -> Roles:
        for known in found.values():
            if {known.m, known.l, known.O_acc} <= turns[0].names.keys():
                return known
        loop, tolerance = turns[0].loop, float(np.sqrt(np.finfo(np.float32).eps))
        unknown = {role: name for role, name in self.given.items() if name not in turns[0].names}
        try:
            if unknown:
                raise kernel_roles.Unknown([*unknown], kernel_roles.shapes(turns))
            return kernel_roles.find(turns, true, B_r, scale, tolerance, self.given)
        except kernel_roles.Unknown as error:
            held = ", ".join(f"{name} {shape}" for name, shape in error.names.items()) or "no tiles"
            what = f"the loop in line {loop.line} of {loop.function}"
            given = ", ".join(f"{role}={self.given[role]!r}" for role in error.missing if role in self.given)
            names = ", ".join(f'{role}="..."' for role in ("m", "l", "O_acc"))
            why = (
                f"{given} is no variable of {what} with the shape that is needed"
                if given
                else (f"which variables of {what} are m, l and O_acc cannot be told from their numbers")
            )
            raise ValueError(
                f"{why}: pass their names, from_kernel({self.name}, {names}); it holds {held}"
            ) from None


def one_head(X: Any) -> np.ndarray | None:
    """Return the first head of an array or a tensor, (N, d) or (B, H, N, d), in fp32; None for None."""
    if X is None:
        return None
    X = X.detach().cpu().float().numpy() if hasattr(X, "detach") else np.asarray(X)
    if X.dtype.kind != "f":
        return X  # to be refused
    return (X[0, 0] if X.ndim == 4 else X).astype(np.float32)


def _parameters(function: Callable) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _seen_nothing(state: Any) -> Any:
    """Return a state in which rows that have summed nothing have m = -inf, if theirs is as low as no score is."""
    nothing = (state.l == 0) & ~state.O_acc.any(axis=1) & (state.m < LOW)
    return state._replace(m=np.where(nothing, np.float32(-np.inf), state.m))


def _with_own_output(played: ForwardRecording, recording: Recording) -> ForwardRecording:
    """Return a recording with the O and lse that the function returned, if it did, in place of O_acc / l."""
    given, taken = [X for _, X in recording.results], []
    for n, own in enumerate((played.O, played.lse)):
        fits = n < len(given) and given[n].size == own.size
        taken.append(given[n].reshape(own.shape).astype(np.float32) if fits else own)
    O, lse = taken
    writes = [StoredRows(write.after, write.rows, O[write.rows].copy()) for write in played.writes]
    return played._replace(O=O, lse=lse, writes=writes)


def _bytes_read(recording, turns):
    """Return how many bytes were loaded by the end of each turn, and in all."""
    sizes = [0 if a.is_store else 4 * int((a.mask & ~a.outside).sum()) for a in recording.accesses]
    read = np.concatenate([[0], np.cumsum(sizes)])
    return [*(int(read[one.turn.accesses[1]]) for one in turns), int(read[-1])]
