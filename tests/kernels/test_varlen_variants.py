"""Windows, soft caps, slopes and dropout of packed sequences equal standard attention of each, in fp64."""

import numpy as np
import pytest
import torch

from flashlib import masks
from flashlib.kernels import varlen
from tests import oracle
from tests.kernels import sequences
from tests.kernels.test_varlen import PACKS, packed
from tests.tiers import amounts

NAMES = "O", "lse", "dQ", "dK", "dV"


def results(attention, Q, K, V, offsets, dO, dlse, **options):
    """Return O, lse and the gradients of both."""
    leaves = [X.detach().requires_grad_() for X in (Q, K, V)]
    O, lse = attention(*leaves, *offsets, **options)
    total = (O * dO.to(O)).sum() + (lse.masked_fill(lse == -torch.inf, 0) * dlse.to(lse)).sum()
    grads = torch.autograd.grad(total, leaves, allow_unused=True)
    return [O, lse, *(torch.zeros_like(X) if g is None else g for X, g in zip(leaves, grads, strict=True))]


def check(Q, K, V, *offsets, causal=False, window=(None, None), cap=None, slopes=None, p=0.0, scale=None, seed=7):
    """Check O, lse and their gradients: at most twice the error of standard attention in the same dtype."""
    mask = None
    for part in (window != (None, None) and masks.window(*window), cap and masks.softcap(cap)):
        mask = mask if not part else part if mask is None else mask & part
    dO, dlse = (
        torch.randn(*Q.shape[:2], V.shape[2], device=Q.device).to(Q.dtype),
        torch.randn_like(Q[..., 0].float()),
    )
    options = {"scale": scale, "slopes": slopes}
    ours = {"causal": causal, "mask": mask, "dropout": p, "seed": seed if p else None} | options
    given = results(varlen.attention, Q, K, V, offsets, dO, dlse, **ours)
    dropped = [
        varlen.dropped(p, seed, Q.shape[1], len(Q), len(K), *(tokens(cu, b) for cu in offsets))
        for b in range(len(offsets[0]) - 1)
    ] if p else None  # fmt: skip
    theirs = {"window": (window[0], 0) if causal else window, "cap": cap, "dropped": dropped, "p": p} | options
    exact = results(sequences.attention, *(X.double() for X in (Q, K, V)), offsets, dO, dlse, **theirs)
    plain = results(sequences.attention, Q, K, V, offsets, dO, dlse, **theirs)
    for name, *of_each in zip(NAMES, given, exact, plain, strict=True):
        X, X_exact, X_plain = (Y.detach().cpu().double().numpy() for Y in of_each)
        unit = 1e-6 if name == "lse" else torch.finfo(Q.dtype).eps
        rounding = 8 * unit * max(1.0, np.abs(X_exact[np.isfinite(X_exact)]).max(initial=0))
        oracle.assert_close(X, X_exact, plain=X_plain, rounding=rounding, what=name)
    return given


def tokens(cu, b):
    return torch.arange(int(cu[b]), int(cu[b + 1]), dtype=torch.int32, device=cu.device)


SLOPES = torch.tensor([0.3, 0.02])


@pytest.mark.parametrize(
    "amount, options",
    [
        ("all", {"window": (5, 3)}),
        ("few", {"window": (None, 4)}),
        ("all", {"window": (0, 0)}),
        ("few", {"window": (7, None), "causal": True}),
        ("few", {"cap": 2.0}),
        ("all", {"slopes": SLOPES}),
        ("few", {"p": 0.3}),
        ("few", {"window": (9, 2), "cap": 1.5, "slopes": SLOPES, "p": 0.2}),
        ("few", {"causal": True, "slopes": SLOPES, "p": 0.5, "scale": 0.7}),
    ],
    ids=str,
)
@pytest.mark.parametrize("pack", PACKS)
def test_equals_standard_attention_of_each_sequence(amount, pack, options, device, poisoned):
    options = {k: X.to(device) if isinstance(X, torch.Tensor) else X for k, X in options.items()}
    check(*packed(device, *PACKS[pack], heads=(2, 2 if "cap" in options else 1)), **options)


@pytest.mark.parametrize("amount, seed", amounts(range(4), few=[1, 2]))
def test_lengths_and_options_drawn_at_random(amount, seed, device, poisoned):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 25 if device == "cpu" else 700, (2, rng.integers(1, 6)))
    dtype = [torch.float32, torch.float16, torch.bfloat16, torch.float32][seed]
    H_k, group = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    given = packed(device, *lengths.tolist(), heads=(group * H_k, H_k), d=int(rng.integers(16, 60)), dtype=dtype)
    window = tuple(None if rng.random() < 0.3 else int(rng.integers(0, 50)) for _ in range(2))
    slopes = torch.rand(lengths.shape[1], group * H_k, device=device)
    check(*given, causal=seed % 2 == 0, window=window, cap=3.0 if seed > 1 else None, slopes=slopes, p=0.1 * seed)


def test_slopes_of_each_sequence_are_its_own(device):
    Q, K, V, *offsets = packed(device, [20, 30], [25, 21], heads=(2, 1))
    slopes = torch.tensor([[0.3, 0.02], [0.0, 1.5]], device=device)
    given = check(Q, K, V, *offsets, slopes=slopes)
    first = varlen.attention(Q[:20], K[:25], V[:25], *(cu[:2] for cu in offsets), slopes=slopes[0])
    assert oracle.worst(given[0][:20].detach().cpu(), first.O.detach().cpu()) < 1e-6


