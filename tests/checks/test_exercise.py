"""What every exercise answers, whatever it is given."""

import threading

import pytest

pytest.importorskip("cloudpickle")
from flashlib import checks  # noqa: E402
from flashlib.checks import exercise  # noqa: E402
from flashlib.checks.exercise import EXERCISES, Exercise  # noqa: E402


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("odd", [None, 3, "f", [1.0]])
def test_what_is_no_function_is_told(name, odd):
    verdict = EXERCISES[name](odd)
    assert verdict.outcome == "wrong" and "pass the function itself" in verdict.sentence


def test_an_answer_that_cannot_be_sent_is_not_checked():
    lock = threading.Lock()
    verdict = checks.online_step(lambda m, l, x_j: lock)
    assert verdict.outcome == "not checked" and "cannot be sent" in verdict.sentence


def test_an_endless_answer_is_ended_and_its_input_named(monkeypatch):
    monkeypatch.setattr(exercise, "LIMIT", 0.5)

    def endless(m, l, x_j):
        while True:
            pass

    verdict = checks.online_step(endless)
    assert verdict.sentence == "did not end within 0.5 seconds"
    assert "x_j = 2." in dict(verdict.details)["input"]


def test_a_mistake_of_a_check_is_no_mistake_of_the_learner(monkeypatch):
    def examine(answer):
        raise KeyError("ours")

    broken = Exercise("broken", "03_online_softmax", "Broken", 5, "easy", examine)
    monkeypatch.setattr(exercise, "_examine", lambda name, answer: examine(answer))
    verdict = broken(lambda: 1)
    assert verdict.outcome == "not checked" and "not in your answer" in verdict.sentence
    assert "KeyError: 'ours'" in dict(verdict.details)["traceback"]


def test_what_it_prints_is_shown():
    verdict = checks.online_step(lambda m, l, x_j: print("here", x_j))
    assert verdict.printed.startswith("here 2.0\n") and "it printed:" in repr(verdict)


def test_a_wrong_loop_can_be_played():
    pytest.importorskip("anywidget")
    from flashlib.checks.mutants import all_mutants

    mutant = next(m for m in all_mutants() if m.exercise == "fa2" and m.diagnosis.startswith("l is not rescaled"))
    verdict = checks.fa2(mutant.function)
    player = verdict.play()
    assert "wrong from step" in repr(player) and ", in l of row" in repr(player)
