"""The Gluon kernel's own code on a CPU: exact under random schedules, and saying what our protocol says."""

import functools

import pytest
import torch

from flashlib import torch_ref
from flashlib.kernels import forward as portable
from flashlib.kernels.hopper import forward
from flashlib.kernels.hopper.interpreter import run as interpreter
from flashlib.pipeline import Fault, commands, protocol
from tests.kernels.hopper.spoken import spoil, spoken

# B, H, H_k, N_q, N_k, d, causal, consumers, stages, B_c, programs, section
PROBLEMS = [
    (1, 1, 1, 64, 128, 64, False, 2, 2, 128, None, 1),
    (1, 2, 1, 150, 300, 64, True, 2, 2, 64, 2, 2),
    (2, 2, 2, 77, 53, 64, True, 2, 2, 64, 3, 1),
    (1, 1, 1, 200, 333, 64, False, 3, 3, 64, 1, 1),
    (1, 3, 3, 131, 257, 128, True, 2, 2, 128, 2, 3),
    (1, 1, 1, 5, 1, 64, True, 3, 2, 64, 1, 1),
    (1, 2, 2, 650, 330, 64, True, 3, 2, 64, 3, 2),
]

WIDE = (1, 1, 1, 130, 150, 256, True, 2, 2, 64, 1, 1)  # O goes where Q was


