"""A refused setting is reverted with a sentence, the same in every widget with settings."""

import re

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib.widgets import (
    BackwardPlayer,
    ComparePlayers,
    EightBitsLab,
    FlashPlayer,
    MaskLab,
    MergeTree,
    OnlineSoftmaxLab,
    OverflowLab,
    PagesLab,
    ProgramsLab,
    RingPlayer,
    ServeLab,
    SplitLab,
    TilingLab,
    TripsPlayer,
)
from flashlib.widgets.lab import Lab

# A widget, a change that it refuses, the beginning of its sentence, and a change that it accepts afterwards.
WHOLE = "{} is {}; pass a whole number from {} to {}"
CASES = {
    "eight bits": (EightBitsLab, {"N": 300}, "N is 300; pass 256, 512, 1024, 2048, 4096, 819", {"N": 256}),
    "eight bits, a word": (EightBitsLab, {"qk": "x"}, "qk is 'x'; pass one of 'e4m3', 'e5m2'", {"qk": "int8"}),
    "split": (SplitLab, {"B": 65}, WHOLE.format("B", 65, 1, 64), {"B": 2}),
    "split, a word": (SplitLab, {"order": "x"}, "order is 'x'; pass one of 'row', 'tree'", {"order": "tree"}),
    "serve": (ServeLab, {"batch": 9}, WHOLE.format("batch", 9, 1, 8), {"batch": 2}),
    "serve, a word": (ServeLab, {"scenario": "x"}, "scenario is 'x'; pass one of 'short and long", {"chunk": 16}),
    "pages": (PagesLab, {"n_pages": 3}, WHOLE.format("n_pages", 3, 4, 32), {"n_pages": 8}),
    "pages, one of few": (PagesLab, {"page": 5}, "page is 5; pass 1, 2, 4, 8 or 16", {"page": 8}),
    "programs": (ProgramsLab, {"N": 17}, WHOLE.format("N", 17, 0, 16), {"N": 7}),
    "programs, a word": (ProgramsLab, {"kernel": "x"}, "kernel is 'x'; pass one of 'vector'", {"kernel": "loop"}),
    "programs, one of few": (ProgramsLab, {"BLOCK": 3}, "BLOCK is 3; pass 1, 2, 4, 8 or 16", {"BLOCK": 8}),
    "mask": (MaskLab, {"B_r": 97}, WHOLE.format("B_r", 97, 1, 96), {"B_r": 4}),
    "mask, a word": (MaskLab, {"also": "x"}, "also is 'x'; pass one of 'none', 'causal'", {"also": "window"}),
    "tiling": (TilingLab, {"B_r": 3}, WHOLE.format("B_r", 3, 4, 1024) + ", e.g. B_r=16", {"B_r": 32}),
    "tiling, a word": (TilingLab, {"order": "x"}, "order is 'x'; pass one of 'fa1', 'fa2'", {"order": "fa1"}),
    "trips": (TripsPlayer, {"N": 49}, WHOLE.format("N", 49, 1, 48), {"N": 1}),
    "overflow": (OverflowLab, {"copies": 0}, WHOLE.format("copies", 0, 1, 21845), {"copies": 2}),
    "overflow, a number": (OverflowLab, {"x": 99.0}, "x is 99.0; pass a number from -20 to 14", {"x": 3.0}),
    "overflow, a word": (OverflowLab, {"dtype": "x"}, "dtype is 'x'; pass one of 'float16'", {"dtype": "float32"}),
    "tree": (MergeTree, {"cuts": [9]}, "cuts has 9 in it; accepted are whole numbers from 1 to 7", {"cuts": [1]}),
    "tree, a word": (MergeTree, {"order": "x"}, "order is 'x'; accepted are 'left to", {"order": "balanced"}),
    "tree, moves": (MergeTree, {"moves": [[0, 9]]}, "a move is [0, 9], but free are [0, 1,", {"moves": [[2, 3]]}),
    "player": (FlashPlayer, {"seed": -1}, "seed is -1; accepted are whole numbers of at least 0", {"seed": 1}),
    "ring": (RingPlayer, {"ranks": 9}, WHOLE.format("ranks", 9, 2, 8), {"ranks": 3}),
    "ring, a number": (RingPlayer, {"token": 11.0}, "token is 11.0; pass a number from 0 to 10", {"token": 1.0}),
    "ring, a word": (RingPlayer, {"cut": "x"}, "layout is 'x'; pass one of 'contiguous'", {"cut": "striped"}),
    "players": (ComparePlayers, {"seed": -1}, "seed is -1; accepted are whole numbers of at least 0", {"seed": 1}),
    "backward": (
        BackwardPlayer,
        {"seed": -1},
        "seed is -1; accepted are whole numbers of at least 0",
        {"seed": 1},
    ),
}
TYPED = {
    "row": (OnlineSoftmaxLab, {"typed": "1 x"}, "“x” is not a number; accepted are 1 to 64", {"typed": "1, 2"}),
    "line": (lambda: MaskLab("line"), {"line": "x"}, "x is not a name here; there are r, c,", {"line": "c < r"}),
    "lengths": (
        lambda: MaskLab("documents"),
        {"lengths": "x"},
        "lengths: 'x' is not a length; write",
        {"lengths": "3"},
    ),
}


