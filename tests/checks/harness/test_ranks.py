"""Programs of ranks: mistakes are found in any order, named, shown with their events, and played."""

import re

import pytest

pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.checks.engine import ProgramText, random_cases, solutions  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES, examine_answer  # noqa: E402
from flashlib.checks.harness import ranks  # noqa: E402
from flashlib.checks.harness.ranks import RankSizes  # noqa: E402
from flashlib.ring import Compute, Receive, Send, Wait  # noqa: E402

FORWARD = ranks.RankTask(backward=False, timed=True, blocks=2)


def verdict(edit, name="ring_rank"):
    return examine_answer(name, solutions.program(name).edited(edit).function, 0)


def test_the_smallest_ring_that_fails_is_shown():
    found = verdict("yield Wait() -> pass")
    assert found.mistake == "no_wait"
    shown = dict(found.details)
    assert shown["ring"] == "2 ranks, 4 tokens, contiguous, no mask"
    assert "while it is being received" in shown["at the end"]
    assert shown["events"].splitlines()[0].endswith("rank 0 asks to send own to 1")


def test_a_mistake_that_needs_more_ranks_is_shown_with_them():
    shown = dict(verdict("spare[hop % 2] -> spare[0]").details)
    assert shown["ring"].startswith("3 ranks") and "receives from" in shown["at the end"]
    first, *_, last = shown["events"].splitlines()
    assert first == "..." and last.endswith("rank 2 asks to send kv[0] to 0"), "of many events the last"


@pytest.mark.parametrize("order", ["to 1 from 1", "from 1 to 1"])
def test_the_order_in_which_copies_are_requested_does_not_matter(order):
    def program(me):
        coming = me.buffer("kv")
        copies = {"to": Send(me.next, me.own), "from": Receive(me.previous, coming)}
        yield copies[order.split()[0]]
        yield copies[order.split()[2]]
        yield Wait()
        return me.finish(me.nothing())

    done, numbers, run = FORWARD.played(program, RankSizes(2, 4, "zigzag", True))
    assert done == "0: from 1 to 1 |\n1: from 0 to 0 |" and not run.fault and not numbers[:12].any()


def test_computing_before_and_after_a_request_are_distinguished():
    def early(me):
        yield Compute(me.r, 1)
        yield from late(me, computes=False)

    def late(me, computes=True):
        yield Send(me.next, me.own)
        yield Receive(me.previous, me.buffer("kv"))
        if computes:
            yield Compute(me.r, 1)
        yield Wait()
        return me.finish(me.nothing())

    def told(program):
        return ranks.run_text(FORWARD.played(program, RankSizes(2, 4, "zigzag", True))[2])

    with pytest.raises(ranks.Finding) as found:
        told(early)
    assert found.value.id == "returns"
    assert told(late).splitlines()[0] == "0: from 1 to 1 with 0 1 |"


BODIES = {  # of an answer that is not a right program, and the mistake that must be named
    "no_generator": ("return 3", "return [Wait()]", "return None"),
    "no_command": ("yield 1", "yield None", "yield Send(me.r, me.own)", "yield Send(7, me.own)", "yield Wait",
                   "yield Send(me.next, me.K)", "yield Compute(-1, 1)", "yield Compute(0, 1.5)"),
    "returns": ("yield Wait()", "yield Wait(); return me.nothing()", "yield from ()"),
    "endless": ("while True: yield Wait()", "yield from iter(Wait, 3)"),
    "raises": ("yield Wait(1, 2)", "yield Wait(); raise KeyError(me.r)", "me.own.put((3,)); yield Wait()"),
    "numbers": ("yield Wait(); return me.finish(me.nothing())",),
    "sends_empty": ("me.buffer('kv').arrays; yield Wait()",),
}  # fmt: skip


# "few" are the last of each mistake, and the objects that are not commands.
CASES = [
    ("few" if body in (bodies[-1], "yield 1") else "all", id, body)
    for id, bodies in BODIES.items()
    for body in bodies
]


