"""The Hopper rungs: exact on a CPU under random schedules, saying what the protocol says; compiled, no spills."""

import functools
import importlib
import re

import pytest
import torch

from flashlib import torch_ref
from flashlib.gpus import GPUS
from flashlib.kernels.compiler import compiled
from flashlib.kernels.hopper import ladder
from flashlib.kernels.hopper.interpreter import run as interpreter
from flashlib.pipeline import Compute, Fault, Product, commands, protocol

# For each rung: rows of a consumer, consumers, and the program of the protocol.
ALIKE = protocol.program_alike
RUNGS = {
    "r1_alike": (128, 1, ALIKE),
    "r2_producer": (128, 1, functools.partial(protocol.program, consumers=1, turns=False, overlap=False)),
    "r3_consumers": (64, 2, functools.partial(protocol.program, turns=False, overlap=False)),
    "r3_turns": (64, 2, functools.partial(protocol.program, overlap=False)),
    "r4_overlap": (64, 2, protocol.program),
    "r5_registers": (64, 2, protocol.program),
    "r6_persistent": (64, 2, protocol.program),
}
# B, H, H_k, N_q, N_k, d, causal, stages, B_c; of r6 the programs, and heads in a section
PROBLEMS = [
    (1, 2, 1, 140, 211, 64, True, 2, 64, 2, 2),
    (2, 2, 2, 77, 53, 64, True, 2, 64, 3, 1),
    (1, 1, 1, 200, 333, 64, False, 3, 64, 1, 1),
    (1, 1, 1, 131, 257, 128, False, 2, 128, 1, 1),
]
SMALL = (1, 1, 1, 77, 131, 64, True, 2, 64, 1, 1)
LONG = (1, 1, 1, 128, 448, 64, False, 2, 64, 1, 1)  # seven tiles and two slots


def module_of(name):
    return importlib.import_module(f"{ladder.__name__}.{name}")


