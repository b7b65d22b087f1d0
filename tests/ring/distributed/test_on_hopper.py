"""Whole and causal hops go to Hopper's kernels, interpreted here; all hops merged equal the whole.

On a Hopper GPU the kernels are compiled, and the error does not grow with the number of ranks.
"""

import contextlib
import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from flashlib import gluon, masks, torch_ref  # noqa: E402
from flashlib.kernels.hopper import backward, forward, launch_backward  # noqa: E402
from flashlib.kernels.launch import planning  # noqa: E402
from flashlib.masks.runs import positions  # noqa: E402
from flashlib.ring import hops  # noqa: E402
from flashlib.ring.distributed import on_gpu, on_hopper  # noqa: E402
from flashlib.types import Grads  # noqa: E402
from tests.kernels import gradients  # noqa: E402
from tests.kernels.test_parts import rms  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
of_gpu = [pytest.mark.gpu, pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")]
FP32 = torch.float32


def joined(module, plan, Q, K, V, dO):
    """Return O, lse and the gradients as the ranks of a ring compute them, one rank after the other."""
    scale = Q.shape[-1] ** -0.5
    O, lse = torch.zeros_like(Q, dtype=FP32), torch.full(Q.shape[:3], -torch.inf, device=Q.device)
    grads = [torch.zeros_like(X, dtype=FP32) for X in (Q, K, V)]
    rows, keys = ([torch.from_numpy(positions(runs)).to(Q.device) for runs in of] for of in (plan.rows, plan.keys))
    met = [
        (rows[r][hop.rows], keys[s][hop.keys], hop.mask)
        for r, s in itertools.product(range(plan.P), repeat=2)
        if (hop := plan.hops[r][s])
    ]
    for i, j, mask in met:
        own = O[:, :, i], lse[:, :, i]
        module.merge(*own, *module.attention(Q[:, :, i], K[:, :, j], V[:, :, j], mask, scale))
        O[:, :, i], lse[:, :, i] = own
    O = O.to(Q.dtype)
    delta = module.delta_of(O, dO)
    for i, j, mask in met:
        of_rows = lse[:, :, i], dO[:, :, i], delta[:, :, i]
        share = module.backward(Q[:, :, i], K[:, :, j], V[:, :, j], *of_rows, mask, scale)
        for grad, own, X in zip(grads, (i, j, j), share, strict=True):
            assert X.dtype == FP32
            grad[:, :, own] += X
    return O, lse, Grads(*(X.to(Q.dtype) for X in grads)), len(met)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=of_gpu)])
def calls(request, monkeypatch):
    """Record the calls of Hopper's kernels, on a device that is taken for a Hopper GPU: on a CPU, interpreted."""
    made = {"device": request.param, "forward": [], "backward": []}

    def counted(name, run, number):
        def noted(*given):
            plan = given[number]
            launch = next(one for one in plan if "CAUSAL" in getattr(one, "constants", ()))
            made[name].append(launch.constants["CAUSAL"])
            return run(*given)

        return noted

    monkeypatch.setattr(forward, "run", counted("forward", forward.run, 4))
    monkeypatch.setattr(backward, "run", counted("backward", backward.run, 8))
    monkeypatch.setattr(launch_backward, "SEEN", dict.fromkeys(launch_backward.SEEN, 1))
    monkeypatch.setattr(on_hopper, "PLANS", planning.Plans())
    with gluon.on_cpu(seed=0) if request.param == "cpu" else contextlib.nullcontext():
        yield made


def tensors(device, N, d, heads):
    B, H, H_k = heads
    torch.manual_seed(N + d)
    shapes = (B, H, N, d), (B, H_k, N, d), (B, H_k, N, d), (B, H, N, d)
    return [torch.randn(shape, device=device).to(torch.bfloat16) for shape in shapes]


