"""The verdicts of exercises on anything that they may be given."""

import asyncio
import functools
import threading

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
from flashlib import checks  # noqa: E402
from flashlib.checks.engine import exercises  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES  # noqa: E402
from flashlib.checks.engine.verdict import MIME  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402


@each_case(EXERCISES.values(), lambda exercise: exercise.name)
def test_an_answer_that_is_not_a_function_is_reported(exercise):
    for odd in (None, 3, "f", [1.0]):
        verdict = exercise(odd)
        assert verdict.mistake == "no_function" and "pass the function itself" in verdict.sentence, odd


def test_a_stub_does_not_start_a_process(monkeypatch):
    class JITFunction:
        def __call__(self):
            """A kernel may be called."""

    def stub(m, l, x_j):
        """Return m and l."""
        raise NotImplementedError

    def of_a_case(m, l, x_j):
        if x_j > m:
            raise NotImplementedError
        return m, l

    def another(m, l, x_j):
        raise ValueError

    def ran(*_, **__):
        raise OSError("it ran")

    monkeypatch.setattr(exercises.process, "call", ran)
    for answer, outcome in ((stub, "not solved yet"), (of_a_case, "not checked"), (another, "not checked")):
        kernel = JITFunction()
        kernel.fn = answer
        for given in (answer, kernel):
            verdict = checks.online_step(given)
            assert verdict.outcome == outcome and verdict.answer is given, answer


def test_an_answer_that_cannot_be_sent_is_not_checked():
    lock = threading.Lock()
    verdict = checks.online_step(lambda m, l, x_j: lock)
    assert verdict.outcome == "not checked" and "cannot be sent" in verdict.sentence


def test_an_endless_answer_is_ended_and_its_input_named(monkeypatch):
    monkeypatch.setattr(exercises, "LIMIT", 0.5)

    def endless(m, l, x_j):
        while True:
            pass

    verdict = checks.online_step(endless)
    assert verdict.sentence == "did not end within 0.5 seconds"
    assert "x_j = 2." in dict(verdict.details)["input"]


def test_an_error_in_a_check_is_not_blamed_on_the_learner(monkeypatch):
    def examine(*_):
        raise KeyError("ours")

    monkeypatch.setattr(exercises, "_examine", examine)
    verdict = checks.online_step(lambda: 1)
    assert verdict.outcome == "not checked" and "not in your answer" in verdict.sentence
    assert "KeyError: 'ours'" in dict(verdict.details)["traceback"]