@functools.cache
def inputs(B, H, H_k, N_q, N_k, d, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(N_q * N_k)
    shapes = ((B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d))
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


@functools.cache
def run(name, problem, seed=0, dtype=torch.bfloat16, scale=None):
    *sizes, causal, stages, B_c, programs, section = problem
    programs = programs if name == "r6_persistent" else None
    return of_rung(name, *inputs(*sizes, dtype), causal, scale, stages, B_c, programs, section, seed)


def of_rung(name, Q, K, V, causal, scale, stages, B_c, programs, section, seed):
    rows, consumers, _ = RUNGS[name]
    return interpreter.run(
        Q, K, V, causal, scale, consumers, stages, B_c, programs, section, seed,
        module=module_of(name), rows=rows, names=ladder.NAMES,
    )  # fmt: skip


@functools.cache
def exact(problem, dtype=torch.bfloat16, scale=None):
    *sizes, causal = problem[:7]
    Q, K, V = (X.double() for X in inputs(*sizes, dtype))
    K, V = (X.repeat_interleave(Q.shape[1] // K.shape[1], dim=1) for X in (K, V))
    return torch_ref.attention(Q, K, V, causal=causal, scale=scale)


def check(given, wanted, tolerance):
    assert given.O.isfinite().all() and torch.equal(given.lse.isneginf(), wanted.lse.isneginf())
    seen = ~wanted.lse.isneginf()
    assert (given.O - wanted.O).abs().max() <= tolerance
    torch.testing.assert_close(given.lse[seen].double(), wanted.lse[seen], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_is_exact(name, problem):
    check(run(name, problem)[0], exact(problem), 2e-2)


@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_is_exact_in_fp16(name):
    check(run(name, SMALL, dtype=torch.float16)[0], exact(SMALL, torch.float16), 3e-3)


@pytest.mark.parametrize("name", RUNGS)
def test_no_schedule_changes_a_bit(name):
    first, *others = (run(name, SMALL, seed)[0] for seed in range(4))
    assert all(torch.equal(first.O, other.O) and torch.equal(first.lse, other.lse) for other in others)


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("scale", [1e9, 1e-30])
def test_no_scale_gives_nan(name, scale):
    check(run(name, SMALL, scale=scale)[0], exact(SMALL, scale=scale), 3e-2)


@pytest.mark.parametrize("name", RUNGS)
def test_keys_of_minus_infinity_are_not_seen(name):
    Q, K, V = (X.clone() for X in inputs(1, 1, 1, 77, 131, 64))
    Q[..., 0], K[0, 0, 64:, 0] = 1, -float("inf")
    given = of_rung(name, Q, K, V, False, None, 2, 64, 1, 1, 0)[0]
    check(given, torch_ref.attention(Q.double(), K[:, :, :64].double(), V[:, :, :64].double()), 2e-2)


def spoken(said):
    """Return commands without what has other names or amounts in the model: tiles and arithmetic."""
    found = []
    for command in said:
        parts = (getattr(command, name, "") for name in ("barrier", "slot", "phase", "pending", "n_bytes"))
        read = [str(slot) for slot, _ in command.reads] if isinstance(command, Product) else []
        if not isinstance(command, Compute):
            found.append((type(command).__name__, *map(str, parts), *read))
    return found


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("name", RUNGS)
def test_each_role_says_what_the_protocol_says(name, problem):
    B, H, _, N_q, N_k, d, causal, stages, B_c, _, section = problem
    rows, consumers, of = RUNGS[name]
    said = run(name, problem)[1]
    B_r = rows * consumers
    T_r = -(-N_q // B_r)
    for number, program in enumerate(said):
        blocks = []
        for place in range(number, B * H * T_r, len(said)):
            i = place % T_r
            if name == "r6_persistent" and causal:
                i = T_r - 1 - place % (section * T_r) // section
            end = min((i + 1) * B_r + N_k - N_q, N_k) if causal else N_k
            blocks.append(max(1, -(-end // B_c)))
        model = commands.expanded(of(blocks, protocol.Sizes(rows=rows, d=d, B_c=B_c), stages=stages))
        assert model.keys() == program.keys()
        for role in model:
            wanted = spoken(model[role])
            if name != "r6_persistent":  # with one row block Q comes once: nobody has to hear that it was read
                wanted = [one for one in wanted if not one[1].startswith("q_empty")]
            assert spoken(program[role]) == wanted, role


SPOILT = {
    "r1: a slot is filled before V is read": (
        "r1_alike",
        "O_acc = warpgroup_mma_wait(0, deps=(O_begun,))\n    gl.barrier()",
        "gl.barrier()",
    ),
    "r2: no wait for a free slot": ("r2_producer", "mbarrier.wait(k_empty.index(s), free)", "pass"),
    "r2: V is released twice, once before it is read": (
        "r2_producer",
        "O_acc, S = warpgroup_mma_wait(0,",
        "mbarrier.arrive(v_empty.index(before)); O_acc, S = warpgroup_mma_wait(0,",
    ),
    "r3: V is released by a consumer that has not read it": (
        "r3_consumers",
        "O_acc, S = warpgroup_mma_wait(0,",
        "mbarrier.arrive(v_empty.index(before)); O_acc, S = warpgroup_mma_wait(0,",
    ),
    "r3: no turn is handed on": ("r3_turns", "mbarrier.arrive(turn.index(1 - ME))", "pass"),
    "r4: O is not waited for": (
        "r4_overlap",
        "warpgroup_mma_wait(0, deps=(O_begun,))\n    mbarrier.arrive(v",
        "warpgroup_mma_wait(1, deps=(O_begun,))\n    mbarrier.arrive(v",
    ),
    "r4: the wrong phase": ("r4_overlap", "((g + 1) // STAGES) & 1, pred", "(g + 1) & 1, pred"),
    "r6: Q is not waited for to be read": (
        "r6_persistent",
        "mbarrier.wait(q_empty.index(c), (t & 1) ^ 1)",
        "pass",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_rung_is_found(what, monkeypatch):
    name, old, new = SPOILT[what]
    function = next(f for f in vars(module_of(name)).values() if old in getattr(f, "src", ""))
    functions = interpreter.functions

    def with_spoilt(gl, module):
        world = functions(gl, module)
        if module is module_of(name):
            exec(compile(function.src.replace(old, new), function.__name__, "exec"), world)  # noqa: S102
        return world

    monkeypatch.setattr(interpreter, "functions", with_spoilt)
    problem = (1, 2, 1, 65, 65, *LONG[5:]) if name == "r6_persistent" else LONG  # r6: a program has two row blocks
    with pytest.raises(Fault):
        for seed in range(20):
            run.__wrapped__(name, problem, seed)


def report(name, d, causal, dtype):
    return compiled.report(kernel=f"hopper_{name}", d=d, dtype=dtype, causal=causal)


VARIANTS = [(name, 128, False, "bfloat16") for name in RUNGS]  # to r4 tiles are the same at d = 64, and O smaller
VARIANTS += [("r1_alike", 64, True, "float16"), ("r5_registers", 64, False, "float16")]
VARIANTS += [("r6_persistent", 64, True, "bfloat16")]


@pytest.mark.compiles(each="name")
@pytest.mark.parametrize("name, d, causal, dtype", VARIANTS)
def test_it_compiles_without_a_spill(name, d, causal, dtype):
    made = report(name, d, causal, dtype)
    counted = made.counts("sass")
    assert made.spilled == counted["spill"] == 0 and not made.notes
    assert made.shared <= GPUS["H200"].block_sram
    assert counted["wgmma"] and counted["TMA"] and not counted["mma.sync"]
    moved = name in ("r5_registers", "r6_persistent")
    assert sorted(role.given for role in made.roles) == ([24, 240, 240] if moved else [])
    assert made.registers <= (255 if name == "r1_alike" else 168)  # of 8 warps, or of 12


@pytest.mark.compiles
@pytest.mark.parametrize("name", RUNGS)
def test_from_r4_on_the_softmax_runs_under_a_product(name):
    """In the loop exponentials follow a wait that leaves P V running, and precede the one for P V."""
    loop = report(name, 128, False, "bfloat16").loop("sass")
    seen = re.findall(r"DEPBAR\.LE gsb0, 0x\d|MUFU\.EX2", loop)
    first = seen.index("MUFU.EX2")
    count = seen.count("MUFU.EX2")
    before, after = seen[first - 1], seen[(first + count) % len(seen)]  # around: the compiler turns loops
    assert after == "DEPBAR.LE gsb0, 0x0"  # in r1 to r3 for what is issued after the exponentials
    assert before == f"DEPBAR.LE gsb0, 0x{int(name >= 'r4')}"


@pytest.mark.parametrize("name", RUNGS)
def test_what_a_rung_does_not_take_is_refused(name):
    Q = torch.zeros(1, 1, 5, 64)
    with pytest.raises(ValueError, match=r"flashlib\.kernels\.forward\.attention"):
        module_of(name).attention(Q, Q, Q)