# layout, ranks, tokens, mask; how many hops are causal, whole, and neither
CASES = [
    ("zigzag", 2, 106, masks.causal(), 2, 2, 0),
    ("contiguous", 3, 79, masks.causal(), 3, 3, 0),
    ("striped", 2, 101, masks.causal(), 4, 0, 0),
    ("zigzag", 2, 75, masks.Mask(), 0, 4, 0),
    ("contiguous", 2, 90, masks.window(20, 0), 0, 0, 3),
    ("zigzag", 2, 90, masks.causal() & masks.softcap(3.0), 0, 0, 4),
]


@pytest.mark.parametrize("layout, P, N, mask, causal, whole, others", CASES)
@pytest.mark.parametrize("module", [on_gpu, on_hopper])
def test_causal_and_whole_hops_use_hoppers_kernels(module, layout, P, N, mask, causal, whole, others, calls):
    Q, K, V, dO = tensors(calls["device"], N, 64, (1, 2, 1))
    O, lse, grads, n = joined(module, hops.plan(mask, N, N, P, layout), Q, K, V, dO)
    expected = [True] * causal + [False] * whole
    assert sorted(calls["forward"], reverse=True) == expected and n == causal + whole + others
    assert sorted(calls["backward"], reverse=True) == (expected if module is on_hopper else [])
    of_all = [X.double() for X in (Q, *(X.repeat_interleave(2, dim=1) for X in (K, V)))]
    exact = torch_ref.attention(*of_all, mask=mask)
    assert (O - exact.O).abs().max() <= 2**-8 * exact.O.abs().max() + 0.01
    assert (lse - exact.lse).abs().max() <= 1e-5
    gradients.hold(grads, Q, K, V, dO, mask=mask)


def test_other_head_dims_and_dtypes_use_the_portable_kernels(calls):
    for d, dtype in ((256, torch.float16), (32, torch.bfloat16), (64, FP32)):
        X = torch.randn(1, 1, 33, d, device=calls["device"]).to(dtype)
        O, lse = on_hopper.attention(X, X, X, masks.Mask(), 0.1)
        exact = torch_ref.attention(*[X.double()] * 3, scale=0.1)
        assert O.dtype == FP32 and (O - exact.O).abs().max() < 0.01
        delta = on_hopper.delta_of(X, X)
        assert on_hopper.backward(X, X, X, lse, X, delta, masks.Mask(), 0.1).dQ.dtype == FP32
    assert calls["forward"] == [] and calls["backward"] == [False]  # of d = 256 only the backward takes parts


def test_deterministic_algorithms_of_torch_avoid_hoppers_backward(calls, monkeypatch):
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    Q, K, V, dO = tensors(calls["device"], 75, 64, (1, 1, 1))
    joined(on_hopper, hops.plan(masks.causal(), 75, 75, 2, "zigzag"), Q, K, V, dO)
    assert len(calls["forward"]) == 4 and calls["backward"] == []


@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")
@pytest.mark.parametrize("d", [64, 128])
def test_the_error_does_not_grow_with_the_number_of_ranks(d, monkeypatch):
    monkeypatch.setattr(launch_backward, "SEEN", dict.fromkeys(launch_backward.SEEN, 1))
    monkeypatch.setattr(on_hopper, "PLANS", planning.Plans())
    Q, K, V, dO = tensors("cuda", 1024, d, (1, 4, 4))
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), causal=True).O
    right = [exact, *gradients.reference(*(X.double() for X in (Q, K, V)), dO, None, causal=True)]
    found = []
    for P in (1, 2, 4, 8, 16):
        O, _, grads, _ = joined(on_hopper, hops.plan(masks.causal(), 1024, 1024, P, "zigzag"), Q, K, V, dO)
        found.append(rms([O, *grads], right))
    found = torch.tensor(found)
    print(found / found[0])
    assert (found > 1e-3).all(), "bf16 keeps 3 digits"
    assert (found / found[0] < 1.02).all(), found
