"""The kernel in eight bits, its own code on a CPU: exact but for P's bits, and saying what the protocol says."""

import functools

import pytest
import torch

from flashlib.kernels import quantise
from flashlib.kernels.hopper import fp8, fp8_tiles
from flashlib.kernels.hopper.interpreter import run_fp8
from flashlib.pipeline import Fault, check, commands, protocol
from flashlib.pipeline import eight_bit_protocol as eight_bits
from tests.kernels import eight
from tests.kernels.hopper.spoken import spoil, spoken

# B, H, H_k, N_q, N_k, d, causal, consumers, stages, B_c, programs, section, two levels, turns
PROBLEMS = [
    (1, 1, 1, 64, 128, 64, False, 2, 2, 128, None, 1, True, True),
    (1, 2, 1, 150, 300, 64, True, 2, 2, 64, 2, 2, True, False),
    (2, 2, 2, 77, 53, 64, True, 2, 2, 64, 3, 1, True, True),
    (1, 1, 1, 200, 333, 64, False, 3, 3, 64, 1, 1, True, False),
    (1, 3, 3, 131, 257, 128, True, 2, 2, 128, 2, 3, False, True),
    (1, 1, 1, 5, 1, 64, True, 3, 2, 64, 1, 1, True, True),
    (1, 1, 1, 130, 150, 256, True, 2, 2, 64, 1, 1, False, False),
]
FORMATS = sorted(quantise.FORMATS)


@functools.cache
def inputs(B, H, H_k, N_q, N_k, d, qk):
    generator = torch.Generator().manual_seed(N_q * N_k)
    shapes = (B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d)
    given = [torch.randn(shape, generator=generator) + 0.5 for shape in shapes]
    return quantise.quantised(*(X.bfloat16() for X in given), qk=qk, permuted=True)


def run(problem, qk="e4m3", seed=0):
    *sizes, causal, consumers, stages, B_c, programs, section, two_level, turns = problem
    small = inputs(*sizes, qk)
    options = {"consumers": consumers, "stages": stages, "B_c": B_c, "two_level": two_level, "turns": turns}
    return small, *run_fp8.run(small, causal, 0.25, programs=programs, section=section, seed=seed, **options)


def check_numbers(problem, qk="e4m3", seed=0):
    small, given, said = run(problem, qk, seed)
    eight.check(given, small, *eight.stands_for(small, problem[4], True), problem[6], 0.25)
    return said


@pytest.mark.parametrize("qk", FORMATS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_what_is_wrong_is_what_rounds_P(problem, qk):
    check_numbers(problem, qk)


@pytest.mark.parametrize("problem", PROBLEMS[:3], ids=str)
def test_no_schedule_changes_a_bit(problem):
    _, first, _ = run(problem)
    for seed in range(1, 4):
        _, other, _ = run(problem, seed=seed)
        assert torch.equal(first.O, other.O) and torch.equal(first.lse, other.lse)


def blocks_of(problem, number, programs):
    """Return how many tiles each row block of a program sees: rows of blocks are walked there and back."""
    B, H, _, N_q, N_k, _, causal, consumers, _, B_c, _, section, _, _ = problem
    rows = 64 * consumers
    T_r, found = -(-N_q // rows), []
    for t, first in enumerate(range(0, B * H * T_r, programs)):
        place = first + (number if t % 2 == 0 else programs - 1 - number)
        if place < B * H * T_r:
            i = T_r - 1 - place % (section * T_r) // section if causal else place % T_r
            end = min((i + 1) * rows + N_k - N_q, N_k) if causal else N_k
            found.append(max(1, -(-end // B_c)))
    return found


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_each_role_says_what_the_protocol_says(problem):
    _, _, said = run(problem)
    d, consumers, stages, B_c, turns = problem[5], *problem[7:10], problem[13]
    under = d < 256 and consumers == 2
    for number, program in enumerate(said):
        blocks = blocks_of(problem, number, len(said))
        sizes = protocol.Sizes(d=d, B_c=B_c, element=1)
        model = commands.expanded(
            eight_bits.program(blocks, sizes, consumers=consumers, stages=stages, turns=turns, under=under)
        )
        assert model.keys() == program.keys()
        for role in model:
            assert spoken(program[role]) == spoken(model[role]), role


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("under", [False, True])
def test_the_protocol_is_right_under_random_schedules(under, turns, amount):
    for consumers, stages, blocks in ((2, 2, [3, 1, 2]), (3, 3, [1, 4]), (2, 3, [5])):
        program = eight_bits.program(
            blocks, protocol.Sizes(element=1), consumers=consumers, stages=stages, turns=turns, under=under
        )
        report = check(program, states=0, schedules={"few": 20, "all": 300}[amount], seed=consumers)
        assert report.fault is None, report


SPOILT = {
    "no wait for a free slot": ("producer", "mbarrier.wait(v_empty.index(s), free)", "pass"),
    "the next V is not waited for": ("step", "mbarrier.wait(v_full.index(s), (g // STAGES) & 1)", "pass"),
    "K is not waited for": ("step", "mbarrier.wait(k_full.index(s), (g // STAGES) & 1)", "pass"),
    "P V is not waited for": ("step", "warpgroup_mma_wait(0", "warpgroup_mma_wait(1"),
    "no turn is handed on": ("step", "mbarrier.arrive(turn.index((ME + 1) % CONSUMERS))", "pass"),
    "another order of keys": ("operand", ".permute((0, 1, 3, 2, 4))", ".permute((0, 1, 2, 3, 4))"),
    "V's mean is left out": ("consumer", "O = O + mean", "O = O + 0.0 * mean"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_kernel_is_found(name, monkeypatch):
    function, old, new = SPOILT[name]
    module = fp8_tiles if function == "operand" else fp8
    spoil(monkeypatch, run_fp8, module, function, old, new)
    problem = (1, 2, 1, 300, 450, 64, False, 2, 2, 64, 2, 1, True, True)
    with pytest.raises((AssertionError, Fault)):
        for seed in range(10):
            check_numbers(problem, seed=seed)
