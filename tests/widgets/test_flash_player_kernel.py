"""The player plays a learner's own kernel, and parts from the truth where the kernel does."""

# ruff: noqa: I001  flashlib.kernels before triton
import re
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")
pytest.importorskip("cloudpickle")
pytest.importorskip("flashlib.kernels", exc_type=ImportError)

import torch

from flashlib.checks.engine import solutions
from flashlib.checks.engine.exercises import EXERCISES
from flashlib.kernels import INTERPRETED
from flashlib.kernels.ladder import r3_flash, r4_exp2, r5_causal
from flashlib.learner.kernels import run
from flashlib.learner.loop import Recorder
from flashlib.types import Step
from flashlib.widgets import FlashPlayer
from flashlib.widgets.flash_player import learner
from flashlib.widgets.flash_player.kernel import LearnersKernel
from tests.checks import answers
import triton
import triton.language as tl

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="compiled kernels are not watched")
SETTING = {"order": "fa2", "scale": None, "mask": None}


@pytest.fixture(autouse=True)
def in_this_process(request, monkeypatch):
    """A process for each kernel would take most of the time."""

    def call_here(function, *arguments, limit):  # noqa: ARG001
        with warnings.catch_warnings(action="ignore"):  # as in a process of a check
            return function(*arguments), ""

    if not request.node.get_closest_marker("process"):
        monkeypatch.setattr(run.process, "call", call_here)


def head(N_q=40, N_k=56, d=16):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(N, d)).astype(np.float32) for N in (N_q, N_k, N_k)]


def own(name):
    """The solution of an exercise, or a right answer in another style, by its words."""
    found = [a.program for a in answers.right() if a.exercise == "attention" and a.words.startswith(name)]
    return found[0].function if found else solutions.solution(name)


