"""The passes of the Hopper backward at d = 256, their own code on a CPU: exact under random schedules."""

import pytest
import torch

from flashlib import torch_ref
from flashlib.kernels.hopper import dkv_256, dq_256
from flashlib.kernels.hopper.interpreter import run_backward, run_backward_256
from flashlib.pipeline import Fault, commands
from flashlib.pipeline import backward_256_protocol as protocol
from tests.kernels import gradients
from tests.kernels.hopper.spoken import spoil, spoken
from tests.kernels.hopper.test_backward_interpreter import inputs

# B, H, H_k, N_q, N_k, d, causal
PROBLEMS = [
    (1, 1, 1, 64, 128, 256, False),
    (1, 2, 2, 150, 70, 256, True),
    (1, 4, 2, 77, 53, 256, True),
    (1, 3, 1, 131, 257, 256, True),
    (2, 2, 1, 200, 133, 256, False),
    (1, 1, 1, 67, 321, 256, False),
    (1, 1, 1, 5, 1, 256, True),
]


def run(problem, seed=0, dtype=torch.bfloat16, **options):
    Q, K, V, O, lse, dO, dlse = inputs(*problem, dtype)
    return run_backward_256.run(Q, K, V, O, lse, dO, dlse, problem[-1], problem[-2] ** -0.5, seed, **options)


@pytest.mark.parametrize("out_dtype", [None, torch.float32], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_gradients_are_as_exact_as_those_of_standard_attention(problem, dtype, out_dtype):
    Q, K, V, _, _, dO, dlse = inputs(*problem, dtype)
    found = run(problem, dtype=dtype, out_dtype=out_dtype)[0]
    gradients.hold(found, Q, K, V, dO, dlse, causal=problem[-1], out_dtype=out_dtype)


@pytest.mark.parametrize("problem", PROBLEMS[1:5], ids=str)
def test_no_schedule_changes_a_bit(problem):
    first, *others = (run(problem, seed)[0] for seed in range(5))
    for other in others:
        assert all(torch.equal(one, same) for one, same in zip(first, other, strict=True))


def test_parts_of_the_keys_add_up_to_the_whole():
    """lse, O and delta are those of rows that see more keys; shares come in fp32."""
    Q, K, V, O, lse, dO, _ = inputs(1, 2, 1, 70, 150, 256, False)
    delta = (O.float() * dO.float()).sum(-1)
    options = {"delta": delta, "out_dtype": torch.float32}
    whole = run_backward.backward(Q, K, V, None, lse, dO, **options)
    parts = [
        run_backward.backward(Q, K[:, :, keys].contiguous(), V[:, :, keys].contiguous(), None, lse, dO, **options)
        for keys in (slice(0, 83), slice(83, 150))
    ]
    assert (sum(part.dQ for part in parts) - whole.dQ).abs().max() <= 1e-4 * whole.dQ.abs().max()
    for name in ("dK", "dV"):
        found, same = torch.cat([getattr(part, name) for part in parts], dim=2), getattr(whole, name)
        assert (found - same).abs().max() <= 1e-4 * same.abs().max()


def test_keys_past_the_end_stay_out_of_low_scores():
    """Scores of all real keys are below -1e4: those of zeros past the end would weigh 2^1e4 times as much."""
    Q, K, V, _, _, dO, _ = inputs(1, 1, 1, 70, 67, 256, False, torch.float16)
    Q, K = Q.clone(), K.clone()
    Q[..., 0], K[..., 0] = 450, -450
    O, lse = torch_ref.attention(Q.double(), K.double(), V.double())
    assert (lse < -1e4).all()
    found = run_backward.backward(Q, K, V, O.half(), lse.float(), dO)
    assert all(X.isfinite().all() for X in found)


SPOILT = {
    "no wait for Q's slot": (dkv_256, "producer", "mbarrier.wait(barriers.index(Q_EMPTY + s), free)", "pass"),
    "no wait for dO's slot": (dkv_256, "producer", "mbarrier.wait(barriers.index(DO_EMPTY + s), free)", "pass"),
    "P is not waited for": (dkv_256, "slopes", "mbarrier.wait(barriers.index(P_FULL + s), (g >> 1) & 1)", "pass"),
    "P is of another tile": (dkv_256, "slopes", "p.index(s)", "p.index(s ^ 1)"),
    "no wait for K's slot": (
        dq_256, "producer", "mbarrier.wait(barriers.index(K_EMPTY + s), ((t >> 1) & 1) ^ 1)", "pass",
    ),
    "no wait for V's slot": (dq_256, "producer", "mbarrier.wait(barriers.index(V_EMPTY), (t & 1) ^ 1)", "pass"),
    "V is not waited for": (dq_256, "step", "mbarrier.wait(barriers.index(V_FULL), t & 1)", "pass"),
    "K is released while it is read": (
        dq_256, "step", "warpgroup_mma_wait(2, deps=(dQ_begun,))", "warpgroup_mma_wait(3, deps=(dQ_begun,))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_kernel_is_found(name, monkeypatch):
    module, plain = SPOILT[name][0], run_backward_256.functions
    spoil(monkeypatch, run_backward_256, *SPOILT[name])
    spoilt = run_backward_256.functions  # of this pass alone: the other has functions of the same names
    monkeypatch.setattr(run_backward_256, "functions", lambda gl, of: (spoilt if of is module else plain)(gl, of))
    problem = (1, 1, 1, 320, 320, 256, False)
    Q, K, V, _, _, dO, dlse = inputs(*problem)
    with pytest.raises((Fault, AssertionError)):
        for seed in range(20):
            gradients.hold(run(problem, seed)[0], Q, K, V, dO, dlse)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_each_role_of_the_kernels_says_what_the_protocol_says(problem):
    _, H, H_k, N_q, N_k, _, causal = problem
    _, of_keys, of_rows = run(problem)
    for number, program in enumerate(of_keys):
        first_key = number % -(-N_k // 64) * 64
        unseen = max(first_key - (N_k - N_q), 0) // 64 if causal else 0
        hold(program, protocol.dkv(H // H_k * (-(-N_q // 64) - unseen)))
    for number, program in enumerate(of_rows):
        blocks = -(-N_q // 128)
        last = (blocks - number % blocks) * 128
        end = min(last + N_k - N_q, N_k) if causal else N_k
        hold(program, protocol.dq(max(-(-end // 64), 1)))


def hold(program, model):
    model = commands.expanded(model)
    assert model.keys() == program.keys()
    for role in model:
        assert spoken(program[role]) == spoken(model[role]), role
