"""`kernels.attention` takes Hopper's kernels where they take the call and are faster; `kernels.chosen` says so."""

import itertools
import json
import math
import statistics
from pathlib import Path

import pytest
import torch

from flashlib import kernels, masks
from flashlib.kernels import autograd, backward, choice, forward
from flashlib.kernels.launch import planning
from flashlib.private_apis import gpu_stand_in
from flashlib.types import Attention, Grads

ROOT = Path(__file__).resolve().parents[2]
PORTABLE = "flashlib.kernels.forward", "flashlib.kernels.backward"
HOPPER = "flashlib.kernels.hopper.forward", "flashlib.kernels.hopper.backward"


def inputs(N_q=517, N_k=517, d=128, H=4, H_k=2, d_v=None, dtype=torch.bfloat16):
    torch.manual_seed(0)
    shapes = (2, H, N_q, d), (2, H_k, N_k, d), (2, H_k, N_k, d_v or d)
    return [torch.randn(shape).to(dtype) for shape in shapes]


@pytest.fixture
def hopper():
    """A Hopper GPU as far as launchers can tell, with tensors on the CPU."""
    with gpu_stand_in.standing_in(gpu_stand_in.StandIn(132)):
        yield


def modules(found):
    return found.forward, found.backward


def test_in_the_interpreter_the_portable_kernels_are_taken():
    found = kernels.chosen(*inputs())
    if kernels.INTERPRETED:
        assert modules(found) == PORTABLE
        assert found.why_forward == found.why_backward == "the kernels are interpreted here, as there is no GPU"


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d, N, H", [(64, 1024, 17), (128, 517, 4), (256, 131, 1)])
def test_on_hopper_its_kernels_are_taken(d, N, H, causal, hopper):
    """Gradients have the same bits every time by default, which Hopper's have only at d = 256."""
    X = inputs(N, N, d, H, 1)
    any_order = kernels.chosen(*X, causal=causal, deterministic=False)
    assert modules(any_order) == HOPPER
    assert {any_order.why_forward, any_order.why_backward} == {"it takes the call, and is faster"}
    by_default = kernels.chosen(*X, causal=causal)
    assert modules(by_default) == (HOPPER[0], (HOPPER if d == 256 else PORTABLE)[1])
    assert d == 256 or by_default.why_backward.startswith("deterministic is True")


AGAINST = {
    "portable is True": ({}, {"portable": True}),
    "there is a mask other than causal": ({}, {"mask": masks.window(63, 0)}),
    "Q is torch.float32": ({"dtype": torch.float32}, {}),
    "d is 80 and d_v 80": ({"d": 80}, {}),
    "d is 128 and d_v 64": ({"d_v": 64}, {}),
}


@pytest.mark.parametrize("reason", AGAINST)
def test_what_they_do_not_take_is_left_to_the_portable_ones(reason, hopper):
    shape, options = AGAINST[reason]
    found = kernels.chosen(*inputs(**shape), deterministic=False, **options)
    assert modules(found) == PORTABLE
    assert found.why_forward.startswith(reason) and found.why_backward.startswith(reason)


def test_tensors_that_the_copy_unit_cannot_address_are_left_to_the_portable_ones(hopper):
    Q, K, V = inputs(d=136)
    found = kernels.chosen(*(X[..., 4:132] for X in (Q, K, V)), deterministic=False)
    assert modules(found) == PORTABLE and "copy unit" in found.why_forward


@pytest.mark.parametrize("d, least", choice.FORWARD.items())
def test_small_calls_are_left_to_the_portable_forward(d, least, hopper):
    for few_rows, few_keys in itertools.product((0, 1), repeat=2):
        rows, keys = least.rows - few_rows, least.keys - few_keys
        found = kernels.chosen(*inputs(rows, keys, d, H=132, H_k=1))
        assert (found.forward == HOPPER[0]) == (not few_rows and not few_keys)
        if few_rows or few_keys:
            assert f"there are {rows} rows and {keys} keys" in found.why_forward


def test_at_d_64_a_block_for_half_of_the_multiprocessors_is_enough(hopper):
    chosen = [kernels.chosen(*inputs(128 * n, 1024, 64, H=11, H_k=1)) for n in (2, 3)]
    assert [found.forward == HOPPER[0] for found in chosen] == [False, True]
    assert (
        chosen[0].why_forward
        == "there are 44 blocks of rows, and at d = 64 the Hopper kernel is faster from 66 on"
    )


