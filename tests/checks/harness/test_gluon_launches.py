"""Answers in Gluon: mistakes are found in every style, reported with their causes, and played."""

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
pytest.importorskip("traitlets")
kernels = pytest.importorskip("flashlib.kernels")

from flashlib import checks, gluon  # noqa: E402
from flashlib.checks.engine import Finding, random_cases, solutions  # noqa: E402
from flashlib.checks.harness import gluon_causes, gluon_launches, gluon_parts  # noqa: E402
from flashlib.kernels.compiler import learner_kernels  # noqa: E402
from flashlib.learner import process  # noqa: E402
from flashlib.pipeline import Product, check  # noqa: E402
from flashlib.widgets import PipelinePlayer  # noqa: E402
from tests.checks.test_answers import call_here, wrong  # noqa: E402


@pytest.fixture
def here(monkeypatch):
    """Check answers in this process, in fixed cases only, without compiling."""
    monkeypatch.setattr(process, "call", call_here)
    monkeypatch.setattr(random_cases, "cases", lambda make, count: [])
    monkeypatch.setattr(learner_kernels, "refusal", lambda sent: None)


def edited(name, *ways):
    program = solutions.program(name)
    for way in ways:
        program = program.edited(way)
    return program.function


WITHOUT_K_FREE = "mbarrier.wait(k_empty.index(s), free) -> pass"


def test_a_missing_wait_is_reported_with_its_case_and_played(here):
    answer = edited("gluon_producer", WITHOUT_K_FREE)
    verdict = checks.gluon_producer(answer, seed=1)
    assert verdict.mistake == "refilled" and "k_slots[0]" in verdict.sentence
    assert "K = shape (1, 1, 320, 64)" in dict(verdict.details)["input"], "the smallest case that fails"
    player = verdict.run.play(answer)
    assert isinstance(player, PipelinePlayer) and not player.problem and "goes wrong" in repr(player)


@pytest.mark.parametrize("way, kind", [
    ("mbarrier.wait(v_full.index(s), there) -> pass", "read too early"),
    ("S = warpgroup_mma_wait(0, deps=(S_begun,))\\n    mbarrier.arrive(k_empty.index(s)) -> "
     "mbarrier.arrive(k_empty.index(s))\\n    S = warpgroup_mma_wait(0, deps=(S_begun,))", "overwritten"),
    ("mbarrier.arrive(v_empty.index(s)) -> pass", "deadlock"),
])  # fmt: skip
def test_a_fault_is_played_as_the_pipeline_reports_it(way, kind, here):
    answer = edited("consumer_step", way)
    verdict = checks.consumer_step(answer, seed=1)
    assert verdict.outcome == "wrong" and dict(verdict.details)["schedule"]
    player = verdict.run.play(answer)
    assert kind in repr(player) and not player.problem


@pytest.mark.parametrize("amount", ["few", "all"])
def test_every_fault_of_a_producer_is_played(amount, here):
    """All findings about barriers and slots of the wrong answers: a random schedule has its own fault."""
    few, played = wrong("gluon_producer", "few"), 0
    for answer in few[::3] if amount == "few" else few + wrong("gluon_producer", amount):
        verdict = checks.gluon_producer(answer.program.function, seed=1)
        if verdict.run is not None:
            player = verdict.run.play(answer.program.function)
            played += isinstance(player, PipelinePlayer) and not player.problem
            assert player is not None, answer
    assert played > 1  # others are not events of a run


def test_a_role_that_writes_into_a_slot_of_others_is_named_and_played(here):
    answer = edited(
        "hopper_attention",
        "q_slot.store(O.to(q_slots.dtype)) -> q_slots.index(1 - ME).reshape([64, D]).store(O.to(q_slots.dtype))",
    )
    verdict = checks.hopper_attention(answer, seed=1)
    assert verdict.mistake == "written_early" and "writes to q_slots[" in verdict.sentence
    assert "goes wrong" in repr(verdict.run.play(answer))


@pytest.mark.usefixtures("short_searches")
def test_a_right_answer_has_nothing_to_play(here):
    verdict = checks.gluon_producer(solutions.solution("gluon_producer"), seed=1)
    assert verdict.right and verdict.run is None