@pytest.mark.parametrize("error", [GeneratorExit, asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_whatever_an_answer_raises_is_its_own_mistake(error):
    class Odd:
        def __repr__(self):
            raise error

    def raises(m, l, x_j):
        raise error

    for answer in (raises, lambda m, l, x_j: Odd()):
        verdict = checks.online_step(answer)
        assert verdict.outcome == "wrong", verdict


FORGED = {
    "not a verdict": "5",
    "without fields": "object.__new__(Verdict)",
    "details": "Verdict('', Outcome.RIGHT, '', details=5)",
    "a detail": "Verdict('', Outcome.RIGHT, '', details=(('x', 5),))",
    "mistakes": "Verdict('', Outcome.WRONG, '', mistakes=(5,))",
    "the outcome": "Verdict('', 'right', '')",
    "the sentence": "Verdict('', Outcome.RIGHT, None)",
}


@pytest.mark.parametrize("what", FORGED)
def test_an_invalid_verdict_is_reported(what):
    names = {}
    exec(f"""def sends(m, l, x_j):
    from flashlib.learner import process
    from flashlib.checks.engine.verdict import Outcome, Verdict
    process._connection.send(("done", ({FORGED[what]}, "")))""", names)  # fmt: skip
    verdict = checks.online_step(names["sends"])
    assert "invalid data" in verdict.sentence and verdict._repr_mimebundle_(), verdict


ODD = {
    "too large for a float": "10**400, 10**400",
    "too large for text": "10**5000, 10**5000",
    "a list of them": "[10**5000], 1.0",
    "in a set": "{10**5000}, 1.0",
    "a long range": "range(10**30), 1.0",
    "in itself": "(lambda a: (a.append(a), a))([])",
    "of a type without a name": "type('', (), {})()",
    "an exact number": "__import__('fractions').Fraction(10**400), 1.0",
}


@pytest.mark.parametrize("what", ODD)
def test_no_result_of_an_answer_is_blamed_on_the_course(what):
    for name in ("online_step", "merge"):
        verdict = checks.EXERCISES[name](eval(f"lambda *a: {ODD[what]}"))
        assert verdict.outcome == "wrong", verdict


def test_texts_of_an_answer_can_be_sent_to_a_page():
    def raises(m, l, x_j):
        print("\ud800")
        raise ValueError("\ud800")

    bundle = checks.online_step(raises)._repr_mimebundle_()
    for part in (bundle["text/plain"], bundle["text/html"], *bundle[MIME].values()):
        part.encode("utf-8")


@pytest.mark.parametrize("seed", ["x", -1, 1.5, [3]])
def test_an_invalid_seed_is_reported(seed):
    verdict = checks.online_step(lambda m, l, x_j: (m, l), seed=seed)
    assert verdict.outcome == "not checked" and "pass a whole number" in verdict.sentence


def test_what_it_prints_is_shown():
    verdict = checks.online_step(lambda m, l, x_j: print("here", x_j))
    assert verdict.printed.startswith("here 2.0\n") and "it printed:" in repr(verdict)


def test_cases_are_drawn_from_a_new_seed_that_is_shown():
    """An answer that is right only in the fixed cases is detected, however it recognises them."""

    def for_round_scores(m, l, x_j):
        if x_j == -np.inf or x_j % 1:
            return m, l
        m_old, m = m, max(m, x_j)
        return m, l * np.exp(m_old - m) + np.exp(x_j - m)

    said = {seed: repr(checks.online_step(for_round_scores, seed=seed)) for seed in range(8)}
    found = {seed: text for seed, text in said.items() if "drawn with seed" in text}
    assert len(found) >= 3 and len(set(found.values())) == len(found)
    assert all(f"drawn with seed {seed})" in text for seed, text in found.items())
    seed, text = found.popitem()
    assert repr(checks.online_step(for_round_scores, seed=seed)) == text


def test_solutions_are_out_of_reach_of_an_answer():
    def looks_up(m, l, x_j):
        from flashlib.checks.engine import solutions

        return solutions.solution("online_step")(m, l, x_j)

    assert "out of reach" in checks.online_step(looks_up).sentence


def test_an_answer_may_be_cached():
    calls = []

    @functools.cache
    def cached(m, l, x_j):
        calls.append(x_j)
        m_old, m = m, max(m, x_j)
        return (m, l * np.exp(m_old - m) + np.exp(x_j - m)) if x_j > -np.inf else (m_old, l)

    assert checks.online_step(cached).right


def test_a_wrong_loop_can_be_played():
    pytest.importorskip("anywidget")
    from tests.checks import answers

    wrong = next(a for a in answers.wrong() if (a.exercise, a.mistake) == ("fa2", "l_not_rescaled"))
    player = checks.fa2(wrong.program.function).play()
    assert "wrong from step" in repr(player) and ", in l of row" in repr(player)


LONG = 10**7  # characters
HUGE = {
    "the text of an exception": "raise ValueError('x' * LONG)",
    "lines of an exception": "raise ValueError('x\\n' * (LONG // 2))",
    "the name of an exception": "raise type('x' * LONG, (Exception,), {})",
    "a key": "raise KeyError('x' * LONG)",
    "a returned text": "return 'x' * LONG",
    "the key of a dict": "return {'x' * LONG: 1}",
    "the name of a class": "return type('x' * LONG, (), {})()",
    "the text of an object": "return type('Own', (), {'__repr__': lambda self: 'x' * LONG})()",
}


@pytest.mark.parametrize("what", HUGE)
def test_a_verdict_is_short_however_long_a_text_of_the_answer_is(what):
    names = {"LONG": LONG}
    exec(f"def my_scores_for(p):\n    {HUGE[what]}", names)
    verdict = checks.scores_for(names["my_scores_for"])
    assert verdict.mistake in ("raises", "kind", "value"), verdict.sentence[:200]
    assert len(repr(verdict)) < 5000 and max(map(len, repr(verdict).splitlines())) < 2100
