"""Other kinds of caches: left padding, slopes for each sequence, chosen sequences, pairs of neighbours."""

import pytest
import torch

from flashlib import masks
from flashlib.kernels import append, decode
from flashlib.lm import rotary
from tests import oracle
from tests.kernels import cached, sequences

LENGTHS = [70, 9, 130]
PADDING = [40, 0, 65]


def of_each(Q, K, V, lengths, padding, **options):
    """Return O and lse, (B, H, N_q, ...), of standard attention of each sequence, without its padding."""
    found = []
    for b, (n, first) in enumerate(zip(lengths, padding, strict=True)):
        q, k, v = (X.transpose(0, 1) for X in (Q[b], K[b, :, first:n], V[b, :, first:n]))
        slopes = options.get("slopes")
        own = {"slopes": slopes if slopes is None or slopes.ndim == 1 else slopes[b : b + 1]}
        cu_q, cu_k = torch.tensor([0, len(q)]), torch.tensor([0, len(k)])
        found.append(sequences.attention(q, k, v, cu_q, cu_k, **options | own))
    O, lse = (torch.stack(parts) for parts in zip(*found, strict=True))
    return O.transpose(1, 2), lse.mT


def check(problem, lengths, padding=None, mask=None, causal=False, slopes=None, **options):
    """Check O and lse: at most twice the error of standard attention in the dtype of Q."""
    Q, cache, K, V = problem
    of_padding = None if padding is None else torch.tensor(padding, dtype=torch.int32, device=Q.device)
    given = decode.attention(Q, **cache, padding=of_padding, slopes=slopes, mask=mask, causal=causal)
    padding = padding or [0] * len(lengths)
    options |= {"slopes": slopes}
    if causal:
        options["window"] = options.get("window", (None, None))[0], 0
    exact = of_each(Q.double(), K, V, lengths, padding, **options)
    plain = of_each(Q, K.to(Q.dtype), V.to(Q.dtype), lengths, padding, **options)
    for name, X, Y, Z in zip(("O", "lse"), given, exact, plain, strict=True):
        rounding = torch.finfo(Q.dtype if name == "O" else torch.float32).eps * 16
        oracle.assert_close(X.cpu().double(), Y.cpu(), plain=Z.cpu().double(), rounding=rounding, what=name)
    return given