def test_all_programs_of_a_right_answer_issue_the_same_commands_under_other_schedules():
    """The launches of the solution, with ragged sizes: each program is right in every order that is tried."""
    rng, ran = np.random.default_rng(3), []
    Q, K, V = (rng.normal(size=(1, 2, N, 64)).astype(np.float32) for N in (77, 150, 150))
    with gluon.taken(lambda *launch: None, ran):
        gluon_parts.run_attention(solutions.solution("hopper_attention"), Q, K, V, True, "bfloat16", "BHNd")
    assert len(ran) == 2 and all(
        set(one.said) == {"attention_consumer 0", "attention_consumer 1", "gluon_producer"} for one in ran
    )
    for one in ran:
        assert one.fault is None and check(one.program(), states=500, schedules=40).fault is None
        assert {barrier.name: barrier.count for barrier in one.barriers}["k_empty[0]"] == 2


MADE = "tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 2)"
PASSED = "q, k, v = (q_slots, q_full), (k_slots, k_full, k_empty), "


@pytest.mark.parametrize("lines, passed", [
    (("k_slots = tiles.slots(k_desc, STAGES)", "k_full = tiles.barriers(STAGES, 1)",
      "k_empty = tiles.barriers(STAGES, 2)"), PASSED),
    ((f"k = {MADE}",), "q, v = (q_slots, q_full), "),
    (("k = (", *(f"    tiles.{one}," for one in MADE.split(", tiles.")), ")"), "q, v = (q_slots, q_full), "),
    ((f"k, other = ({MADE}), None",), "q, v = (q_slots, q_full), "),
])  # fmt: skip
def test_memory_that_a_helper_of_the_course_allocates_has_the_kernels_name_for_it(lines, passed):
    lines = "\\n    ".join(lines).replace("    tiles.tiles.", "    tiles.")
    ways = f"k_slots, k_full, k_empty = {MADE} -> {lines}", f"`{PASSED}` -> `{passed}`"
    answer, ran = edited("hopper_attention", *ways), []
    Q = np.ones((1, 1, 64, 64), np.float32)
    with gluon.taken(lambda *launch: None, ran):
        gluon_parts.run_attention(answer, Q, Q, Q, False, "float16", "BHNd")
    names = {barrier.name for barrier in ran[0].barriers} | {slot.name for slot in ran[0].slots}
    assert {f"{x}_{part}[0]" for x in "kv" for part in ("slots", "full", "empty")} <= names


@pytest.mark.parametrize("name, way, line", [
    ("consumer_step", "deps=(O_begun,) -> deps=O_begun", "O_acc = warpgroup_mma_wait(0, deps=O_begun)"),
    ("hopper_attention", "gl.full([64], N_k, gl.int32, BY_ROW) -> N_k", "seen = cols[None, :] < limits[:, None]"),
])  # fmt: skip
def test_what_the_hardware_refuses_is_reported_with_the_learners_line(name, way, line, here):
    verdict = getattr(checks, name)(edited(name, way), seed=1)
    assert verdict.details[0] == ("line", line)


def test_a_store_past_the_end_says_which_program_of_which_grid(here):
    answer = edited("hopper_attention", "(triton.cdiv(N_q, 128), H, B) -> (H, triton.cdiv(N_q, 128), B)")
    assert "program (0, 1) of the grid (1, 2) stores 64 numbers" in checks.hopper_attention(answer).sentence


def test_a_program_that_multiplies_but_stores_nothing_is_reported():
    """A program without a row block that ends at once is not: a kernel may start one per multiprocessor."""

    def ran(number, said, stored):
        return gluon.Ran((number, 0, 0), {"consumer": said}, (), (), {}, None, True, {}, stored)

    product, O = [Product("S", (), 1)], np.zeros((3, 5))
    first, idle, without = ran(0, product, 15), ran(1, product, 0), ran(2, [], 0)
    assert list(gluon_causes.wasted_work([first, without], (O,))) == []
    (found,) = gluon_causes.wasted_work([first, without, idle], (O,))
    assert (found.id, found.fields["number"]) == ("idle_program", "1, 0")
    (found,) = gluon_causes.wasted_work([first, first._replace(number=(1, 0, 0), stored=1)], (O,))
    assert (found.id, found.fields["n"], found.fields["there"]) == ("stored_twice", 16, 15)


