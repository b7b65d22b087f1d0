"""Kernels with one spoilt line: found through a fault or wrong numbers in one of three orders, or by `check`."""

import pytest

from flashlib import gluon
from flashlib.kernels import quantise
from flashlib.kernels.hopper import backward, dkv_256, dq_256, forward, fp8, fp8_tiles, sums
from flashlib.pipeline import PipelineFault, check
from tests.kernels import eight, gradients
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.on_a_cpu import MODULES, ORDERS, Sizes, Tiles

RAISED = (
    PipelineFault,
    gluon.Wrong,
    TypeError,
    AttributeError,
)  # the last two for what a spoilt line leaves undefined


def is_found(run) -> bool:
    """Return whether one of the orders, or `check` of its commands, finds that a kernel is spoilt.

    run: takes an order, checks the numbers, and returns the runs of the programs.
    """
    for order in ORDERS:
        try:
            ran = run(order)
        except (*RAISED, AssertionError):
            return True
        longest = max(ran, key=lambda one: sum(map(len, one.said.values())))
        if check(longest.program(), states=0, schedules=100).fault:
            return True
    return False


def attended(name, sizes, tiles):
    """Return a function that runs a forward kernel and checks O and lse, roughly."""
    Q, K, V, *_ = on_a_cpu.inputs(sizes)
    exact = on_a_cpu.exact(Q, K, V, causal=sizes.causal)

    def run(order):
        (O, lse), ran = on_a_cpu.attended(name, Q, K, V, tiles, order, causal=sizes.causal)
        assert (O - exact.O).abs().max() < 0.02 and (lse - exact.lse).abs().max() < 1e-4
        return ran

    return run


def differentiated(sizes, tiles=Tiles(), name="backward"):  # noqa: B008  a NamedTuple
    """Return a function that runs a backward kernel and checks the gradients."""
    *tensors, dlse = on_a_cpu.inputs(sizes)
    Q, K, V, _, _, dO = tensors

    def run(order):
        options = {"tiles": tiles, "order": order, "dlse": dlse, "causal": sizes.causal}
        grads, ran = on_a_cpu.differentiated(name, *tensors, **options)
        gradients.hold(grads, Q, K, V, dO, dlse, causal=sizes.causal)
        return ran

    return run


def amounts(faults, like_others=()):
    """Return (amount, what): "all" for faults of the same kind as others, or that any test of numbers finds."""
    assert {*like_others} <= {*faults}
    return [("all" if what in like_others else "few", what) for what in faults]