def philox(seed, *counter, rounds=10):
    """Return the first of the four numbers of Philox. Source: Salmon and others, Random123 (2011)."""
    c0, c1, c2, c3 = (
        np.asarray(c).astype(np.int64).astype(np.uint64) & 0xFFFFFFFF for c in np.broadcast_arrays(*counter)
    )
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(rounds):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & 0xFFFFFFFF, (k1 + np.uint64(0xBB67AE85)) & 0xFFFFFFFF
    return c0


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3, 2**63 - 1])
def test_the_weights_dropped_are_those_of_philox_at_their_places(seed, device):
    rows, keys = (torch.arange(n, dtype=torch.int32, device=device) for n in (67, 83))
    given = varlen.dropped(0.17, seed, 3, 67, 20, rows, keys)
    r, c = np.arange(67)[:, None] + 20 - 67, np.arange(83)[None, :]
    for h in range(3):
        assert np.array_equal(
            given[h].cpu(), (philox(seed, r, c, h, 0) >> 8) / 2**24 < round(0.17 * 2**24) / 2**24
        )


def test_the_requested_share_of_weights_is_dropped(device):
    tokens = torch.arange(150, dtype=torch.int32, device=device)
    for p in (0.01, 0.17, 0.9):
        share = varlen.dropped(p, 3, 2, 150, 150, tokens, tokens).float().mean()
        assert abs(share - p) < 4 * (p * (1 - p) / 45000) ** 0.5


def test_a_seed_is_drawn_by_the_generator_of_torch(device):
    given = packed(device, [20, 30], [25, 21])
    calls = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        calls.append(varlen.attention(*given, dropout=0.5).O)
    assert torch.equal(calls[0], calls[1]) and not torch.equal(calls[0], calls[2])
    tensor = torch.full((), 9, device=device)
    by_number, by_tensor = (varlen.attention(*given, dropout=0.5, seed=seed).O for seed in (9, tensor))
    assert torch.equal(by_number, by_tensor)


def test_tokens_after_the_last_sequence_see_nothing(device, poisoned, monkeypatch):
    """Offsets on a GPU may end before T, since they are not checked; those on the CPU may not."""
    monkeypatch.setattr(varlen, "_check_values", lambda *_: None)
    Q, K, V, *offsets = packed(device, [20, 13], [25, 21])
    more = [torch.cat([X.detach(), torch.randn_like(X[:9])]).requires_grad_() for X in (Q, K, V)]
    dO, dlse = torch.randn_like(more[0]), torch.randn_like(more[0][..., 0])
    given = results(varlen.attention, *more, offsets, dO, dlse, mask=masks.window(30, 1))
    expected = results(varlen.attention, Q, K, V, offsets, dO[:33], dlse[:33], mask=masks.window(30, 1))
    for name, X, Y in zip(NAMES, given, expected, strict=True):
        assert torch.allclose(X[: len(Y)], Y, atol=1e-5), name
        assert (X[len(Y) :] == (-torch.inf if name == "lse" else 0)).all(), name


@pytest.mark.parametrize("page", [1, 4, 16])
def test_pages_are_gathered_to_a_pack(page, device):
    lengths = torch.tensor([0, 11, 11, 40], dtype=torch.int32, device=device)  # one of them empty
    most = -(-29 // page)
    table = torch.randperm(3 * most, device=device).to(torch.int32).view(3, most)
    pages = torch.randn(3 * most, 2, page, 5, device=device, requires_grad=True)
    given = varlen.gathered(pages, table, lengths, 44)
    whole = [pages[table[b].long()].transpose(1, 2).flatten(0, 1) for b in range(3)]
    expected = torch.cat([X[:n] for X, n in zip(whole, (11, 0, 29), strict=True)])
    assert given.shape == (44, 2, 5) and torch.equal(given[:40], expected)
    dpages = (torch.autograd.grad(Y.square().sum(), pages, retain_graph=True)[0] for Y in (given[:40], expected))
    assert torch.equal(*dpages)


X, CU = torch.zeros(8, 2, 16), torch.tensor([0, 3, 8], dtype=torch.int32)


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"mask": masks.prefix(3)}, ValueError, r"the mask has prefix\(3\), and packed sequences take windows"),
        ({"mask": masks.alibi([0.1, 0.2])}, ValueError, "slopes= for ALiBi"),
        ({"mask": masks.window(1, 2) & masks.documents(np.zeros(8, int))}, ValueError, "masks.documents"),
        ({"mask": 3}, TypeError, "mask is of type int"),
        ({"slopes": [0.1, 0.2]}, TypeError, r"slopes is list; pass a tensor \(H_q,\) or \(B, H_q\)"),
        ({"slopes": torch.zeros(2).double()}, TypeError, "slopes is torch.float64"),
        ({"slopes": torch.zeros(3)}, ValueError, r"slopes has shape \(3,\) on cpu; pass \(2,\) or \(2, 2\)"),
        ({"slopes": torch.zeros(2, requires_grad=True)}, ValueError, "there is no kernel for it"),
        ({"dropout": 1.0}, ValueError, "dropout is 1.0; pass a probability from 0 to below 1"),
        ({"dropout": -0.1}, ValueError, "dropout is -0.1"),
        ({"dropout": "no"}, TypeError, "dropout is 'no'"),
        ({"dropout": 0.1, "seed": 0.5}, TypeError, "seed is 0.5; pass a whole number"),
        ({"dropout": 0.1, "seed": -1}, ValueError, "seed is -1; pass a number from 0"),
        ({"dropout": 0.1, "seed": torch.zeros(2).long()}, TypeError, r"seed is \(2,\) of torch.int64"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(changed, error, words, monkeypatch):
    monkeypatch.setattr("flashlib.kernels.launch.inputs.check_device", lambda **_: None)
    with pytest.raises(error, match=words):
        varlen.attention(**dict(Q=X, K=X, V=X, cu_seqlens_q=CU, cu_seqlens_k=CU) | changed)