@pytest.mark.parametrize(("amount", "mistake", "body"), CASES)
def test_whatever_an_answer_does_is_explained(amount, mistake, body):
    text = f"def my_ring_rank(me):\n    {body}"
    answer = ProgramText(text, {"Compute": Compute, "Send": Send, "Wait": Wait}).function
    found = examine_answer("ring_rank", answer, 0)
    assert found.mistake == mistake and len(repr(found).splitlines()) < 30


TWICE = """yield Send(me.next, here) -> if hop == 0:
                yield Send(me.next, here)
                yield Receive(me.previous, me.buffer("twice"))
            yield Send(me.next, here)"""
TOO_MUCH = {  # what is given, and what suffices
    "memory": ('spare[hop % 2] -> me.buffer(f"kv[{hop}]")', "bytes where"),
    "bytes": (TWICE, "bytes where"),
    "no_compute": ("yield Compute(source, n_tiles -> yield Compute(source, 2 * n_tiles", "tiles, and it has"),
}


@pytest.mark.parametrize("mistake", TOO_MUCH)
def test_a_right_answer_that_takes_too_much_is_told_how_much(mistake):
    edit, words = TOO_MUCH[mistake]
    found = verdict(edit)
    given, enough = map(int, re.search(rf"(\d+) {words} (\d+)", found.sentence).groups())
    assert found.mistake == mistake and given > enough > 0


@pytest.mark.parametrize("name", ["ring_rank", "ring_gradients"])
def test_rings_of_every_kind_are_fixed(name, monkeypatch):
    """Two ranks and an odd number, with and without a mask; all layouts; ranks with more rows than others."""
    rings = []
    monkeypatch.setattr(ranks, "examine", lambda answer, problems, *_: rings.extend(problems))
    EXERCISES[name].examine(None, EXERCISES[name].known)
    assert {(ring.P, ring.causal) for ring in rings} >= {(P, causal) for P in (2, 3) for causal in (False, True)}
    assert {r.layout for r in rings if r.causal and r.P > 2} == {"contiguous", "striped", "zigzag"}
    assert any(ring.N % ring.P for ring in rings), "equal parts alone"
    assert max(ring.P for ring in rings) > 5, "as many ranks as are drawn"


def test_numbers_that_depend_on_which_rank_ends_first_are_found(monkeypatch):
    monkeypatch.setattr(random_cases, "cases", lambda make: [])  # ranks with equal tiles end in order
    ended = []  # of all ranks
    edit = "return me.finish(state) -> ended.append(me.r)\n    return me.finish(state)"
    edit += " if ended.index(me.r) == me.r else me.finish(me.nothing())"
    solution = solutions.program("ring_rank")
    answer = ProgramText(solution.edited(edit).source, {**solution.names, "ended": ended}).function

    def program(me):
        if me.r == 0:
            ended.clear()
        return answer(me)

    found = ranks.examine(program, [RankSizes(4, 8, "contiguous", False)], EXERCISES["ring_rank"].known, FORWARD)
    assert found.mistake == "numbers"


@pytest.mark.usefixtures("rings")
@pytest.mark.parametrize("name", ["ring_rank", "ring_gradients"])
def test_a_solution_is_right_whatever_is_drawn(name, monkeypatch):
    draw = random_cases.cases
    monkeypatch.setattr(random_cases, "cases", lambda make: draw(make, count=4))
    assert examine_answer(name, solutions.program(name).function, 0).right
    assert EXERCISES[name].known.program is solutions.program(name)


def test_a_wrong_program_is_played():
    pytest.importorskip("anywidget")
    answer = solutions.program("ring_rank").edited("yield Wait() -> pass").function
    found = checks.ring_rank(answer)
    player = found.run.play(answer)
    assert "read too early" in repr(player) and "way='own'" in repr(player)
    assert verdict("yield Wait() -> pass", "ring_gradients").run is None