@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("N_q, causal", [(1, False), (3, True), (5, False)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_left_padding_has_no_effect(page, N_q, causal, dtype, device, poisoned):
    problem = cached.problem(device, LENGTHS, N_q=N_q, page=page, dtype=dtype)
    for b, n in enumerate(PADDING):  # nothing of it is read
        if not page:
            problem.cache["K"][b, :, :n] = problem.cache["V"][b, :, :n] = torch.nan
    check(problem, LENGTHS, PADDING, causal=causal)


def test_queries_within_the_padding_see_nothing(device, poisoned):
    problem = cached.problem(device, LENGTHS, N_q=12)
    O, lse = decode.attention(problem.Q, **problem.cache, padding=tensor(PADDING, device), causal=True)
    seen = (
        torch.arange(12, device=device) + tensor(LENGTHS, device)[:, None] - 12 >= tensor(PADDING, device)[:, None]
    )
    assert torch.equal(lse > -torch.inf, seen[:, None].expand_as(lse))
    assert torch.equal((O != 0).any(-1), seen[:, None].expand_as(lse)) and not O.isnan().any()


def tensor(numbers, device):
    return torch.tensor(numbers, dtype=torch.int32, device=device)


def test_all_is_padding(device, poisoned):
    problem = cached.problem(device, LENGTHS)
    O, lse = decode.attention(problem.Q, **problem.cache, padding=tensor([70, 20, 131], device))
    assert (O == 0).all() and (lse == -torch.inf).all()


@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("cap", [None, 2.0])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("N_q", [1, 3])
def test_slopes_of_each_sequence(page, cap, own, N_q, device, poisoned):
    problem = cached.problem(device, LENGTHS, N_q=N_q, page=page)
    slopes = torch.rand(*((3,) if own else ()), 4, device=device)
    mask = None if cap is None else masks.softcap(cap)
    check(problem, LENGTHS, slopes=slopes, cap=cap, mask=mask)
    check(problem, LENGTHS, PADDING, causal=True, slopes=slopes, cap=cap, mask=mask)
    window = masks.window(20, 4) if mask is None else mask & masks.window(20, 4)
    check(problem, LENGTHS, slopes=slopes, cap=cap, mask=window, window=(20, 4))


def test_one_plan_serves_different_paddings_and_slopes(device):
    problem = cached.problem(device, LENGTHS)
    for k in range(2):
        check(problem, LENGTHS, [n // (k + 1) for n in PADDING], slopes=torch.rand(3, 4, device=device))
        check(problem, LENGTHS, [n // (k + 1) for n in PADDING])


@pytest.mark.parametrize("amount, dtype", [("few", torch.bfloat16), ("all", torch.float32)])
def test_sequences_of_a_contiguous_cache_may_be_chosen(amount, dtype, device, poisoned):
    Q, cache, K, V = cached.problem(device, [30, 70, 9, 130, 50], N_q=2, dtype=dtype)
    chosen = [3, 0, 3, 2]
    at = torch.tensor(chosen, device=device)
    whole = {"K": cache["K"], "V": cache["V"], "lengths": cache["lengths"][at], "table": at.to(torch.int32)}
    given = decode.attention(Q[at], **whole, causal=True)
    expected = decode.attention(Q[at], **{name: X[at] for name, X in cache.items()}, causal=True)
    assert all(map(torch.equal, given, expected))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_new_keys_go_to_the_sequences_that_were_chosen(dtype, device, poisoned):
    K, V = torch.randn(2, 3, 2, 4, 24, device=device).to(dtype)
    lengths, table = tensor([4, 9, 20], device), tensor([4, 0, 2], device)
    caches = torch.randn(2, 5, 2, 20, 24, device=device).to(dtype)
    expected = caches.clone()
    append.append(K, V, *caches, lengths, table)
    for b, n in enumerate(lengths.tolist()):
        expected[0, table[b], :, n - 4 : n], expected[1, table[b], :, n - 4 : n] = K[b], V[b]
    assert torch.equal(caches, expected)


def neighbours(X, cos, sin):
    """Return X with pairs of neighbours rotated, in fp64."""
    X, half = X.double(), cos.shape[-1]
    x, y = X[..., : 2 * half : 2], X[..., 1 : 2 * half : 2]
    turned = torch.stack([x * cos - y * sin, y * cos + x * sin], -1).flatten(-2)
    return torch.cat([turned, X[..., 2 * half :]], -1)


@pytest.mark.parametrize("d_rot", [6, 16, 24])
@pytest.mark.parametrize("page", [0, 8])
def test_pairs_may_be_neighbours(d_rot, page, device, poisoned):
    B, H, N, d = 3, 2, 5, 24
    turn = rotary.angles(40, d_rot, device=device)
    K, V = torch.randn(2, B, H, N, d, device=device)
    lengths, table = tensor([5, 17, 31], device), tensor([[1, 4, 6, 9], [3, 0, 7, 8], [2, 5, 11, 10]], device)
    caches = torch.zeros(2, 12, H, 8, d, device=device) if page else torch.zeros(2, B, H, 32, d, device=device)
    append.append(K, V, *caches, lengths, table if page else None, rotary=turn, interleaved=True)
    at = (lengths[:, None] - N + torch.arange(N, device=device)).long()
    exact = neighbours(K, *(X[at][:, None].double() for X in turn))
    whole = [X[table.long()].transpose(1, 2).flatten(2, 3) if page else X for X in caches]
    for b in range(B):
        assert oracle.worst(whole[0][b][:, at[b]].cpu(), exact[b].cpu()) < 1e-6
        assert torch.equal(whole[1][b][:, at[b]], V[b])
    given = append.rotate(K, lengths, turn, interleaved=True)
    assert oracle.worst(given.cpu(), exact.cpu()) < 1e-6


PROBLEM = cached.problem("cpu", [5, 3])


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"padding": [0, 1]}, TypeError, r"padding is of type list; pass a torch tensor \(B,\)"),
        ({"padding": torch.zeros(2)}, TypeError, "padding has dtype torch.float32; accepted are torch.int32"),
        ({"padding": tensor([1, 2, 3], "cpu")}, ValueError, r"padding has shape \(3,\); expected \(B,\) here"),
        ({"slopes": torch.zeros(4).half()}, TypeError, "slopes has dtype torch.float16; accepted are"),
        ({"slopes": torch.zeros(2, 2)}, ValueError, r"slopes has shape \(2, 2\); expected .* here \(2, 4\)"),
        ({"slopes": torch.zeros(4, requires_grad=True)}, ValueError, "slopes requires a gradient"),
        ({"slopes": torch.zeros(4), "shared": 2}, ValueError, "would see the shared keys differently"),
        ({"table": tensor([0, 1, 1], "cpu")}, ValueError, r"table has shape \(3,\); expected \(B,\) here \(2\)"),
    ],
)
def test_bad_input_is_refused(changed, error, words, monkeypatch):
    monkeypatch.setattr("flashlib.kernels.decode.check_device", lambda **_: None)
    with pytest.raises(error, match=words):
        decode.attention(PROBLEM.Q, **PROBLEM.cache | changed)


def test_interleaved_is_true_or_false():
    turn = rotary.angles(10, 8, device="cpu")
    with pytest.raises(TypeError, match="interleaved is 1; pass True where pairs are neighbours"):
        append.rotate(torch.zeros(1, 1, 1, 16), tensor([1], "cpu"), turn, interleaved=1)
