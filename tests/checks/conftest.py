"""Fixtures that compute only once what all answers to an exercise need, since their cases are the same."""

import pickle

import pytest


@pytest.fixture
def guesses(monkeypatch):
    """Compute the result of each known mistake in a case only once."""
    from flashlib.checks.engine import diagnosis

    compute, known, pickled = diagnosis._Hypothesis._guess, {}, {}

    def text(case):
        if id(case) not in pickled:
            try:
                pickled[id(case)] = case, pickle.dumps(case.arguments)  # keeping the case keeps its id unique
            except (pickle.PicklingError, AttributeError, TypeError):  # a function
                pickled[id(case)] = case, None
        return pickled[id(case)][1]

    def guess(hypothesis, n):
        arguments = text(hypothesis.tried[n].case)
        if arguments is None:
            return compute(hypothesis, n)
        key = hypothesis.changes, arguments
        if key not in known:
            known[key] = compute(hypothesis, n)
        return known[key]

    monkeypatch.setattr(diagnosis._Hypothesis, "_guess", guess)


@pytest.fixture
def searches(monkeypatch):
    """Search the schedules of a program once: in a case without a mistake, all answers give the solution's."""
    from flashlib.pipeline import commands, schedules

    search, known = schedules.check, {}

    def check(program, **limits):
        parts = [(b.name, b.count) for b in program.barriers], [(s.name, s.n_bytes) for s in program.slots]
        key = repr((commands.expanded(program), parts, limits))
        if key not in known:
            known[key] = search(program, **limits)
        return known[key]

    monkeypatch.setattr(schedules, "check", check)


@pytest.fixture
def short_searches(searches, monkeypatch):  # noqa: ARG001
    """Search only a few schedules of a program: those of a right answer are all right."""
    from flashlib.pipeline import schedules

    search = schedules.check
    monkeypatch.setattr(schedules, "check", lambda program, **_: search(program, states=200, schedules=5))


@pytest.fixture
def rings(monkeypatch):
    """Run the solution only once in rings of the same sizes, and plan its hops once."""
    from flashlib.checks.engine import solutions
    from flashlib.checks.harness import ranks
    from flashlib.ring import hops, runs

    play, plan, played, planned = ranks.RankTask.played, hops.plan, {}, {}
    right = [solutions.program(name).function for name in ("ring_rank", "ring_gradients")]

    def play_once(task, answer, problem, seed=None):
        if answer not in right or seed is not None:
            return play(task, answer, problem, seed)
        key = task, problem
        if key not in played:
            played[key] = play(task, answer, problem)
        return played[key]

    def plan_once(mask, *sizes):
        key = repr(mask), sizes
        if key not in planned:
            planned[key] = plan(mask, *sizes)
        return planned[key]

    monkeypatch.setattr(ranks.RankTask, "played", play_once)
    monkeypatch.setattr(hops, "plan", plan_once)
    monkeypatch.setattr(runs, "plan", plan_once)
