"""The fault of roles that wait for each other for ever: its sentence says who waits for what from whom."""

from flashlib.language.phrases import and_list
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import MultiprocessorState, PipelineFault, PipelineFaultKind


def deadlock(
    state: MultiprocessorState, stuck: dict[str, c.Command], to_come: dict[str, list] | None = None
) -> PipelineFault:
    """Return the fault that says who waits for whom. stuck: each role's current command; to_come: those left."""
    said = "; ".join(_why(state, role, command, to_come) for role, command in stuck.items())
    return PipelineFault(PipelineFaultKind.DEADLOCK, next(iter(stuck)), said)


def _why(state, role, wait, to_come):
    if not isinstance(wait, c.Wait):
        return f"{role} waits for its own {type(wait).__name__}"
    barrier = wait.barrier
    left, missing, completed = state.barriers[barrier]
    lacks = [f"{left} of {barrier.count} arrivals"] if left else []
    lacks += [f"{missing} bytes"] if missing > 0 else []
    phase = state.target(role, wait)
    said = f"{role} waits for phase {phase} of {barrier}: phase {completed} lacks {and_list(lacks) or 'nothing'}"
    if to_come is not None:
        copies = not left and missing > 0
        do, kinds = ("ask for a copy", c.Copy) if copies else ("arrive", c.Arrive | c.Expect)
        by = [other for other in to_come if any(_at(one, barrier, kinds) for one in to_come[other])]
        said = f"{said}, where {and_list(by)} would {do}" if by else f"{said}, where nobody will {do} any more"
    return f"{said}; {-missing} bytes more came than were expected" if missing < 0 else said


def _at(command, barrier, kinds):
    return isinstance(command, kinds) and command.barrier is barrier