RECORD = json.loads((ROOT / "notebooks" / "data" / "h200_choice.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("which, d", [*itertools.product(("forward", "backward"), (64, 128, 256))])
def test_on_the_h200_the_choice_costs_little(which, d, hopper):
    """On average of all small calls that were timed, and less than either kernel alone."""
    costs = {"chosen": [], "portable": [], "hopper": []}
    for row in RECORD["rows"]:
        if (row["pass"], row["d"]) == (which, d):
            Q, K, V = (
                torch.empty(row["B"], row["H"], row[N], d, dtype=torch.bfloat16) for N in ("N_q", *["N_k"] * 2)
            )
            found = getattr(kernels.chosen(Q, K, K, causal=row["causal"], deterministic=False), which)
            us = row["graph_us"] | {"chosen": row["graph_us"]["hopper" if ".hopper." in found else "portable"]}
            for name, times in costs.items():
                times.append(math.log(us[name] / min(us.values())))
    chosen, *either = (math.exp(statistics.mean(times)) for times in costs.values())
    assert chosen <= min(1.015, *either), f"{chosen:.3f} of the best time, and either kernel alone {either}"


def test_on_the_h200_eight_bits_are_named_where_they_are_faster(hopper):
    """With the pass that makes them, and only there."""
    record = json.loads((ROOT / "notebooks" / "data" / "h200_fp8.json").read_text(encoding="utf-8"))
    assert {(row["d"], row["causal"]) for row in record["rows"]} == choice.EIGHT_BITS.keys()
    for row in record["rows"]:
        X = (
            torch.empty(row["B"], row["H"], row["N"], row["d"], dtype=torch.bfloat16, device="meta") for _ in "QKV"
        )
        reason = choice.against_eight_bits(*X, row["causal"], None, False)
        gain = row["tflops"]["fp8_whole"] / row["tflops"]["hopper"]
        assert (gain > 1) == (not reason), (row["d"], row["causal"], row["N"], gain)


def test_eight_bits_are_named_only_where_they_are_allowed(hopper):
    X = inputs(4096, 4096, 256, 1, 1)
    assert kernels.chosen(*X).forward == HOPPER[0]
    found = kernels.chosen(*X, eight_bits=True)
    assert modules(found) == ("flashlib.kernels.hopper.fp8", "none") and "no gradients" in found.why_backward
    for options in ({"causal": True, "portable": True}, {"mask": masks.window(9, 0)}):
        assert kernels.chosen(*X, eight_bits=True, **options) == kernels.chosen(*X, **options)


def test_rows_that_see_few_keys_are_left_to_the_portable_backward(hopper):
    for causal, N in ((False, 127), (True, 255)):
        few, enough = (kernels.chosen(*inputs(n, n, 64), causal=causal, deterministic=False) for n in (N, N + 1))
        assert (few.backward, enough.backward) == (PORTABLE[1], HOPPER[1])
        assert few.why_backward.startswith(f"a row sees {127 if not causal else 127.5:g} keys")


@pytest.mark.parametrize(
    "options", [{}, {"portable": True}, {"deterministic": False}, {"mask": masks.window(9, 9)}]
)
@pytest.mark.parametrize("d, N", [(64, 600), (128, 300), (128, 70), (256, 70), (80, 600)])
def test_what_is_chosen_is_what_computes(d, N, options, hopper, monkeypatch):
    """Each time, also when the plan is kept."""
    by, (of_hopper, back_of_hopper) = [], autograd._of_hopper()
    for name, module in (("forward", forward), ("hopper.forward", of_hopper)):
        run = attended(by, f"flashlib.kernels.{name}")
        monkeypatch.setattr(module, "run", run)
    for name, module in (("backward", backward), ("hopper.backward", back_of_hopper)):
        monkeypatch.setattr(module, "run", differentiated(by, f"flashlib.kernels.{name}"))
    for plans in ("CALLS", "GRADIENTS"):
        monkeypatch.setattr(autograd, plans, planning.Plans())
    for _ in range(2):
        by.clear()
        leaves = [X.requires_grad_() for X in inputs(N, N, d, H=70)]
        kernels.attention(*leaves, causal=True, **options).O.sum().backward()
        assert tuple(by) == modules(kernels.chosen(*leaves, causal=True, **options))


def attended(by, name):
    def run(Q, K, V, scale, plan, **_):
        by.append(name)
        return Attention(torch.zeros_like(Q[..., : V.shape[-1]]), torch.zeros(Q.shape[:3]))

    return run


def differentiated(by, name):
    def run(Q, K, V, *_, **__):
        by.append(name)
        return Grads(torch.zeros_like(Q), torch.zeros_like(K), torch.zeros_like(V))

    return run


def test_bad_input_is_refused_as_by_attention():
    Q, K, V = inputs()
    for bad, options in (((Q, K[..., :64], V), {}), ((Q, K, V), {"causal": "yes"}), ((Q, K, V), {"mask": 3})):
        messages = []
        for call in (kernels.attention, kernels.chosen):
            with pytest.raises((TypeError, ValueError)) as found:
                call(*bad, **options)
            messages.append(str(found.value))
        assert messages[0] == messages[1]
    with pytest.raises(TypeError, match="portable is 1; pass True or False"):
        kernels.attention(Q, K, V, portable=1)


@pytest.mark.gpu
@pytest.mark.parametrize("d, N", [(64, 1031), (128, 517), (256, 131)])
def test_both_choices_compute_the_same(d, N):
    shape = (3, 8, N, d)
    Q, K, V, dO = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    leaves = [X.requires_grad_() for X in (Q, K, V)]
    results = []
    for portable in (False, True):
        O, lse = kernels.attention(*leaves, causal=True, deterministic=False, portable=portable)
        results.append((O, lse, *torch.autograd.grad(O, leaves, dO)))
    for X, Y in zip(*results, strict=True):
        torch.testing.assert_close(X, Y, atol=2e-2, rtol=2e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("d, N", [(64, 1031), (128, 517), (256, 131)])
def test_a_captured_call_replays_with_new_numbers(d, N):
    Q, K, V, dO = (torch.randn(3, 8, N, d, device="cuda", dtype=torch.bfloat16) for _ in range(4))

    def call():
        leaves = [X.detach().requires_grad_() for X in (Q, K, V)]  # new ones: a leaf remembers its first stream
        O, lse = kernels.attention(*leaves, causal=True, deterministic=False)
        return O, lse, *torch.autograd.grad(O, leaves, dO)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # autograd's first call must not be captured
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        captured = call()
    with torch.no_grad():
        for X in (Q, K, V, dO):
            X.normal_()
    graph.replay()
    for X, Y in zip(captured, call(), strict=True):
        torch.testing.assert_close(X, Y, atol=1e-2, rtol=1e-2)