FORWARD = {
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


@pytest.mark.parametrize("what", FORWARD)
def test_a_spoilt_forward_is_found(what, monkeypatch):
    on_a_cpu.spoil(monkeypatch, forward, *FORWARD[what])
    sizes = Sizes((1, 1, 1), 128, 320, 64, False)  # five tiles and two slots
    assert is_found(attended("forward", sizes, Tiles(multiprocessors=1)))


RUNGS = {
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


@pytest.mark.parametrize("what", RUNGS)
def test_a_spoilt_rung_is_found(what, monkeypatch):
    name, old, new = RUNGS[what]
    function = next(f.__name__ for f in vars(MODULES[name]).values() if old in getattr(f, "src", ""))
    on_a_cpu.spoil(monkeypatch, MODULES[name], function, old, new)
    sizes = Sizes((1, 1, 1), 128, 320, 64, False)
    if name == "r6_persistent":  # a program has two row blocks
        sizes = Sizes((1, 2, 1), 65, 65, 64, False)
    assert is_found(attended(name, sizes, Tiles(multiprocessors=1)))


BACKWARD = {
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


@pytest.mark.parametrize("amount, what", amounts(BACKWARD, [
    "dK goes where K is still read",
]))  # fmt: skip
def test_a_spoilt_backward_is_found(amount, what, monkeypatch):
    on_a_cpu.spoil(monkeypatch, backward, *BACKWARD[what])
    assert is_found(differentiated(Sizes((1, 1, 1), 256, 128, 128, False)))  # four tiles and two slots


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


@pytest.mark.parametrize("amount, what", amounts(OF_SUMS, [
    "sums land where others are still read",
    "a share is left out",
    "the order is another",
]))  # fmt: skip
def test_a_spoilt_finisher_is_found(amount, what, monkeypatch):
    on_a_cpu.spoil(monkeypatch, sums, *OF_SUMS[what])
    assert is_found(differentiated(Sizes((3, 1, 1), 200, 128, 128, False)))


def test_waiting_for_a_buffer_that_nobody_leaves_is_found():
    with pytest.raises(PipelineFault, match="a program waits for a later one"):
        differentiated(Sizes((1, 4, 4), 64, 128, 128, False), Tiles(lag=2, ring=2))(ORDERS[0])


BACKWARD_RUNGS = {
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


@pytest.mark.parametrize("amount, what", amounts(BACKWARD_RUNGS, [
    "r6: dK goes where K is still read",
    "r5: the wrong half",
]))  # fmt: skip
def test_a_spoilt_rung_of_the_backward_is_found(amount, what, monkeypatch):
    name, old, new = BACKWARD_RUNGS[what]
    module = MODULES[f"backward_{name}"]
    function = next(f.__name__ for f in vars(module).values() if old in getattr(f, "src", ""))
    on_a_cpu.spoil(monkeypatch, module, function, old, new)
    sizes = Sizes((1, 1, 1), 256, 128, 128, False)
    assert is_found(differentiated(sizes, name=f"backward_{name}"))


OF_256 = {
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


@pytest.mark.parametrize("amount, what", amounts(OF_256, [
    "no wait for Q's slot",
    "no wait for dO's slot",
    "no wait for K's slot",
]))  # fmt: skip
def test_a_spoilt_pass_at_d_256_is_found(amount, what, monkeypatch):
    on_a_cpu.spoil(monkeypatch, *OF_256[what])
    assert is_found(differentiated(Sizes((1, 1, 1), 256, 256, 256, False)))


EIGHT_BITS = {
    "no wait for a free slot": ("producer", "mbarrier.wait(v_empty.index(s), free)", "pass"),
    "the next V is not waited for": ("step", "mbarrier.wait(v_full.index(s), (g // STAGES) & 1)", "pass"),
    "K is not waited for": ("step", "mbarrier.wait(k_full.index(s), (g // STAGES) & 1)", "pass"),
    "P V is not waited for": ("step", "warpgroup_mma_wait(0", "warpgroup_mma_wait(1"),
    "no turn is handed on": ("step", "mbarrier.arrive(turn.index((ME + 1) % CONSUMERS))", "pass"),
    "another order of keys": ("operand", ".permute((0, 1, 3, 2, 4))", ".permute((0, 1, 2, 3, 4))"),
    "V's mean is left out": ("consumer", "O = O + mean", "O = O + 0.0 * mean"),
}


@pytest.mark.parametrize("amount, what", amounts(EIGHT_BITS, [
    "no wait for a free slot",
    "another order of keys",
    "V's mean is left out",
]))  # fmt: skip
def test_a_spoilt_kernel_in_eight_bits_is_found(amount, what, monkeypatch):
    function, old, new = EIGHT_BITS[what]
    on_a_cpu.spoil(monkeypatch, fp8_tiles if function == "operand" else fp8, function, old, new)
    sizes = Sizes((1, 2, 1), 140, 330, 64, False)
    Q, K, V = (X + 0.5 for X in on_a_cpu.inputs(sizes)[:3])
    small = quantise.quantised(Q, K, V, qk="e4m3", permuted=True)

    def run(order):
        found, ran = on_a_cpu.attended("fp8", Q, K, V, Tiles(multiprocessors=2), order, scale=0.25)
        eight.check(found, small, *eight.stands_for(small, sizes.N_k, True), False, 0.25)
        return ran

    assert is_found(run)


@pytest.mark.parametrize("run", [
    lambda: attended("forward", Sizes((1, 1, 1), 128, 320, 64, False), Tiles(multiprocessors=1)),
    lambda: differentiated(Sizes((1, 1, 1), 130, 70, 256, False)),
], ids=["forward", "backward"])  # fmt: skip
def test_an_intact_kernel_has_no_fault(run):
    assert not is_found(run())