TILES = {"B_r": 16, "B_c": 32}
RIGHT = {  # {name: (what makes it, B_r and B_c)}
    "rung 3": (lambda: partial(r3_flash.attention, **TILES), (16, 32)),
    "rung 4, base 2": (lambda: partial(r4_exp2.attention, **TILES), (16, 32)),
    "rung 5, two loops in a helper": (lambda: partial(r5_causal.attention, **TILES), (16, 32)),
    "the solution": (lambda: own("attention"), (32, 32)),
    "the dot in a helper, two loops, base 2": (lambda: own("strides passed"), (32, 16)),
    "block pointers": (lambda: own("block pointers"), (16, 32)),
    "S transposed": (lambda: own("all in fp32"), (40, 16)),
    "autotuned, a while loop, three axes": (lambda: own("autotuned"), (32, 32)),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_right_at_each_step(name, causal):
    make, blocks = RIGHT[name]
    played = LearnersKernel(make()).play(*head(), causal)
    found = learner.verdict(played.recording)
    assert (played.B_r, played.B_c) == blocks
    assert found["first"] is None and found["O"] is None and not found["missed"] and not found["remark"]
    assert max(found["errors"]) < 1e-5


# --- mistakes ---

CASES = {  # sizes of Q and of K, and causal
    "not causal": ((80, 80), False),
    "causal": ((72, 88), True),
    "rows without keys": ((72, 44), True),
}
MORE_WRONG = (  # than the model of their mistake
    "no guard",  # where a row sees no key
    "the axes of the grid",  # programs take heads for row blocks
)
FEW = "l_not_rescaled", "tail_counted", "scale_missing", "not_divided", "outside"
WITH_UPDATE = """
@triton.jit
def flash_kernel(
    Q_ptr, K_ptr, V_ptr, O_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
):
    offs_m = tl.program_id(0) * B_R + tl.arange(0, B_R)
    rows = offs_m[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(Q_ptr + rows, mask=offs_m[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
    past = N_k - N_q
    end = tl.minimum((tl.program_id(0) + 1) * B_R + past, N_k) if CAUSAL else N_k
    for start in range(0, end, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + tl.arange(0, D)[None, :]
        k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        visible = (offs_n < N_k)[None, :] & ((offs_n[None, :] <= offs_m[:, None] + past) | (not CAUSAL))
        m, l, O_acc = my_inner_loop(q, k, v, m, l, O_acc, visible, scale)
    O = O_acc / tl.where(l == 0.0, 1.0, l)[:, None]
    tl.store(O_ptr + rows, O, mask=offs_m[:, None] < N_q)


def my_flash(Q, K, V, causal):
    O = torch.empty_like(Q)
    N_q, d = Q.shape[2:]
    grid = (triton.cdiv(N_q, 16),)
    flash_kernel[grid](Q, K, V, O, N_q, K.shape[2], d**-0.5, D=d, B_R=16, B_C=16, CAUSAL=causal)
    return O
"""


@cache
def wrong():
    """Return (mistake, the way that its model goes wrong or "", the function) of whole kernels and of updates."""
    found = [answer for answer in answers.wrong() if answer.exercise == "attention"]
    for answer in answers.wrong():
        if answer.exercise == "inner_loop" and "plain_function" not in answer.mistake:
            named = {"torch": torch, **answer.program.names}
            program = replace(answer.program, source=answer.source + "\n\n" + WITH_UPDATE, names=named)
            found.append(answer._replace(program=program))
    return found


@cache
def ways():
    return {mistake.id: mistake.ways for mistake in EXERCISES["attention"].known.mistakes()}


def verdict_on_model(way, inputs, causal, blocks):
    """Return the verdict on the model in NumPy of a known mistake, on the same tiles."""
    tiles = f"; B_r = {blocks[0]}; B_c = {blocks[1]}; skips = True"
    attended = EXERCISES["attention"].known.program.edited(way + tiles).function
    step, seen = attended.__globals__["step"], []

    def noted(*arguments):
        state = step(*arguments)
        seen.append(Step(arguments[-2] // blocks[0], arguments[-1] // blocks[1], *state))
        return state

    attended.__globals__["step"] = noted
    with np.errstate(all="ignore"):
        O, lse = attended(*(X[None, None] for X in inputs), causal)
    setting = {"B_r": blocks[0], "B_c": blocks[1], "causal": causal, **SETTING}
    recording = learner.record(lambda Q, K, V: iter(seen), *inputs, **setting)
    if O.ndim < 4:  # the two are exchanged
        return learner.verdict(recording) | {"lse": True}
    found = learner.verdict(recording._replace(O=O[0, 0]))
    return found | {"lse": learner.wrong_rows(lse[0, 0], Recorder(*inputs, **setting).lse, found["tolerance"])}


def shown(found):
    """Return the step at which steps part from the truth; "end" if what comes of them is wrong; "right"."""
    if found["first"]:
        return found["first"][0]
    return "end" if any(found.get(name) for name in ("missed", "O", "lse", "remark", "note")) else "right"


@cache
def shown_of_model(way, case, blocks):
    sizes, causal = CASES[case]
    with suppress(ValueError):  # the model of one cannot do without an exception, or has no step at all
        return shown(verdict_on_model(way, head(*sizes), causal, blocks))


def survey(answer, case):
    """Return where the player shows a wrong answer, or its sentence; and where its models show the mistake."""
    sizes, causal = CASES[case]
    try:
        played = LearnersKernel(answer.program.function).play(*head(*sizes), causal)
    except (TypeError, ValueError) as error:
        return str(error), set()
    known = (answer.words,) if answer.origin == "terms" else ways().get(answer.mistake, ())
    models = {shown_of_model(way, case, (played.B_r, played.B_c)) for way in known} - {None}
    if len(played.recording.O) and answer.exercise == "inner_loop":  # it stores no lse
        models |= {"right"} if "end" in models else set()
    return shown(played.verdict), models


@pytest.mark.parametrize("amount", ["few", "all"])
def test_a_wrong_kernel_parts_at_the_step_at_which_the_model_of_its_mistake_does(amount):
    """Of what no model has, as loads beside a tensor, something is said or the check alone sees it."""
    few = {answer.mistake: answer for answer in reversed(wrong()) if answer.mistake in FEW}
    for answer in few.values() if amount == "few" else wrong():
        for case in list(CASES)[: 1 if amount == "few" else None]:
            found, models = survey(answer, case)
            more = any(words in answer.words for words in MORE_WRONG)
            said = answer.mistake, answer.words, case, found, models
            assert found in models or not models or more, f"{said}\n{answer.source}"


# --- other kernels ---


@triton.jit
def a_row(Q, K, V, O, N_k, scale, D: tl.constexpr, SLIP: tl.constexpr):
    """One row for each program, one key for each turn, without tl.dot, in names of its own."""
    r, e = tl.program_id(0), tl.arange(0, D)
    q = tl.load(Q + r * D + e)
    best, total, sums = -float("inf"), 0.0, tl.zeros((D,), tl.float32)
    for key in range(N_k):
        s = tl.sum(q * tl.load(K + key * D + e), axis=0)
        new = tl.maximum(best, s)
        keep, p = tl.exp((best - new) * scale), tl.exp((s - new) * scale)
        total = (total if SLIP else total * keep) + p
        sums = sums * keep + p * tl.load(V + key * D + e)
        best = new
    tl.store(O + r * D + e, sums / total)


def in_rows(Q, K, V, slip=False):
    O = torch.empty_like(Q)
    a_row[(Q.shape[2],)](Q, K, V, O, K.shape[2], Q.shape[3] ** -0.5, D=Q.shape[3], SLIP=slip)
    return O


def test_a_kernel_without_tl_dot_in_names_of_its_own_is_played():
    Q, K, V = head(5, 7)
    played = LearnersKernel(in_rows).play(Q, K, V, False)
    assert (played.B_r, played.B_c) == (1, 1)
    assert learner.verdict(played.recording)["first"] is None and len(played.recording.steps) == 35
    Q, K, V = (np.ones((n, 16), np.float32) for n in (5, 7, 7))
    Q[2], K[3] = 2, 1.5  # the maximum grows at key 3
    found = learner.verdict(LearnersKernel(partial(in_rows, slip=True)).play(Q, K, V, False).recording)
    assert found["first"] == [3, "l", 0]


@triton.jit
def unlike(Q, K, V, O, N_q, N_k, D: tl.constexpr, B: tl.constexpr):
    """Nothing in it is m or l."""
    r, e = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    q = tl.load(Q + r[:, None] * D + e[None, :], mask=r[:, None] < N_q, other=0.0)
    x, y, acc = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32), tl.zeros((B, D), tl.float32)
    for start in range(0, N_k, B):
        c = start + tl.arange(0, B)
        k = tl.load(K + c[:, None] * D + e[None, :], mask=c[:, None] < N_k, other=0.0)
        x += 100.0
        y += 200.0
        acc += tl.dot(q, k.T, input_precision="ieee")
    tl.store(O + r[:, None] * D + e[None, :], acc, mask=r[:, None] < N_q)


def asked(Q, K, V):
    O = torch.empty_like(Q)
    unlike[(triton.cdiv(Q.shape[2], 16),)](Q, K, V, O, Q.shape[2], K.shape[2], D=16, B=16)
    return O


def test_it_asks_for_names_where_values_do_not_tell():
    widget = FlashPlayer.from_kernel(asked, *head(20, 20))
    assert re.fullmatch(
        r"which variables of the loop in line \d+ of unlike are m, l and O_acc cannot be told from their numbers: "
        r'pass their names, from_kernel\(asked, m="...", l="...", O_acc="..."\); '
        r"it holds q \(16, 16\), x \(16,\), y \(16,\), acc \(16, 16\), k \(16, 16\)\.",
        widget.problem,
    )
    named = FlashPlayer.from_kernel(asked, *head(20, 20), m="x", l="y", O_acc="acc")
    assert "wrong from step 1 on, in m of row 0" in repr(named)
    for name in ("z", "acc"):
        widget = FlashPlayer.from_kernel(asked, *head(20, 20), m=name, l="y", O_acc="acc")
        assert widget.problem.startswith(f"m='{name}' is no variable of the loop in line")


@triton.jit
def breaks_off(Q, K, V, O, N_k, D: tl.constexpr, B: tl.constexpr):
    r, e = tl.arange(0, B), tl.arange(0, D)
    q = tl.load(Q + r[:, None] * D + e[None, :])
    m, l, O_acc = (
        tl.full((B,), -float("inf"), tl.float32),
        tl.zeros((B,), tl.float32),
        tl.zeros((B, D), tl.float32),
    )
    for start in range(0, N_k, B):
        k = tl.load(K + (start + r)[:, None] * D + e[None, :])
        S = tl.dot(q, k.T, input_precision="ieee") / 4
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))
        alpha, P = tl.exp(m_old - m), tl.exp(S - m[:, None])
        l = l * alpha + tl.sum(P, axis=1)
        O_acc = O_acc * alpha[:, None] + tl.dot(P, tl.load(V + (start + r)[:, None] * D + e[None, :]))
        tl.static_assert(start < B, "no more")
    tl.store(O + r[:, None] * D + e[None, :], O_acc / l[:, None])


