"""The closed form of what a rank holds in the backward pass: copies on their way, and heads that take turns."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
from flashlib import masks  # noqa: E402
from flashlib.ring import hops  # noqa: E402
from flashlib.ring.distributed import gradients, memory  # noqa: E402

SIZES = memory.AttentionSizes(2, 6, 3, 8, 24, torch.bfloat16)


def of_a_window(P, n):
    """Return the Plan of ranks whose rows also need the keys of the previous rank."""
    return hops.plan(masks.window(5, 0), n * P, n * P, P, "contiguous")


def test_gradients_come_home_only_to_keys_that_others_see():
    plan, n = of_a_window(4, 32), 32
    inner, last = (memory.backward(SIZES, plan, r) for r in (2, 3))
    assert inner - last == 4 * 2 * 3 * n * (8 + 24), "dK and dV in fp32"


def test_heads_take_turns_from_the_number_of_bytes_in_the_closed_form(monkeypatch):
    N, P = 94, 4
    plan = hops.plan(masks.causal(), N, N, P, "contiguous")
    n_bytes = 4 * 2 * 3 * 24 * (8 + 24)  # dK and dV, in fp32, of the 24 keys that a rank holds at most
    K, V = (torch.empty(2, 3, 24, d, dtype=torch.bfloat16, device="meta") for d in (8, 24))
    call = SimpleNamespace(plan=plan, local=SimpleNamespace(taken=[0, 0, 1, 1, 2, 2], calls=[]))
    found = {}
    for turn in (0, n_bytes, n_bytes + 1, 2**60):
        monkeypatch.setattr(gradients, "TURN", turn)
        turns = gradients.turns(call, K, V, torch.float32)
        found[turn] = [memory.backward(SIZES, plan, r) for r in range(P)]
        assert [(q.stop, k.stop) for q, k in turns] == ([(4, 2), (6, 3)] if turn <= n_bytes else [(6, 3)])
    assert found[0] == found[n_bytes] and found[n_bytes + 1] == found[2**60] != found[0]
