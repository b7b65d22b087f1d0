"""The rungs of the Hopper backward: exact under random schedules, saying what the protocol says; compiled."""

import functools
import importlib

import pytest
import torch

from flashlib import torch_ref
from flashlib.gpus import GPUS
from flashlib.kernels import forward
from flashlib.kernels.compiler import compiled, registry
from flashlib.kernels.hopper import backward_ladder as ladder
from flashlib.kernels.hopper.backward_ladder import finish
from flashlib.kernels.hopper.interpreter import run_backward_rung as interpreter
from flashlib.pipeline import Fault, Read, commands
from flashlib.pipeline import backward_protocol as protocol
from tests.kernels import gradients
from tests.kernels.hopper.spoken import spoken

# For each rung: keys of a consumer, and whether its sums of dQ lie as threads hold them.
RUNGS = {
    "r1_alike": (128, False),
    "r2_producer": (128, False),
    "r3_two_consumers": (64, False),
    "r4_half_columns": (64, False),
    "r5_in_order": (64, True),
    "r6_reducer": (64, True),
}
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
# B, H, H_k, N_q, N_k, causal
PROBLEMS = [
    (1, 1, 1, 64, 128, False),
    (1, 3, 1, 131, 257, True),
    (2, 2, 1, 300, 133, True),
    (1, 1, 1, 200, 333, False),
    (1, 1, 1, 5, 1, True),
]
LONG = (1, 1, 1, 448, 128, False)  # seven tiles and two slots


def module_of(name):
    return importlib.import_module(f"{ladder.__name__}.{name}")


