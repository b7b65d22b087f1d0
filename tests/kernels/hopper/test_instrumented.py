"""The Hopper kernels with marks: the same bits, each mark once and in its place, and a Timeline of them."""

import ast
import functools
import importlib
import json
import re

import pytest
import torch

from flashlib import gluon
from flashlib.bench import timelines
from flashlib.bench.common import harness
from flashlib.gluon.language import Language
from flashlib.gluon.pointer import store
from flashlib.kernels.compiler import client, compiled
from flashlib.kernels.hopper import forward as finished
from flashlib.kernels.hopper import instrumented, ladder
from flashlib.pipeline import Copy, Finish, FinishStores, Product, Store, Wait, measured, run
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.test_commands import in_the_model

# H, N_q, N_k, causal, consumers of `forward`, stages, programs of persistent kernels
PROBLEMS = [
    (2, 140, 150, True, 2, 2, 2),
    (1, 200, 270, False, 3, 3, 1),
    (3, 77, 200, False, 2, 2, 2),
]
SQUARE = (1, 300, 300, False, 2, 2, 2)
WIDE = 64  # keys of a tile


@functools.cache
def inputs(H, N_q, N_k, d=64):
    generator = torch.Generator().manual_seed(N_q * N_k)
    return [torch.randn(1, H, N, d, generator=generator).bfloat16() for N in (N_q, N_k, N_k)]


def plain(rung):
    """Return the module of a kernel without marks."""
    return finished if rung == "forward" else importlib.import_module(f"{ladder.__name__}.{rung}")


def stored_once(pointer, x, mask=None):
    """Store, as `gl.store` does; a mark, which has 64 bits, must not have been written before."""
    if pointer.X.dtype == torch.int64:
        assert not mask or not pointer.X.view(-1)[pointer.at], "a mark was written before"
    store(pointer, x, mask)


@functools.cache
def played(rung, problem, seed=0, marked=True):
    """Return the results of a kernel, with or without marks, and the commands of its programs."""
    H, N_q, N_k, causal, consumers, stages, programs = problem
    Q, K, V = inputs(H, N_q, N_k)
    call = functools.partial(instrumented.attention, rung=rung) if marked else plain(rung).attention
    with pytest.MonkeyPatch.context() as patch, on_a_cpu.tiled(on_a_cpu.Tiles(consumers, stages, WIDE)):
        patch.setattr(Language, "store", staticmethod(stored_once))
        with gluon.on_cpu(seed=seed, multiprocessors=programs) as ran:
            return call(Q, K, V, causal=causal), [one.said for one in ran]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("rung", measured.MODELS)
def test_marks_do_not_change_a_bit_or_a_command(rung, problem):
    wanted, told = played(rung, problem, marked=False)
    given, said = played(rung, problem)
    assert torch.equal(given.O, wanted.O) and torch.equal(given.lse, wanted.lse)
    assert [[*map(of_model, program.values())] for program in said] == [
        [*map(of_model, program.values())] for program in told
    ]


def of_model(said):
    """Return commands with the names that the model uses."""
    return on_a_cpu.spoken(said, in_the_model)


def expected(said, rung):
    """Return kind and ring of each of a role's commands that has a mark."""
    found = []
    for at, command in enumerate(said):
        in_store_output = rung != "forward" and isinstance(command, FinishStores) and at < len(said) - 1
        if isinstance(command, Wait | Copy | Product | Finish | Store | FinishStores) and not in_store_output:
            part = command.barrier if isinstance(command, Wait) else getattr(command, "slot", "")
            name = in_the_model(str(part)) if part else ""
            found.append((type(command).__name__, name.partition("[")[0]))
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("rung", measured.MODELS)
def test_each_role_writes_each_of_its_events_once_and_in_order(rung, problem, seed):
    """A mark that is written twice fails at the second store."""
    found, said = played(rung, problem, seed)
    for number, program in enumerate(said):
        marks = found.marks(number)
        program = {"consumer 0" if role == "consumer" else role: mine for role, mine in program.items()}
        assert marks.keys() == program.keys()
        for role in marks:
            points = [found.points[point] for _, point in marks[role]]
            assert points[0].kind == "Begin" and {point.role for point in points} == {role.partition(" ")[0]}
            told = [(p.kind, p.what.strip("SPV")) for p in points if p.kind not in ("Begin", "Work")]
            assert told == [
                (kind, "" if kind == "Store" else ring) for kind, ring in expected(program[role], rung)
            ]
            softmaxes = sum(point.what == "softmax" for point in points)
            assert softmaxes == sum(point.what == "S" for point in points)