@functools.cache
def inputs(B, H, H_k, N_q, N_k, d, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(N_q * N_k)
    shapes = ((B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d))
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def run(problem, seed=0, dtype=torch.bfloat16, scale=None):
    *sizes, causal, consumers, stages, B_c, programs, section = problem
    Q, K, V = inputs(*sizes, dtype)
    given, said = interpreter.run(Q, K, V, causal, scale, consumers, stages, B_c, programs, section, seed)
    k, v = (X.double().repeat_interleave(Q.shape[1] // K.shape[1], dim=1) for X in (K, V))
    return given, torch_ref.attention(Q.double(), k, v, causal=causal, scale=scale), said, (Q, K, V)


def error(given, exact):
    """Return the largest error of O and of lse; NaN counts as infinite, and -inf must stand where it does."""
    assert torch.equal(given.lse.isneginf(), exact.lse.isneginf())
    seen = ~exact.lse.isneginf()
    apart = [
        (given.O - exact.O).abs().max().item(),
        (given.lse - exact.lse)[seen].abs().amax().item() if seen.any() else 0.0,
    ]
    return [x if x == x else float("inf") for x in apart]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("problem", [*PROBLEMS, WIDE], ids=str)
def test_the_code_of_the_kernel_is_as_exact_as_the_portable_one(problem, dtype):
    given, exact, _, (Q, K, V) = run(problem, dtype=dtype)
    own = portable.attention(Q, K, V, causal=problem[6])
    rounding = (exact.O - exact.O.to(dtype)).abs().max().item()
    O, lse = error(given, exact)
    assert O <= 2 * max(error(own, exact)[0], rounding) and lse < 1e-5


def test_rows_that_see_nothing_are_zero_and_minus_infinity():
    given, _, _, _ = run(PROBLEMS[2])
    assert torch.equal(given.O[:, :, :24], torch.zeros(2, 2, 24, 64)) and given.lse[:, :, :24].isneginf().all()
    assert given.lse[:, :, 24:].isfinite().all()


@pytest.mark.parametrize("problem", PROBLEMS[:3], ids=str)
def test_no_schedule_changes_a_bit(problem):
    first, *others = (run(problem, seed)[0] for seed in range(8))
    for other in others:
        assert torch.equal(first.O, other.O) and torch.equal(first.lse, other.lse)


@pytest.mark.parametrize("problem", [PROBLEMS[1], PROBLEMS[6]], ids=str)
@pytest.mark.parametrize("scale", [1e4, 3.7, 1e-30])
def test_any_scale_is_exact(problem, scale):
    given, exact, _, _ = run(problem, scale=scale)
    O, lse = error(given, exact)
    assert O < 0.03 and lse <= 1e-5 * max(1.0, exact.lse[exact.lse.isfinite()].abs().max().item())


@pytest.mark.parametrize("hidden", [slice(64, 300), slice(None)], ids=str)
def test_scores_of_minus_infinity_are_as_in_the_oracle(hidden):
    Q, K, V = (X.clone() for X in inputs(1, 1, 1, 150, 300, 64))
    Q[..., 0], K[0, 0, hidden, 0] = 1, -float("inf")
    given = interpreter.attention(Q, K, V, B_c=64)
    exact = torch_ref.attention(Q.double(), K.double(), V.double())
    O, lse = error(given, exact)
    assert O < 0.02 and lse < 1e-5


def test_scores_up_to_1e38_are_exact():
    Q, K, V = (X.clone() for X in inputs(1, 1, 1, 64, 128, 64))
    Q[:], K[:] = 0, 0
    Q[..., 0], K[0, 0, :, 0] = 1e10, torch.linspace(-1, 3, 128) * 1e10
    for largest in (1e30, 1e38):
        scale = largest / (Q[0, 0, 0, 0].item() * K[0, 0, -1, 0].item())
        exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), scale=scale)
        O, lse = error(interpreter.attention(Q, K, V, scale=scale), exact)
        assert O < 0.02 and lse < largest * 1e-6


def order(heads, T_r, section, programs, causal):
    """Return the row blocks as programs take them, one each and again: what `block_of` says of all tiles."""
    if not causal:
        return [*range(T_r)] * heads
    blocks = [T_r - 1 - place // section for place in range(section * T_r)]
    waves = [blocks[at : at + programs] for at in range(0, len(blocks), programs)]
    whole = len(blocks) // programs
    waves = [wave[::-1] if (whole - w) % 2 == 1 else wave for w, wave in enumerate(waves)]
    return sum(waves, []) * (heads // section)


@pytest.mark.parametrize("problem", [*PROBLEMS, WIDE], ids=str)
def test_each_role_of_the_kernel_says_what_the_protocol_says(problem):
    B, H, _, N_q, N_k, d, causal, consumers, stages, B_c, programs, section = problem
    said = run(problem)[2]
    rows = 64 * consumers
    T_r = -(-N_q // rows)
    for number, program in enumerate(said):
        blocks = []
        for i in order(B * H, T_r, section, len(said), causal)[number :: len(said)]:
            end = min(max(N_q - (T_r - i) * rows, 0) + rows + N_k - N_q, N_k) if causal else N_k
            blocks.append(max(1, -(-end // B_c)))
        sizes = protocol.Sizes(d=d, B_c=B_c)
        options = {"consumers": consumers, "stages": stages, "in_place": d == 256, "K_first": True}
        model = commands.expanded(protocol.program(blocks, sizes, **options))
        assert model.keys() == program.keys()
        for role in model:
            assert spoken(program[role]) == spoken(model[role]), role


SPOILT = {
    "no wait for a free slot": ("producer", "mbarrier.wait(k_empty.index(s), free)", "pass"),
    "V is not waited for": ("step", "mbarrier.wait(v_full.index(before), ((g - 1) // STAGES) & 1)", "pass"),
    "K is released twice": (
        "step",
        "mbarrier.arrive(k_empty.index(s))",
        "[mbarrier.arrive(k_empty.index(s)) for _ in (0, 1)]",
    ),
    "the wrong phase": ("step", "((g + 1) // STAGES) & 1, pred", "(g + 1) & 1, pred"),
    "no turn is handed on": ("step", "mbarrier.arrive(turn.index((ME + 1) % CONSUMERS))", "pass"),
    "O is not waited for": (
        "step",
        "warpgroup_mma_wait(0, deps=(O_begun,))",
        "warpgroup_mma_wait(1, deps=(O_begun,))",
    ),
    "no fence": ("consumer", "fence_async_shared()", "pass"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_kernel_is_found(name, monkeypatch):
    spoil(monkeypatch, interpreter, forward, *SPOILT[name])
    with pytest.raises((Fault, TypeError)):
        for seed in range(20):
            given, exact, *_ = run((1, 1, 1, 128, 448, 64, False, 2, 2, 64, 1, 1), seed)
            if not error(given, exact)[0] < 0.02:
                raise Fault("read too early", "", "O is wrong")
