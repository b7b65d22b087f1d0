"""The Hopper backward's own code on a CPU: exact under random schedules, and saying what its protocol says."""

import functools
import itertools

import pytest
import torch

from flashlib import torch_ref
from flashlib.kernels import autograd
from flashlib.kernels.hopper import attention, backward, launch, launch_backward, sums
from flashlib.kernels.hopper.interpreter import run_backward as interpreter
from flashlib.pipeline import Fault, Read, commands
from flashlib.pipeline import backward_protocol as protocol
from tests.kernels import gradients
from tests.kernels.hopper.spoken import spoil, spoken

# B, H, H_k, N_q, N_k, d, causal
PROBLEMS = [
    (1, 1, 1, 64, 128, 128, False),
    (1, 2, 2, 150, 300, 64, True),
    (1, 4, 2, 77, 53, 64, True),
    (1, 3, 1, 131, 257, 128, True),
    (2, 2, 1, 300, 133, 128, True),
    (1, 1, 1, 200, 333, 64, False),
    (1, 1, 1, 5, 1, 128, True),
]


@functools.cache
def inputs(B, H, H_k, N_q, N_k, d, causal, dtype=torch.bfloat16):
    torch.manual_seed(N_q * N_k)
    Q, K, V = (torch.randn(B, h, n, d).to(dtype) for h, n in ((H, N_q), (H_k, N_k), (H_k, N_k)))
    k, v = (X.repeat_interleave(H // H_k, dim=1).double() for X in (K, V))
    O, lse = torch_ref.attention(Q.double(), k, v, causal=causal)
    return Q, K, V, O.to(dtype), lse.float(), torch.randn_like(Q), torch.randn(lse.shape)


def run(problem, seed=0, dtype=torch.bfloat16, turns=(1, 2)):
    Q, K, V, O, lse, dO, dlse = inputs(*problem, dtype)
    return interpreter.run(Q, K, V, O, lse, dO, dlse, problem[-1], problem[-2] ** -0.5, seed, turns)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_gradients_are_as_exact_as_those_of_standard_attention(problem, dtype):
    Q, K, V, _, _, dO, dlse = inputs(*problem, dtype)
    gradients.hold(run(problem, dtype=dtype)[0], Q, K, V, dO, dlse, causal=problem[-1])


@pytest.mark.parametrize("problem", PROBLEMS[1:4], ids=str)
def test_no_schedule_changes_a_bit_of_dK_and_dV(problem):
    """Sums of dQ come in the order in which programs run, which is one after the other here."""
    first, *others = (run(problem, seed)[0] for seed in range(5))
    for other in others:
        assert all(torch.equal(one, same) for one, same in zip(first, other, strict=True))


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_each_role_of_the_kernel_says_what_the_protocol_says(problem):
    _, H, H_k, N_q, N_k, d, causal = problem
    rows = launch_backward.ROWS[d]
    for number, program in enumerate(run(problem)[1]):
        first_key = number % -(-N_k // 128) * 128
        unseen = max(first_key - (N_k - N_q), 0) // rows if causal else 0
        n = H // H_k * (-(-N_q // rows) - unseen)
        halves, T_c = 2 * H // H_k * -(-N_q // rows), -(-N_k // 128)
        share, j = -(-halves // T_c), number % T_c
        finished = max(min((j + 1) * share, halves) - j * share, 0) if number >= T_c else 0  # of the unit before
        model = commands.expanded(protocol.program(n, protocol.Sizes(d=d), finished))
        assert model.keys() == {role for role, said in program.items() if said}
        for role in model:
            assert once(spoken(program[role])) == once(spoken(model[role])), role


@pytest.mark.parametrize("turns", [(1, 2), (1, 3), (2, 3), (2, 4), (3, 7), (9, 18)], ids=str)
@pytest.mark.parametrize("d", [64, 128])
def test_buffers_of_sums_are_used_again(d, turns):
    problem = (3, 4, 2, 75, 131, d, True)
    Q, K, V, _, _, dO, dlse = inputs(*problem)
    gradients.hold(run(problem, turns=turns)[0], Q, K, V, dO, dlse, causal=True)


def test_a_buffer_that_nobody_leaves_is_waited_for_in_vain():
    with pytest.raises(Fault, match="a program waits for a later one"):
        run((1, 4, 4, 64, 128, 128, False), turns=(2, 2))


def test_lag_and_ring_leave_time():
    """Programs that write dQ begin two or more waves after those that added it, and so does who adds next."""
    for T_c, multiprocessors in itertools.product((1, 2, 7, 8, 131, 264, 1024), (114, 132)):
        lag, ring = launch_backward.turns(T_c, multiprocessors)
        assert lag >= 1 and lag * T_c >= launch_backward.LAG * multiprocessors <= (ring - lag) * T_c
        assert (lag - 1) * T_c < launch_backward.LAG * multiprocessors or lag == 1


def once(said):
    """Return commands without loads that follow each other: a tile is loaded in parts."""
    return [
        one for one, before in zip(said, [None, *said], strict=False) if one != before or one[0] != Read.__name__
    ]


SPOILT = {
    "no wait for a slot": ("producer", "mbarrier.wait(barriers.index(EMPTY + s), ((g >> 1) & 1) ^ 1)", "pass"),
    "dO is not waited for": ("step", "mbarrier.wait(barriers.index(DO_FULL + s), there)", "pass"),
    "half of dS is not waited for": ("step", "mbarrier.wait(barriers.index(DS_FULL + s), there)", "pass"),
    "dS is not fenced": ("step", "fence_async_shared()", "pass"),
    "rows are released before dK is done": (
        "step", "warpgroup_mma_wait(0, deps=(dV_begun, dK_begun))", "(dV_begun.result, dK)",
    ),
    "the reducer's slot is not waited for": (
        "hand_over", "mbarrier.wait(barriers.index(DQ_EMPTY + ME), (g & 1) ^ 1)", "pass",
    ),
    "the reducer does not wait": ("reducer", "mbarrier.wait(barriers.index(DQ_FULL + c), g & 1)", "pass"),
    "dK goes where K is still read": ("consumer", "mbarrier.wait(barriers.index(K_DONE), 0)", "pass"),
}  # fmt: skip


OF_SUMS = {
    "sums are not cleared": ("finisher", "clear(sums_ptr, start + at)", "pass"),
    "sums are read before they are there": (
        "finisher", "mbarrier.wait(barriers.index(LANDED + (at & 1)), (at >> 1) & 1)", "pass",
    ),
    "sums land where others are still read": ("finisher", "landing.index(s)", "landing.index(at & 1)"),
    "a share is left out": ("finisher", "gl.minimum(share, halves - j * share)", "share - 1"),
    "who added is not counted": ("count", "gl.atomic_add(count_ptr, 1, sem=\"release\")", "pass"),
    "the order is another": ("write_part", "permute([1, 4, 2, 0, 3, 5])", "permute([1, 2, 4, 0, 3, 5])"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_SUMS)
def test_a_spoilt_finisher_is_found(name, monkeypatch):
    spoil(monkeypatch, interpreter, sums, *OF_SUMS[name])
    problem = (3, 1, 1, 300, 128, 128, False)
    Q, K, V, _, _, dO, dlse = inputs(*problem)
    with pytest.raises((Fault, AssertionError)):
        for seed in range(20):
            gradients.hold(run(problem, seed)[0], Q, K, V, dO, dlse)


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_kernel_is_found(name, monkeypatch):
    spoil(monkeypatch, interpreter, backward, *SPOILT[name])
    problem = (1, 1, 1, 448, 128, 128, False)
    Q, K, V, _, _, dO, dlse = inputs(*problem)
    with pytest.raises((Fault, TypeError, AttributeError, AssertionError)):
        for seed in range(20):
            gradients.hold(run(problem, seed)[0], Q, K, V, dO, dlse)


@pytest.fixture
def on_hopper(monkeypatch):
    """A Hopper GPU for autograd: the kernel's own code runs on the CPU, and calls are counted."""
    calls = []

    def by_interpreter(*given, **options):
        calls.append(options)
        return interpreter.backward(*given, **options)

    monkeypatch.setattr(autograd, "INTERPRETED", False)
    monkeypatch.setattr(backward, "backward", by_interpreter)
    monkeypatch.setattr(launch, "is_hopper", lambda device: True)
    monkeypatch.setattr(launch_backward, "SEEN", 70)
    return calls


@pytest.mark.parametrize(
    "deterministic, d, N_q, N_k, causal, mine",
    [
        (False, 64, 10, 75, True, True),
        (False, 128, 10, 70, False, True),
        (False, 128, 10, 69, False, False),
        (False, 64, 10, 74, True, False),
        (False, 32, 10, 75, False, False),
        (True, 64, 10, 75, True, False),
        (False, 256, 10, 75, True, True),
        (True, 256, 10, 75, True, True),
        (True, 256, 10, 69, False, False),
    ],
)
def test_autograd_picks_it_where_it_is_faster(deterministic, d, N_q, N_k, causal, mine, on_hopper):
    Q, K, V, _, _, dO, _ = inputs(1, 2, 1, N_q, N_k, d, causal)
    leaves = [X.detach().requires_grad_() for X in (Q, K, V)]
    O = autograd.attention(*leaves, causal=causal, deterministic=deterministic).O
    found = backward.Grads(*torch.autograd.grad(O, leaves, dO))
    assert len(on_hopper) == mine
    gradients.hold(found, Q, K, V, dO, causal=causal)


def test_it_refuses_in_a_sentence_without_a_hopper_gpu():
    Q, K, V, O, lse, dO, _ = inputs(*PROBLEMS[0])
    with pytest.raises(ValueError, match="Hopper.*: call flashlib.kernels.backward.backward"):
        backward.backward(Q, K, V, O, lse, dO)
    with pytest.raises(ValueError, match="Hopper.*: call flashlib.kernels.forward.attention"):
        attention(Q, K, V)