def shown(lab):
    return getattr(lab, lab._shows)


def values(lab):
    return {name: getattr(lab, name) for name in shown(lab)["setting"]}


@pytest.fixture(params=["page", "Python"])
def change(request):
    def assign(lab, settings):
        for name, value in settings.items():
            setattr(lab, name, value)

    return assign if request.param == "Python" else Lab.set_state


@pytest.mark.parametrize(
    ("make", "bad", "sentence", "good"), [*CASES.values(), *TYPED.values()], ids=[*CASES, *TYPED]
)
def test_a_refusal_is_reported_and_the_result_stays(make, bad, sentence, good, change):
    lab = make()
    before, text = shown(lab), repr(lab)
    ((name, value),) = bad.items()
    change(lab, bad)
    assert lab.refused.startswith(sentence)
    assert lab.refused.endswith(f". It stays {before['setting'][name]!r:.60}.")
    assert shown(lab) is before and repr(lab) == text
    assert getattr(lab, name) == (value if name in lab._texts else before["setting"][name])
    change(lab, good)
    ((name, value),) = good.items()
    assert lab.refused == "" and shown(lab)["setting"][name] == value
    assert values(lab) == shown(lab)["setting"]


@pytest.mark.parametrize(("make", "bad", "sentence", "good"), CASES.values(), ids=CASES)
def test_the_same_again_is_answered_again_and_once(make, bad, sentence, good):
    lab, said, sent = make(), [], []
    lab.observe(lambda change: said.append(change.new), names="refused")
    lab.observe(lambda change: sent.append(change.new), names=lab._shows)
    lab.set_state(bad)
    lab.set_state(bad)
    assert said == [lab.refused, "", lab.refused] and sent == []
    lab.set_state(good)
    assert len(sent) == 1 and values(lab) == sent[0]["setting"]


def test_one_message_can_be_accepted_in_part_with_a_sentence_per_refusal():
    lab = TilingLab()
    lab.set_state({"N": 0, "B_r": 32, "B_c": 3})
    assert (lab.N, lab.B_r, lab.B_c) == (4096, 32, 64) and lab.result == TilingLab(B_r=32).result
    assert re.fullmatch(r"N is 0; pass .* It stays 4096\. B_c is 3; pass .* It stays 64\.", lab.refused)


def test_settings_that_do_not_fit_together_all_stay():
    lab = FlashPlayer(N=64)
    before = lab.frames
    lab.set_state({"N": 8, "seed": -1})
    assert (
        lab.refused.endswith(". It stays N=64, seed=0.") and lab.frames is before and (lab.N, lab.seed) == (64, 0)
    )
    assert len(lab._inputs[0]) == 64


@pytest.mark.parametrize(
    "lab", [OverflowLab(15), TilingLab(0), OnlineSoftmaxLab("1"), FlashPlayer(N=0), MergeTree(3), PagesLab(page=3)]
)
def test_a_sentence_in_place_of_the_widget_says_what_cannot_be_shown_at_first(lab):
    assert lab.problem.endswith(".") and shown(lab) == {} and lab.problem in repr(lab)
    lab.set_state({name: 1 for name in ("N", "copies", "page") if lab.has_trait(name)})  # nothing answers
    assert shown(lab) == {} and lab.refused == ""


@pytest.fixture
def told(monkeypatch):
    """The messages to a lab's page: pairs of a method and the state in it."""

    def of(lab):
        found = []
        hear = lambda data, **_: found.append((data["method"], data["state"]))  # noqa: E731
        monkeypatch.setattr(lab.comm, "send", hear)
        return found

    return of


@pytest.mark.parametrize(("make", "bad", "sentence", "good"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("first", ["asked", "setting"])
def test_one_message_answers_and_none_echoes_a_setting(make, bad, sentence, good, first, told):
    """Whichever setting the page names first: another page takes the setting from the result."""
    lab = make()
    sent = told(lab)
    lab.set_state({"asked": 1} | good if first == "asked" else good | {"asked": 1})
    ((method, state),) = sent
    assert method == "update" and state["heard"] == 1 and {"asked", *good}.isdisjoint(state)
    assert state[lab._shows]["setting"] == values(lab) and values(lab).items() >= good.items()
    sent.clear()
    lab.set_state({"asked": 2} | bad)
    states = {name: value for _, state in sent for name, value in state.items()}
    assert states["heard"] == 2 and states["refused"].startswith(sentence)
    assert {name: states[name] for name in bad} == {name: values(lab)[name] for name in bad}


@pytest.mark.parametrize(("make", "bad", "sentence", "good"), TYPED.values(), ids=TYPED)
def test_typed_settings_are_echoed_since_they_may_be_refused(make, bad, sentence, good, told):
    lab = make()
    sent = told(lab)
    lab.set_state(bad | {"asked": 1})
    assert sent[0] == ("echo_update", bad) and sent[-1][1]["heard"] == 1