def broken(Q, K, V, causal):
    O = torch.empty_like(Q)
    breaks_off[(1,)](Q, K, V, O, K.shape[2], D=16, B=16)
    return O


def test_an_exception_ends_the_play_and_is_told():
    widget = FlashPlayer.from_kernel(broken, *head(16, 48))
    found = widget.frames["learner"]
    assert len(widget.frames["steps"]) == 1 and found["first"] is None
    assert re.match("broken raises .*no more", found["remark"])
    assert found["missed"] == [[0, 1], [0, 2]] and found["O"]


def plain(Q, K, V, causal):
    return Q


def stub(Q, K, V, causal):
    """Return O and lse."""
    raise NotImplementedError


def forgetful(Q, K, V, causal):
    pass


def raises(Q, K, V, causal):
    return Q @ K


def sloped(Q, K, V, slope):
    return Q


def no_loop(Q, K, V):
    unlike[(1,)](Q, K, V, Q, 1, 0, D=16, B=16)
    return Q


@pytest.mark.parametrize(
    "function, setting, said",
    [
        (stub, {}, r"stub is not solved yet: there is nothing to show\."),
        (plain, {}, r"plain launches no kernel: what plays is the loop of one, marked @triton\.jit\."),
        (forgetful, {}, "forgetful launches no kernel: .*"),
        (raises, {}, "raises raises RuntimeError: .*"),
        (sloped, {}, r"sloped takes \(Q, K, V, slope\); pass a function of Q, K and V, .* and causal, that .*"),
        (asked, {"causal": True}, "asked takes no causal, and causal=True was passed; leave it out."),
        (no_loop, {}, "no loop of unlike loads K or V, or multiplies tiles: what plays is the loop over K and V."),
        (unlike, {}, "unlike is a kernel; pass the function that launches it."),
        (3, {}, "a int was passed; pass the function that launches the kernel."),
        (plain, {"N": 400}, "S would have 400 x 400 .*"),
    ],
)
def test_what_cannot_be_played_is_refused_in_a_sentence(function, setting, said):
    assert re.fullmatch(said, FlashPlayer.from_kernel(function, **setting).problem)


