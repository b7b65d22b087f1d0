"""The strip of phases says of each wait what the model of a multiprocessor does."""

import pytest

pytest.importorskip("matplotlib")

from flashlib.pictures import phases
from flashlib.pipeline import Arrive, Barrier, Program, Wait
from flashlib.pipeline.multiprocessor import MultiprocessorState
from tests.pictures.places import Places


def test_a_wait_lasts_as_in_the_model():
    barrier = Barrier("b")
    state = MultiprocessorState(Program({"role": None, "other": None}, (barrier,), ()))
    for phase in range(phases.PHASES):
        for parity in (0, 1):
            assert state.may("role", Wait(barrier, parity)) != phases.waits(parity, phase)
        state.do("other", Arrive(barrier), {})


def test_each_phase_has_one_wait_that_lasts_and_one_that_goes_on():
    picture = phases.draw_phases()
    assert picture.texts.count("waits") == picture.texts.count("goes on") == phases.PHASES
    for phase in range(phases.PHASES):
        assert f"phase {phase}: Wait(b, {phase % 2}) waits" in repr(picture)


def test_nothing_is_drawn_outside(monkeypatch):
    places = Places(monkeypatch)
    phases.draw_phases()
    assert places.words and places.outside() == []