def row_of(rung):
    """Return the row of a record as in the benchmark, with all programs."""
    found = played(rung, SQUARE)[0]
    row = {"rung": rung, "d": 64, "N": SQUARE[1], "H": SQUARE[0], **found.launched, "grid": len(found.events)}
    row["points"] = [[point.kind, point.what] for point in found.points]
    return row | {"programs": [timelines.recorded_program(found, row, number) for number in range(row["grid"])]}


@pytest.mark.parametrize("rung", measured.MODELS)
def test_marks_become_a_timeline_whose_spans_do_not_overlap(rung):
    row = row_of(rung)
    for number in range(row["grid"]):
        timeline, model = measured.timeline(row, number), run(measured.program(row, number))
        roles = list(row["programs"][number]["marks"])
        for lane in [*roles, "tensor cores"]:
            spans = timeline.lane(lane)
            assert spans and all(a.end <= b.start for a, b in zip(spans, spans[1:], strict=False)), lane
            assert all(0 <= span.start <= span.end <= timeline.clocks for span in spans)
        for role in roles:
            made = [[name for who, name in measured.order(one) if who == role] for one in (timeline, model)]
            assert made[0] == made[1]
            exps = [[s.name.split()[1] for s in one.lane(role) if s.kind == "exp"] for one in (timeline, model)]
            assert exps[0] == exps[1]
            waits = [
                list(dict.fromkeys(s.name for s in one.lane(role) if s.kind == "wait"))
                for one in (timeline, model)
            ]
            barriers = [[name for name in names if "[" in name and "q_empty" not in name] for names in waits]
            assert barriers[0] == barriers[1]
        slots = {span.lane for span in model.spans if span.kind == "fill"}
        for slot in slots:
            held = {kind: [s.name for s in timeline.lane(slot) if s.kind == kind] for kind in ("fill", "hold")}
            assert held["fill"] == held["hold"] == [s.name for s in model.lane(slot) if s.kind == "fill"]


def test_clocks_of_a_timeline_are_those_of_the_marks():
    """A consumer of rung 2: its first tile takes 100 clocks for S and 1000 for the softmax."""
    points = [["Begin", ""], ["Copy", "q"], ["Copy", "k"], ["Copy", "v"], ["Wait", "k_empty"], ["Wait", "v_empty"]]
    points += [["Wait", "q_full"], ["Wait", "k_full"], ["Product", "S"], ["Finish", ""], ["Work", "softmax"]]
    points += [["Wait", "v_full"], ["Product", "PV"], ["Store", ""], ["FinishStores", ""]]
    consumer = [(5, 0), (300, 6), (310, 7), (320, 8), (1000, 9), (2000, 10), (2010, 11), (2100, 12)]
    marks = {
        "producer": [(0, 0), (10, 1), (20, 4), (30, 2), (40, 5), (50, 3)],
        "consumer 0": [*consumer, (2900, 9), (2950, 13), (3000, 14)],
    }
    row = {"rung": "r2_producer", "d": 128, "B_r": 128, "B_c": 64, "stages": 4, "consumers": 1, "points": points}
    row["programs"] = [{"number": 0, "blocks": [1], "marks": marks}]
    timeline = measured.timeline(row)
    told = [(s.kind, s.name, s.start, s.end) for s in timeline.lane("consumer 0")]
    assert told == [
        ("wait", "q_full[0]", 5, 300), ("wait", "k_full[0]", 300, 310), ("wait", "issue S0", 310, 320),
        ("wait", "its products", 320, 1000), ("exp", "softmax 0", 1000, 2000), ("wait", "v_full[0]", 2000, 2010),
        ("fma", "rescale 0", 2010, 2100), ("wait", "its products", 2100, 2900), ("write", "O0.0", 2900, 2950),
        ("wait", "its stores", 2950, 3000),
    ]  # fmt: skip
    takes = 2 * 128 * 64 * 128 / 4096  # clocks of a product
    products = [(s.name, s.start, s.end) for s in timeline.lane("tensor cores")]
    assert products == [("S0", 320, 320 + takes), ("PV0", 2100, 2100 + takes)]
    assert timeline.clocks == 3000 and timeline.use() == pytest.approx(2 * takes / 3000)
    fills = {s.lane: (s.name, s.start, s.end) for s in timeline.spans if s.kind == "fill"}
    assert fills == {"q[0]": ("Q0.0", 10, 300), "k[0]": ("K0", 30, 310), "v[0]": ("V0", 50, 2010)}
    marks["consumer 0"][4] = (700, 9)  # sooner than the peak speed allows from the mark: it was issued before
    assert measured.timeline(row).lane("tensor cores")[0][3:5] == (700 - takes, 700)