def test_it_begins_with_less_and_names_the_kernel():
    widget = FlashPlayer.from_kernel(own("attention"), *head())
    assert (widget.panels, widget.frames["learner"]["name"]) == ("less", "my_attention")
    words = [f"w{k}" for k in range(56)]
    widget = FlashPlayer.from_kernel(own("attention"), *head(), words=words, panels="all")
    assert (widget.panels, widget.frames["words"]) == ("all", words)


def test_block_sizes_are_the_kernel_s():
    with pytest.raises(TypeError, match="from_kernel takes no B_r: the kernel has its own"):
        FlashPlayer.from_kernel(stub, B_r=4)


# --- the widget ---


def test_the_first_head_of_tensors_is_played_and_what_can_be_changed_is_changed():
    heads = [torch.from_numpy(np.stack([X, -X]))[None] for X in head()]
    widget = FlashPlayer.from_kernel(own("attention"), *heads)
    tiles = "N_q=40, N_k=56, d=16, B_r=32, B_c=32, order='fa2'"
    assert repr(widget) == f"FlashPlayer({tiles}, causal=False: 4 steps of 2 x 2 tiles, right on these numbers)"
    assert widget.frames["controls"] == ["causal"] and widget.frames["learner"]["kernel"]
    widget.causal = True
    assert "causal=True: 4 steps" in repr(widget) and widget.figure().png()
    random = FlashPlayer.from_kernel(partial(r3_flash.attention, **TILES), N=24)
    assert random.frames["controls"] == ["causal", "N"] and len(random.frames["steps"]) == 2
    random.N = 40
    assert "N_q=40" in repr(random) and "6 steps" in repr(random)
    assert random.frames["lines"]["weights"] == ["P = tl.exp(S - shift[:, None])"]


def test_bytes_read_are_those_of_the_kernel_s_own_loads():
    read = LearnersKernel(own("attention")).play(*head(), False).recording.read
    assert read[-1] == 4 * (40 * 16 + 2 * 2 * 56 * 16)  # Q once, K and V for each of two row blocks
    assert read[0] == 4 * (32 * 16 + 2 * 32 * 16)


@pytest.mark.process
def test_a_kernel_that_does_not_end_ends_with_a_sentence(monkeypatch):
    source = "def my_attention(Q, K, V, causal):\n    while True: pass"
    names = {"__name__": "__learner__"}
    exec(source, names)
    with monkeypatch.context() as patch:
        patch.setattr(run, "LIMIT", 0.5)
        widget = FlashPlayer.from_kernel(names["my_attention"])
    assert widget.problem == "my_attention did not end within 0.5 seconds."
    assert "right on these numbers" in repr(FlashPlayer.from_kernel(own("attention")))
