"""The rungs of the Hopper backward: how their sums become dQ; compiled; on a GPU; what they refuse."""

import pytest
import torch

from flashlib.gpus import GPUS
from flashlib.kernels import forward
from flashlib.kernels.compiler import compiled, registry
from flashlib.kernels.hopper import backward_ladder as ladder
from flashlib.kernels.hopper.backward_ladder import finish
from tests.kernels import gradients
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.on_a_cpu import BACKWARD_RUNGS, MODULES

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


def test_the_folder_has_no_other_rungs():
    assert [f"hopper_backward_{name}" for name in BACKWARD_RUNGS] == [
        name for name in registry.kernels() if name.startswith("hopper_backward_")
    ]
    for name in BACKWARD_RUNGS:
        assert name in ladder.__doc__ and MODULES[f"backward_{name}"].__doc__.startswith(f"Rung {name[1]}: ")


def in_order(sums):
    """Return sums of dQ row by row, d = 128."""
    halves = sums.view(-1, 2, 8, 4, 8, 4, 2, 2)
    return halves.permute(0, 1, 3, 6, 4, 2, 5, 7).reshape(-1, 2, 64, 64).transpose(1, 2)


@pytest.mark.parametrize("N_q", [63, 130])
@pytest.mark.parametrize("ordered", [False, True])
def test_the_last_pass_makes_dQ_of_the_sums(ordered, N_q, device, poisoned):
    """Half a tile has the order of r5_in_order's registers: see `finish.from_registers`."""
    T_r = -(-N_q // ladder.B_R)
    sums = torch.randn(2 * T_r * ladder.B_R * ladder.D, device=device)
    dQ = torch.empty(1, 2, N_q, ladder.D, device=device)
    (finish.from_registers if ordered else finish.from_rows)[(2 * T_r,)](sums, dQ, 0.5, N_q, T_r)
    rows = in_order(sums) if ordered else sums
    assert torch.equal(dQ, 0.5 * rows.reshape(1, 2, -1, ladder.D)[:, :, :N_q])


@pytest.mark.compiles(each="name")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", BACKWARD_RUNGS)
def test_it_compiles_to_five_products_with_few_spills(name, causal):
    made = compiled.report(kernel=f"hopper_backward_{name}", d=ladder.D, causal=causal)
    assert made.shared <= GPUS["H200"].block_sram and not made.notes
    keys = 128 if name in ("r1_alike", "r2_producer") else 64  # of a consumer
    given = {"r1_alike": [], "r2_producer": [24, 240]}.get(name, [24, 240, 240])
    assert sorted(role.given for role in made.roles) == given
    loop = made.counts("sass", loop=True)
    whole = 64 if name == "r3_two_consumers" else 128  # keys over which a consumer's dQ sums
    assert loop["wgmma"] == 2 * ladder.D // 16 + 2 * 64 // 16 + whole // 16  # each sums 16 of d, rows, keys
    assert loop["ex2"] == 64 * 64 // 128 and not loop["mma.sync"]
    assert loop["spill"] <= (0 if keys == 128 else 15)  # rungs 3 to 6 have no register left
    added = {"r5_in_order": 8, "r3_two_consumers": 32, "r6_reducer": 0}.get(name, 16)
    assert loop["atomic add"] == added  # rung 5 adds four numbers at a time, the others two


@pytest.mark.parametrize("name", BACKWARD_RUNGS)
def test_a_rung_refuses_what_it_does_not_take(name):
    Q, lse = torch.zeros(1, 1, 5, 128), torch.zeros(1, 1, 5)
    with pytest.raises(ValueError, match=r"flashlib\.kernels\.backward\.backward"):
        MODULES[f"backward_{name}"].backward(Q, Q, Q, Q, lse, Q)


@pytest.mark.compiles
@pytest.mark.parametrize("name", BACKWARD_RUNGS)
def test_another_d_is_refused_where_there_is_a_hopper_gpu(name):
    with pytest.raises(ValueError, match="d is 64; the rungs take 128"):
        compiled.report(kernel=f"hopper_backward_{name}", d=64)


@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")
@pytest.mark.parametrize(
    "problem", [(2, 4, 2, 1021, 771, True), (1, 2, 2, 333, 1500, False), (1, 3, 1, 77, 53, True)]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", BACKWARD_RUNGS)
def test_a_rung_equals_fp64_on_the_gpu(name, dtype, problem, poisoned):
    B, H, H_k, N_q, N_k, causal = problem
    sizes = on_a_cpu.Sizes((B, H, H_k), N_q, N_k, ladder.D, causal)
    Q, K, V, _, _, dO, dlse = (X.cuda() for X in on_a_cpu.inputs(sizes, dtype))
    O, lse = forward.attention(Q, K, V, causal=causal)
    given = MODULES[f"backward_{name}"].backward(Q, K, V, O, lse, dO, dlse=dlse, causal=causal)
    gradients.hold(given, Q, K, V, dO, dlse, causal=causal)