def test_a_tile_arrives_when_the_first_consumer_sees_it_and_a_product_ends_with_its_own_wait():
    row = row_of("r4_overlap")
    marks, timeline = measured.marks(row, 0), measured.timeline(row)
    both = [marks["consumer 0"], marks["consumer 1"]]
    seen = [
        next(mark.time for mark in mine if str(getattr(mark.command, "barrier", "")) == "k_full[0]")
        for mine in both
    ]
    fill = next(span for span in timeline.lane("k[0]") if span.kind == "fill")
    assert fill.name == "K0" and fill.end == min(seen) < max(seen)
    for mine in both:
        done = {command.name: time for _, time, _, command in measured._products("", mine)}
        assert all(done[f"S{g}"] < done[f"PV{g - 1}"] for g in range(1, 5)) and len(done) == 10


def test_marks_that_do_not_match_the_commands_of_a_role_are_refused():
    row = row_of("r4_overlap")
    marks = row["programs"][0]["marks"]
    whole, place = (
        marks["consumer 1"],
        next(at for at, (_, p) in enumerate(marks["consumer 1"]) if row["points"][p][1] == "turn"),
    )
    for spoilt, words in (
        (whole[:place] + whole[place + 1 :], "consumer 1 says .*turn"),
        (whole[:-1], "consumer 1 says .*there is no mark for it"),
        ([*whole, whole[-1]], "consumer 1 has said all"),
    ):
        marks["consumer 1"] = spoilt
        with pytest.raises(ValueError, match=words):
            measured.timeline(row)
    del marks["producer"]
    with pytest.raises(ValueError, match="marks are of"):
        measured.timeline(row)


def made(module, d, **options):
    """Compile the kernel of a module whose `attention` takes these options."""
    what = {"kernel": module.__name__, "d": d, "dtype": "bfloat16", "causal": False, "capability": 90}
    call = {"module": module.__name__, "call": "attention", "launched": None, "options": options}
    return compiled.from_answer(client.compile_for_gpu(what | call | {"shape": None, "until": "sass"}), **what)


@pytest.mark.compiles
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("rung", measured.MODELS)
def test_a_kernel_with_marks_has_the_same_arithmetic_and_no_spills_and_its_marks_stay_in_their_places(rung, d):
    """In SASS a mark comes after each product, after each wait for products, and after exponentials."""
    report, without = made(instrumented, d, rung=rung), made(plain(rung), d)
    assert report.spilled == 0 and report.notes == () and report.programs == without.programs == 1
    if not report.sass:
        pytest.skip("the disassembler is missing")
    for name in ("FFMA", "FMUL", "FADD", "FMNMX", "MUFU.EX2", "HGMMA"):
        assert report.sass.count(name) == without.sass.count(name), name
    names = {"SR_CLOCKLO": "c", "HGMMA": "p", "WARPGROUP.DEPBAR": "f", "MUFU.EX2": "e"}
    found = re.findall("|".join(map(re.escape, names)), report.sass)
    order = re.sub(r"(p|e)\1+", r"\1", "".join(names[name] for name in found))
    assert re.fullmatch("([pfe]?c)+", order) and len(found) > order.count("c") > 20, order


def test_a_rung_refuses_what_it_does_not_take():
    Q, K, V = inputs(1, 64, 64)
    with pytest.raises(ValueError, match="no GPU to run this kernel"):
        instrumented.attention(Q, K, V, rung="r3_turns")