@pytest.mark.parametrize("products, causal, ids", [
    ((2, 4), (1, 1, 256, 256), []),
    ((4, 4), (1, 1, 256, 256), ["all_tiles"]),
    ((4, 4), (), []),
    ((4, 4), (1, 1, 130, 200), []),  # both row blocks may see keys of the last tile
    ((2, 2), (1, 1, 256, 70), []),  # a row block that sees no key may take a tile
    ((4, 4), (2, 1, 256, 256), []),  # a program takes several row blocks
])  # fmt: skip
def test_under_the_causal_mask_programs_visit_fewer_tiles_than_there_are(products, causal, ids):
    ran = [
        gluon.Ran((n, 0, 0), {"consumer": [Product("S", (), 1)] * count}, (), (), {}, None, True, {}, 1)
        for n, count in enumerate(products)
    ]
    assert [one.id for one in gluon_causes.wasted_work(ran, (np.zeros(2),), causal)] == ids


def test_a_tensor_is_surrounded_by_nan_and_aligned_for_the_copy_unit():
    X = np.arange(2 * 3 * 5 * 64, dtype=np.float32).reshape(2, 3, 5, 64) % 7
    for order in ("BHNd", "BNHd"):
        placed = gluon_launches.placed(X, "float16", order)
        assert placed.shape == X.shape and np.array_equal(placed.float().numpy(), X)
        assert placed.data_ptr() % 16 == 0 and placed.is_contiguous() == (order == "BHNd")


def test_causes_are_found_whatever_the_barriers_are_called():
    text = solutions.program("hopper_attention").source.replace("k_full", "ready").replace("k_empty", "free_again")
    text = text.replace("mbarrier.expect(ready.index(s), k_desc.block_type.nbytes)", "pass")
    harness = gluon_launches.Harness(gluon_parts.run_attention, solutions.build("hopper_attention", text))
    Q = np.ones((1, 1, 64, 64), np.float32)
    with pytest.raises(Finding) as found:
        harness(Q, Q, Q, False, "float16", "BHNd")
    assert found.value.id == "not_expected" and str(found.value.fields["barrier"]) == "ready[0]"
    assert gluon_causes.cause.__doc__ and harness.wrong.report.fault


@pytest.mark.compiles
@pytest.mark.parametrize("name, way, line", [
    ("consumer_step", "return m, l, O_acc -> found = []\\n    found.append(m)\\n    return found[0], l, O_acc",
     "append"),
    ("gluon_producer", "free = ((g // STAGES) & 1) ^ 1 -> "
     "free = ((g // STAGES) & 1) ^ 1\\n        if s >= STAGES:\\n            break", "break"),
    ("hopper_attention", "    b, h = gl.program_id(2), gl.program_id(1) -> "
     "`    ids = {1: gl.program_id(1)}\\n    b, h = gl.program_id(2), ids[1]`", "{1:"),
])  # fmt: skip
def test_what_the_compiler_refuses_is_reported_with_the_learners_line(name, way, line, monkeypatch):
    monkeypatch.setattr(process, "call", call_here)
    program = solutions.program(name).edited(way)
    verdict = checks.EXERCISES[name](program.function, seed=1)
    assert verdict.mistake == "refused", verdict
    ((label, text),) = [pair for pair in verdict.details if pair[0].startswith("line ")]
    assert line in text and program.source.splitlines()[int(label.split()[1]) - 1].strip() == text
    assert dict(verdict.details)["compiled for"] == "sm_90"


@pytest.mark.compiles
@pytest.mark.parametrize("name, way, line, said", [
    ("consumer_step", "B_C: gl.constexpr = k_slots.type.shape[3] -> B_C = k_slots.type.shape[3]", "[B_C, D]",
     "must know B_C, and without an annotation only the GPU does: write B_C: gl.constexpr = ..."),
    ("hopper_attention", "BY_ROW: gl.constexpr = -> BY_ROW =", "BY_ROW =", "write BY_ROW: gl.constexpr = ..."),
    ("hopper_attention", "D: gl.constexpr = k[0] -> D = k[0]", "gl.zeros([64, D]", "must know D, "),  # in gl.zeros
    ("hopper_attention", "N_k, STAGES: gl.constexpr, CAUSAL -> N_k, STAGES, CAUSAL", "tiles.slots(k_desc, STAGES)",
     "write STAGES: gl.constexpr in the list of parameters"),
])  # fmt: skip
def test_a_size_without_its_annotation_is_explained(name, way, line, said, monkeypatch):
    monkeypatch.setattr(process, "call", call_here)
    verdict = checks.EXERCISES[name](solutions.program(name).edited(way).function, seed=1)
    assert verdict.mistake == "refused" and said in verdict.sentence, verdict
    assert any(label.startswith("line ") and line in text for label, text in verdict.details), verdict