@functools.cache
def inputs(B, H, H_k, N_q, N_k, causal, dtype=torch.bfloat16):
    torch.manual_seed(N_q * N_k)
    Q, K, V = (torch.randn(B, h, n, ladder.D).to(dtype) for h, n in ((H, N_q), (H_k, N_k), (H_k, N_k)))
    k, v = (X.repeat_interleave(H // H_k, dim=1).double() for X in (K, V))
    O, lse = torch_ref.attention(Q.double(), k, v, causal=causal)
    return Q, K, V, O.to(dtype), lse.float(), torch.randn_like(Q), torch.randn(lse.shape)


def run(name, problem, seed=0, dtype=torch.bfloat16):
    keys, ordered = RUNGS[name]
    names = [protocol.BARRIERS if of == "barriers" else of for of in ladder.NAMES]
    launched = registry.kernels()[f"hopper_backward_{name}"].launched
    given = *inputs(*problem, dtype), problem[-1], ladder.D**-0.5
    return interpreter.run(*given, seed, module_of(name), launched, keys, names, ordered)


def test_the_rungs_are_all_that_the_folder_has():
    assert [f"hopper_backward_{name}" for name in RUNGS] == [
        name for name in registry.kernels() if name.startswith("hopper_backward_")
    ]
    for name in RUNGS:
        assert name in ladder.__doc__ and module_of(name).__doc__.startswith(f"Rung {name[1]}: ")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_is_as_exact_as_standard_attention(name, problem, dtype):
    Q, K, V, _, _, dO, dlse = inputs(*problem, dtype)
    gradients.hold(run(name, problem, dtype=dtype)[0], Q, K, V, dO, dlse, causal=problem[-1])


@pytest.mark.parametrize("name", RUNGS)
def test_no_schedule_changes_a_bit(name):
    """Programs run one after the other here, and so does each that adds to dQ; rungs 3 to 5 have two that add."""
    first, *others = (run(name, PROBLEMS[1], seed)[0] for seed in range(4))
    for other in others:
        assert torch.equal(first.dK, other.dK) and torch.equal(first.dV, other.dV)
        assert (first.dQ - other.dQ).abs().max() <= (
            0.01 * first.dQ.abs().max() if name == "r3_two_consumers" else 0
        )


@pytest.mark.parametrize("N_q", [63, 130])
@pytest.mark.parametrize("ordered", [False, True])
def test_the_last_pass_makes_dQ_of_the_sums(ordered, N_q, device, poisoned):
    """Its order is the interpreter's, which is that of the threads, as the tests on a GPU say."""
    T_r = -(-N_q // ladder.B_R)
    sums = torch.randn(2 * T_r * ladder.B_R * ladder.D, device=device)
    dQ = torch.empty(1, 2, N_q, ladder.D, device=device)
    (finish.from_registers if ordered else finish.from_rows)[(2 * T_r,)](sums, dQ, 0.5, N_q, T_r)
    rows = interpreter.in_order(sums) if ordered else sums
    assert torch.equal(dQ, 0.5 * rows.reshape(1, 2, -1, ladder.D)[:, :, :N_q])


def once(said):
    """Return commands without loads that follow each other: a tile is loaded in parts."""
    before = [None, *said]
    return [one for one, last in zip(said, before, strict=False) if one != last or one[0] != Read.__name__]


def by_threads(role, said):
    """Return what the protocol says, as of a kernel whose own warps add dQ, and not the copy unit."""
    if role == "reducer":
        return [("Read", *one[1:]) if one[0] == "Store" else one for one in said if one[0] != "FinishStores"]
    pairs = zip(said, [*said[1:], ("",)], strict=True)
    return [one for one, after in pairs if one[0] != "Fence" or not any("dq_full" in part for part in after)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("name", ["r4_half_columns", "r5_in_order", "r6_reducer"])
def test_each_role_says_what_the_protocol_says(name, problem):
    """Rung 6 does, but that its reducer adds itself; rungs 4 and 5 have none, and say nothing of dQ."""
    _, H, H_k, N_q, N_k, causal = problem
    for number, program in enumerate(run(name, problem)[1]):
        first_key = number % -(-N_k // ladder.KEYS) * ladder.KEYS
        unseen = max(first_key - (N_k - N_q), 0) // ladder.B_R if causal else 0
        n = H // H_k * (-(-N_q // ladder.B_R) - unseen)
        model = commands.expanded(protocol.program(n))
        if name != "r6_reducer":
            del model["reducer"]
        assert model.keys() == program.keys()
        for role in model:
            wanted = once(by_threads(role, spoken(model[role])))
            if name != "r6_reducer":
                wanted = [one for one in wanted if not any(part.startswith("dq") for part in one)]
            assert once(spoken(program[role])) == wanted, role


SPOILT = {
    "r1: rows come before they are read": ("r1_alike", "if g + 2 < n:", "if True:"),
    "r1: dO is not waited for": ("r1_alike", "mbarrier.wait(barriers.index(tiles.DO_FULL + s), there)", "pass"),
    "r2: no wait for a free slot": (
        "r2_producer", "mbarrier.wait(barriers.index(tiles.EMPTY + (g & 1)), ((g >> 1) & 1) ^ 1)", "pass",
    ),
    "r3: dS is not fenced": ("r3_two_consumers", "fence_async_shared()", "pass"),
    "r3: dQ is not waited for": (
        "r3_two_consumers", "warpgroup_mma_wait(0, deps=(dQ_begun,))", "warpgroup_mma_wait(1, deps=(dQ_begun,))",
    ),
    "r4: half of dS is not waited for": (
        "r4_half_columns", "mbarrier.wait(barriers.index(tiles.DS_FULL + s), there)", "pass",
    ),
    "r5: the wrong half": ("r5_in_order", "sums + ME * 64 * 64", "sums + (1 - ME) * 64 * 64"),
    "r6: the reducer's slot is not waited for": (
        "r6_reducer", "mbarrier.wait(barriers.index(tiles.DQ_EMPTY + ME), (g & 1) ^ 1)", "pass",
    ),
    "r6: the reducer does not wait": (
        "r6_reducer", "mbarrier.wait(barriers.index(tiles.DQ_FULL + c), g & 1)", "pass",
    ),
    "r6: dK goes where K is still read": (
        "r6_reducer", "mbarrier.wait(barriers.index(tiles.K_DONE), 0)", "pass",
    ),
}  # fmt: skip


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
    Q, K, V, _, _, dO, dlse = inputs(*LONG)
    with pytest.raises((Fault, AssertionError)):
        for seed in range(20):
            gradients.hold(run(name, LONG, seed)[0], Q, K, V, dO, dlse)


@pytest.mark.compiles(each="name")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", RUNGS)
def test_it_compiles_to_five_products_with_few_spills(name, causal):
    made = compiled.report(kernel=f"hopper_backward_{name}", d=ladder.D, causal=causal)
    assert made.shared <= GPUS["H200"].block_sram and not made.notes
    keys, _ = RUNGS[name]
    given = {"r1_alike": [], "r2_producer": [24, 240]}.get(name, [24, 240, 240])
    assert sorted(role.given for role in made.roles) == given
    loop = made.counts("sass", loop=True)
    whole = 64 if name == "r3_two_consumers" else 128  # keys over which a consumer's dQ sums
    assert loop["wgmma"] == 2 * ladder.D // 16 + 2 * 64 // 16 + whole // 16  # each sums 16 of d, rows, keys
    assert loop["ex2"] == 64 * 64 // 128 and not loop["mma.sync"]
    assert loop["spill"] <= (0 if keys == 128 else 15)  # rungs 3 to 6 have no register left
    added = {"r5_in_order": 8, "r3_two_consumers": 32, "r6_reducer": 0}.get(name, 16)
    assert loop["atomic add"] == added  # rung 5 adds four numbers at a time, the others two


@pytest.mark.parametrize("name", RUNGS)
def test_what_a_rung_does_not_take_is_refused(name):
    Q, lse = torch.zeros(1, 1, 5, 128), torch.zeros(1, 1, 5)
    with pytest.raises(ValueError, match=r"flashlib\.kernels\.backward\.backward"):
        module_of(name).backward(Q, Q, Q, Q, lse, Q)


@pytest.mark.compiles
@pytest.mark.parametrize("name", RUNGS)
def test_another_d_is_refused_where_there_is_a_hopper_gpu(name):
    with pytest.raises(ValueError, match="d is 64; the rungs take 128"):
        compiled.report(kernel=f"hopper_backward_{name}", d=64)


@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")
@pytest.mark.parametrize(
    "problem", [(2, 4, 2, 1021, 771, True), (1, 2, 2, 333, 1500, False), (1, 3, 1, 77, 53, True)]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_equals_fp64_on_the_gpu(name, dtype, problem, poisoned):
    Q, K, V, _, _, dO, dlse = (X.cuda() for X in inputs(*problem, dtype))
    causal = problem[-1]
    O, lse = forward.attention(Q, K, V, causal=causal)
    given = module_of(name).backward(Q, K, V, O, lse, dO, dlse=dlse, causal=causal)
    gradients.hold(given, Q, K, V, dO, dlse, causal=causal)