@pytest.fixture
def timed(monkeypatch):
    """Kernels are interpreted, and each takes a millisecond; yields Q, K and V."""
    consumers, stages, programs = SQUARE[4:]
    monkeypatch.setattr(timelines, "ms", lambda call: 1.0)
    monkeypatch.setattr(timelines, "WARM", 1)
    with on_a_cpu.tiled(on_a_cpu.Tiles(consumers, stages, WIDE)), gluon.on_cpu(multiprocessors=programs):
        yield inputs(*SQUARE[:3])


@pytest.mark.compiles
@pytest.mark.parametrize("rung", measured.MODELS)
def test_a_row_contains_the_recording(rung, timed, tmp_path):
    row = timelines.measure(rung, *timed)
    source = instrumented.instrument(rung).source
    assert (row["rung"], row["d"], row["ms"]) == (rung, 64, {"plain": 1.0, "marked": 1.0})
    assert row["source"] == timelines.hash_of(source)
    assert [one["number"] for one in row["programs"]] == [0, row["grid"] // 2]
    harness.write(tmp_path / "record.json", {"rows": [row]})
    (read,) = json.loads((tmp_path / "record.json").read_text())["rows"]
    compared = timelines.compared(read, 1)
    assert compared["use"][0] == round(measured.timeline(row, 1).use(), 3) > 0
    assert f"{rung} d 64: program 0 " in timelines.summary(read) and "1.000 times as long" in timelines.summary(
        read
    )


@pytest.mark.parametrize("name", ["O", "lse"])
def test_a_wrong_result_is_not_recorded(name, timed, monkeypatch):
    found = played("r3_turns", SQUARE)[0]
    wrong = found._replace(**{name: getattr(found, name).clone()})
    getattr(wrong, name).view(-1)[5] += 0.01
    monkeypatch.setattr(instrumented, "attention", lambda Q, K, V, rung: wrong)
    with pytest.raises(AssertionError, match=f"{name} of r3_turns with marks is not the same"):
        timelines.measure("r3_turns", *timed)


SOURCE = """
from triton.experimental.gluon import language as gl
from flashlib.kernels.hopper import launch, tiles

WIDTH = gl.constexpr(3)

def attention(Q):
    return launch.attention(_kernel, Q)

@gluon.jit
def _kernel(q):
    gl.store(q, tiles.softmax(q), mask=launch.rows)
"""
SAME = {
    "a docstring": ("_kernel(q):\n", "_kernel(q):\n    'What it does.'\n"),
    "a comment": ("gl.constexpr(3)", "gl.constexpr(3)  # three"),
    "a module that moved": ("kernels.hopper import", "kernels.gluon.ladder import"),
    "a module with another name": ("tiles", "tile_parts"),
    "another order of imports": ("launch, tiles", "tiles, launch"),
    "a function of the CPU": ("attention(Q):", "attention(Q, mask=None):"),
    "another name for a function of the CPU": ("def attention(Q):", "run = launch.run\n\ndef attention(Q):"),
}
OTHER = {
    "a constant": ("(3)", "(4)"),
    "a statement": ("(q, tiles", "(q + 1, tiles"),
    "another function of a module": ("softmax", "maximum"),
    "another module": ("tiles.softmax", "launch.softmax"),
    "another import from elsewhere": ("gluon import language", "gluon import lang"),
    "a decorator": ("@gluon.jit", "@gluon.jit(do_not_specialize=['q'])"),
    "the name of a parameter": ("_kernel(q)", "_kernel(q_ptr)"),
}


@pytest.mark.parametrize("change", SAME | OTHER)
def test_the_hash_of_a_record_depends_on_the_code_for_the_gpu_alone(change):
    old, new = (SAME | OTHER)[change]
    assert old in SOURCE
    changed = SOURCE.replace(old, new)
    assert (timelines.hash_of(changed) == timelines.hash_of(SOURCE)) == (change in SAME)


@pytest.mark.parametrize("rung", measured.MODELS)
def test_docstrings_of_a_kernel_are_not_in_its_hash(rung):
    source = instrumented.instrument(rung).source
    tree, left_out = ast.parse(source), 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
            node.body, left_out = node.body[1:], left_out + 1
    assert left_out, "else there is nothing to leave out"
    assert timelines.hash_of(ast.unparse(tree)) == timelines.hash_of(source)
