"""The functions of flash_attn do what its documentation says: standard attention in fp64, in its layouts."""

import inspect
import sys

import pytest
import torch

from flashlib import kernels, torch_ref
from flashlib.interop import flash_attn
from tests import oracle
from tests.kernels import sequences
from tests.tiers import amounts

B, N_q, N_k, H, H_k, d = 3, 19, 27, 4, 2, 24
OPTIONS = [
    {},
    {"causal": True},
    {"window_size": (5, 2)},
    {"window_size": (7, -1), "causal": True, "deterministic": True},
    {"window_size": torch.tensor([3, 9]), "softcap": 2.5},
    {"softcap": 1.5, "softmax_scale": 0.4},
    {"alibi_slopes": "of heads"},
    {"alibi_slopes": "of sequences", "causal": True},
    {"dropout_p": 0.3, "window_size": (6, 0), "softmax_scale": 0.4},
    {
        "dropout_p": 0.2,
        "alibi_slopes": "of sequences",
        "window_size": (-1, 4),
        "softcap": 3.0,
        "softmax_scale": 0.3,
    },
    {"deterministic": True, "causal": True},
]
COMBINED = [OPTIONS[k] for k in (3, 4, 6, 9)]  # in which every option occurs


def leaves(device, dtype=torch.float32, N=(N_q, N_k, N_k)):
    shapes = ((B, n, h, d) for n, h in zip(N, (H, H_k, H_k), strict=True))
    return [torch.randn(shape, device=device).to(dtype).requires_grad_() for shape in shapes]


def made(options, device):
    """Return options with slopes in place of their placeholders."""
    slopes = {"of heads": (H,), "of sequences": (B, H)}.get(options.get("alibi_slopes"))
    return options | ({"alibi_slopes": torch.rand(slopes, device=device)} if slopes else {})


def expected(q, k, v, lengths_q, lengths_k, options, S_dmask=None):
    """Return O, lse of packs of these lengths by standard attention; S_dmask says what was dropped."""
    left, right = (None if n < 0 else int(n) for n in options.get("window_size", (-1, -1)))
    p = options.get("dropout_p", 0)
    dropped = [X[:, :n, :m] < 0 for X, n, m in zip(S_dmask, lengths_q, lengths_k, strict=True)] if p else None
    cu_q, cu_k = (torch.tensor([0, *n]).cumsum(0) for n in (lengths_q, lengths_k))
    return sequences.attention(
        q, k, v, cu_q, cu_k, window=(left, 0 if options.get("causal") else right), cap=options.get("softcap"),
        slopes=options.get("alibi_slopes"), dropped=dropped, p=p, scale=options.get("softmax_scale"),
    )  # fmt: skip


def hold(given, tensors, lengths_q, lengths_k, options):
    """Check (O, lse, S_dmask) as packs, and gradients, against twice the error of standard attention."""
    O, lse, S_dmask = given
    dO = torch.randn_like(O)
    found = [O, lse, *torch.autograd.grad((O * dO).sum(), tensors)]
    of_each = []
    for dtype in (torch.float64, O.dtype):
        own = [X.detach().flatten(0, -3).to(dtype).requires_grad_() for X in tensors]
        O_, lse_ = expected(*own, lengths_q, lengths_k, options, S_dmask)
        of_each.append([O_, lse_.nan_to_num(neginf=torch.inf), *torch.autograd.grad((O_ * dO).sum(), own)])
    for name, X, exact, plain in zip(("O", "lse", "dq", "dk", "dv"), found, *of_each, strict=True):
        unit = torch.finfo(torch.float32 if name == "lse" else O.dtype).eps
        rounding = 32 * unit * max(1.0, exact[exact.isfinite()].abs().max().item())
        X, exact, plain = (Y.detach().reshape(exact.shape).double().cpu() for Y in (X, exact, plain))
        oracle.assert_close(X, exact, plain=plain, rounding=rounding, what=name)
    if p := options.get("dropout_p"):
        hold_weights(S_dmask, O, tensors[2].flatten(0, -3), lengths_q, lengths_k, p)


def hold_weights(S_dmask, O, v, lengths_q, lengths_k, p):
    """Check O against S_dmask: weights up to a factor per row, negative if dropped, 0 beyond a sequence."""
    for X, O_b, v_b in zip(S_dmask, O.split(lengths_q), v.split(lengths_k), strict=True):
        n_q, n_k = len(O_b), len(v_b)
        assert not X[:, n_q:].any() and not X[..., n_k:].any()
        weights = X[:, :n_q, :n_k].double()
        kept = weights.clamp(min=0) / weights.abs().sum(-1, keepdim=True).clamp(min=1e-300) / (1 - p)
        right = torch.einsum("hqk,khd->qhd", kept, v_b.double().repeat_interleave(H // H_k, 1))
        torch.testing.assert_close(O_b.double(), right, atol=max(1e-5, 4 * torch.finfo(O.dtype).eps), rtol=0)


@pytest.mark.parametrize("amount, options", amounts(OPTIONS, few=COMBINED), ids=str)
def test_sequences_of_one_length_equal_standard_attention(options, amount, device, poisoned):
    q, k, v = leaves(device)
    options = made(options, device)
    O, lse, S_dmask = flash_attn.flash_attn_func(q, k, v, return_attn_probs=True, **options)
    assert O.shape == (B, N_q, H, d) and lse.shape == (B, H, N_q)
    hold((O.flatten(0, 1), lse.transpose(1, 2).flatten(0, 1), S_dmask), (q, k, v), [N_q] * B, [N_k] * B, options)
    torch.manual_seed(7)
    alone = flash_attn.flash_attn_func(q, k, v, **options)
    torch.manual_seed(7)
    packed = flash_attn.flash_attn_kvpacked_func(q, torch.stack([k, v], 2), **options)
    assert torch.equal(alone, packed) and (options.get("dropout_p") or torch.equal(alone, O))


def test_q_k_and_v_in_one_tensor(device):
    qkv = torch.randn(B, N_q, 3, H, d, device=device, requires_grad=True)
    given = flash_attn.flash_attn_qkvpacked_func(qkv, causal=True)
    same = flash_attn.flash_attn_func(*qkv.unbind(2), causal=True)
    pack = flash_attn.flash_attn_varlen_qkvpacked_func(
        qkv.flatten(0, 1), offsets([N_q] * B, device), N_q, causal=True
    )
    assert torch.equal(given, same) and torch.allclose(pack.view_as(given), given, atol=1e-6)
    (dqkv,) = torch.autograd.grad(given.sum(), qkv)
    assert dqkv.shape == qkv.shape and dqkv[:, :, 2].any()


def offsets(lengths, device):
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32).to(device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("amount, options", amounts(OPTIONS, few=COMBINED), ids=str)
def test_sequences_of_any_lengths_equal_standard_attention(options, amount, dtype, device, poisoned):
    lengths_q, lengths_k = [7, 0, 19], [20, 4, 3]
    options = made(options, device)
    q, k, v = (X[0].detach().requires_grad_() for X in leaves(device, dtype, (26, 27, 27)))
    call = offsets(lengths_q, device), offsets(lengths_k, device), 19, 20
    O, lse, S_dmask = flash_attn.flash_attn_varlen_func(q, k, v, *call, return_attn_probs=True, **options)
    assert O.shape == q.shape and lse.shape == (H, 26)
    hold((O, lse.mT, S_dmask), (q, k, v), lengths_q, lengths_k, options)
    torch.manual_seed(7)
    alone = flash_attn.flash_attn_varlen_func(q, k, v, *call, **options)
    torch.manual_seed(7)
    assert torch.equal(
        alone, flash_attn.flash_attn_varlen_kvpacked_func(q, torch.stack([k, v], 1), *call, **options)
    )


def pages_of(X, page):
    """Return sequences (B, N, H, d) in pages, in any order, and the table."""
    most = -(-X.shape[1] // page)
    whole = torch.nn.functional.pad(X, (0, 0, 0, 0, 0, most * page - X.shape[1])).unflatten(1, (most, page))
    table = torch.randperm(len(X) * most).to(torch.int32).view(len(X), most)
    pages = torch.empty(len(X) * most, page, *X.shape[2:], dtype=X.dtype)
    pages[table.flatten().long()] = whole.flatten(0, 1)
    return pages, table


@pytest.mark.parametrize("options", [{}, {"causal": True, "window_size": (9, -1), "dropout_p": 0.2}])
def test_packs_may_attend_to_pages(options, device):
    torch.manual_seed(3)
    q, k, v = leaves(device)
    lengths = [27, 3, 0]
    pages, table = pages_of(torch.cat([k, v], -1).detach().cpu(), 8)
    pages, table = pages.to(device).requires_grad_(), table.to(device)
    cu_q, cu_k = offsets([N_q] * B, device), offsets(lengths, device)
    kept = [torch.cat([X[b, :n] for b, n in enumerate(lengths)]) for X in (k, v)]
    if device == "cuda":  # whose pack of pages has room for all; which weights are dropped follows from its length
        kept = [torch.nn.functional.pad(X, (0, 0, 0, 0, 0, B * 27 - len(X))) for X in kept]
    torch.manual_seed(7)
    of_pages = flash_attn.flash_attn_varlen_func(
        q.flatten(0, 1), *pages.split(d, -1), cu_q, cu_k, N_q, 27, block_table=table, **options
    )
    torch.manual_seed(7)
    of_pack = flash_attn.flash_attn_varlen_func(q.flatten(0, 1), *kept, cu_q, cu_k, N_q, 27, **options)
    assert torch.equal(of_pages, of_pack)
    (dpages,), dkept = torch.autograd.grad(of_pages.sum(), pages), torch.autograd.grad(of_pack.sum(), kept)
    assert torch.allclose(dpages.sum((0, 1)), torch.cat(dkept, -1).sum(0), atol=1e-4)


@pytest.mark.parametrize("layout", ["contiguous", "chosen", "pages"])
@pytest.mark.parametrize("new", [0, 1, 5])
@pytest.mark.parametrize("rotary_interleaved", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True, "softcap": 2.0, "num_splits": 3},
        {"window_size": (6, 0), "alibi_slopes": "of sequences"},
        {"causal": True, "cache_leftpad": [2, 0, 4]},
    ],
    ids=str,
)
def test_a_cache(layout, new, rotary_interleaved, options, device, poisoned):
    N, lengths = 32, torch.tensor([20, 1, 26], dtype=torch.int32, device=device)
    rows = 5 if layout == "chosen" else B
    q, k, v = torch.randn(B, 3, H, d, device=device), *torch.randn(2, B, new, H_k, d, device=device)
    whole = torch.randn(2, rows, N, H_k, d, device=device)
    options = made(options, device)
    padding = options.pop("cache_leftpad", [0] * B)
    call = options | (
        {"cache_leftpad": torch.tensor(padding, dtype=torch.int32, device=device)} if any(padding) else {}
    )
    chosen, caches = list(range(B)), whole.clone()
    if layout == "chosen":
        chosen = [4, 0, 2]
        call["cache_batch_idx"] = torch.tensor(chosen, dtype=torch.int32, device=device)
    elif layout == "pages":
        pages, table = pages_of(torch.cat([*whole], -1).cpu(), 8)
        caches, call["block_table"] = [X.contiguous().to(device) for X in pages.split(d, -1)], table.to(device)
    if new:
        angles = torch.rand(N, 8, device=device) * 6
        call |= {"k": k, "v": v, "rotary_cos": angles.cos(), "rotary_sin": angles.sin()}
        call["rotary_interleaved"] = rotary_interleaved
    O, lse = flash_attn.flash_attn_with_kvcache(q, *caches, cache_seqlens=lengths, return_softmax_lse=True, **call)
    exact = exact_cache(q, k, v, whole[:, chosen], lengths, padding, call, options)
    assert O.shape == q.shape and lse.shape == (B, H, 3)
    assert oracle.worst(O.cpu(), exact[0].cpu()) < 1e-5
    assert oracle.worst(lse.cpu(), exact[1].nan_to_num(neginf=torch.inf).cpu()) < 1e-5
    if layout != "pages":
        for b, n in enumerate(lengths.tolist()):
            assert torch.equal(caches[1][chosen[b], n : n + new], v[b])
            assert torch.equal(caches[0][chosen[b], :n], whole[0, chosen[b], :n])


def exact_cache(q, k, v, whole, lengths, padding, call, options):
    """Return O, (B, N_q, H, d), and lse, (B, H, N_q), of standard attention in fp64."""
    q, k, v, whole = (X.double() for X in (q, k, v, whole.clone()))
    local = options.get("causal") or "window_size" in options
    for b, n in enumerate(lengths.tolist()):
        if k.shape[1]:
            cos, sin = call["rotary_cos"].double(), call["rotary_sin"].double()
            at = torch.arange(n, n + 3) if local else torch.full((3,), n)
            q[b] = turned(q[b], cos[at], sin[at], call["rotary_interleaved"])
            own = slice(n, n + k.shape[1])
            whole[0, b, own] = turned(k[b], cos[own], sin[own], call["rotary_interleaved"])
            whole[1, b, own] = v[b]
    ends = (lengths + k.shape[1]).tolist()
    kept = [
        torch.cat([X[b, first:n] for b, (first, n) in enumerate(zip(padding, ends, strict=True))]) for X in whole
    ]
    lengths_k = [n - first for first, n in zip(padding, ends, strict=True)]
    O, lse = expected(q.flatten(0, 1), *kept, [3] * B, lengths_k, options)
    return O.view_as(q), lse.view(B, 3, H).transpose(1, 2)


def turned(X, cos, sin, interleaved):
    """Return rows (N, H, d) turned by angles (N, n)."""
    X, n = X.clone(), cos.shape[-1]
    x, y = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if interleaved else (slice(0, n), slice(n, 2 * n))
    first, second, cos, sin = X[..., x].clone(), X[..., y].clone(), cos[:, None], sin[:, None]
    X[..., x], X[..., y] = first * cos - second * sin, second * cos + first * sin
    return X


def test_a_length_may_be_a_number_and_a_cache_whole(device):
    q, k, v = (X.detach() for X in leaves(device))
    given = flash_attn.flash_attn_with_kvcache(q, k, v, cache_seqlens=9, causal=True)
    assert torch.allclose(given, flash_attn.flash_attn_func(q, k[:, :9], v[:, :9], causal=True), atol=1e-6)
    given = flash_attn.flash_attn_with_kvcache(q, k, v)
    assert torch.allclose(given, flash_attn.flash_attn_func(q, k, v), atol=1e-6)


@pytest.mark.parametrize("new", [0, 1])
@pytest.mark.parametrize("paged", [False, True])
def test_more_tokens_than_there_is_room_for_are_refused(paged, new):
    """Before anything is written. At the border all is well."""
    q, cache = torch.randn(2, 1, 2, 16), torch.zeros(8, 4, 2, 16)
    options = {"block_table": torch.arange(6, dtype=torch.int32).view(2, 3)} if paged else {}
    cache, room = (cache, 12) if paged else (cache[:2], 4)
    if new:
        options |= {"k": q, "v": q}
    for lengths in (room - new, torch.tensor([1, room - new], dtype=torch.int32)):
        flash_attn.flash_attn_with_kvcache(q, cache.clone(), cache.clone(), cache_seqlens=lengths, **options)
        k_cache = cache.clone()
        with pytest.raises(
            ValueError, match=f"has {room - new + 1} for sequence [01], and {new} .* 0 to {room - new}"
        ):
            flash_attn.flash_attn_with_kvcache(q, k_cache, cache, cache_seqlens=lengths + 1, **options)
        assert torch.equal(k_cache, cache)


def test_head_dimensions_below_those_of_kernels(device):
    q, k, v = (X[..., :8].detach().requires_grad_() for X in leaves(device))
    O, lse, _ = flash_attn.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    flat = O.flatten(0, 1), lse.transpose(1, 2).flatten(0, 1), None
    hold(flat, (q, k, v), [N_q] * B, [N_k] * B, {"causal": True})
    pack = flash_attn.flash_attn_varlen_func(
        *(X.flatten(0, 1) for X in (q, k, v)), offsets([N_q] * B, device), offsets([N_k] * B, device), N_q, N_k,
        causal=True,
    )  # fmt: skip
    assert torch.allclose(pack.view_as(O), O, atol=1e-6)


def test_a_row_that_sees_no_key(device):
    q, k, v = leaves(device, N=(N_k, N_q, N_q))
    O, lse, S_dmask = flash_attn.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert (lse[:, :, : N_k - N_q] == torch.inf).all() and (O[:, : N_k - N_q] == 0).all()
    assert S_dmask.numel() == 0
    grads = torch.autograd.grad(lse.masked_fill(lse == torch.inf, 0).sum(), (q, k))
    assert not any(X.isnan().any() for X in grads)


def test_S_dmask_has_one_maximum_a_row_which_is_1(device):
    q, k, v = (X.detach() for X in leaves(device))
    _, _, S_dmask = flash_attn.flash_attn_func(q, k, v, 0.4, return_attn_probs=True, causal=True)
    assert S_dmask.shape == (B, H, 128, 128) and S_dmask.dtype == q.dtype
    assert (S_dmask[:, :, :N_q, :N_k].abs().amax(-1) == 1).all()


def test_deterministic_algorithms_of_torch_are_asked_for(device, monkeypatch):
    q, k, v = leaves(device)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    O = flash_attn.flash_attn_func(q, k, v)
    assert all(X.any() for X in torch.autograd.grad(O.sum(), (q, k, v)))


AFTER = (
    "dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, "
    "deterministic=False, return_attn_probs=False"
)
OF_BOTH = "cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k"
SIGNATURES = {  # of flash_attn 2.8.3
    "flash_attn_func": f"(q, k, v, {AFTER})",
    "flash_attn_kvpacked_func": f"(q, kv, {AFTER})",
    "flash_attn_qkvpacked_func": f"(qkv, {AFTER})",
    "flash_attn_varlen_func": f"(q, k, v, {OF_BOTH}, {AFTER}, block_table=None)",
    "flash_attn_varlen_kvpacked_func": f"(q, kv, {OF_BOTH}, {AFTER})",
    "flash_attn_varlen_qkvpacked_func": f"(qkv, cu_seqlens, max_seqlen, {AFTER})",
    "flash_attn_with_kvcache": "(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, "
    "cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, "
    "causal=False, window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, alibi_slopes=None, num_splits=0, "
    "return_softmax_lse=False)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_and_defaults_are_those_of_the_package(name):
    found = inspect.signature(getattr(flash_attn, name))
    plain = [x.replace(annotation=inspect.Parameter.empty) for x in found.parameters.values()]
    assert str(inspect.Signature(plain)) == SIGNATURES[name]


X, CU = torch.zeros(2, 4, 2, 16), torch.tensor([0, 4, 8], dtype=torch.int32)
PACK, TABLE = X.flatten(0, 1), torch.zeros(2, 1, dtype=torch.int32)
CALLS = {
    "dense": (flash_attn.flash_attn_func, {"q": X, "k": X, "v": X}),
    "kvpacked": (flash_attn.flash_attn_kvpacked_func, {"q": X, "kv": torch.stack([X, X], 2)}),
    "qkvpacked": (flash_attn.flash_attn_qkvpacked_func, {"qkv": torch.stack([X, X, X], 2)}),
    "varlen": (
        flash_attn.flash_attn_varlen_func,
        {
            "q": PACK,
            "k": PACK,
            "v": PACK,
            "cu_seqlens_q": CU,
            "cu_seqlens_k": CU,
            "max_seqlen_q": 4,
            "max_seqlen_k": 4,
        },
    ),
    "cache": (flash_attn.flash_attn_with_kvcache, {"q": X, "k_cache": X, "v_cache": X}),
}
COS, NEW = torch.zeros(4, 4), torch.zeros(2, 1, 2, 16)
LENGTHS = torch.tensor([1, 2], dtype=torch.int32)


@pytest.mark.parametrize(
    "call, changed, error, words",
    [
        ("dense", {"q": X[0]}, ValueError, r"q is \(4, 2, 16\); pass a tensor \(B, N, H, d\)"),
        ("dense", {"k": None}, ValueError, "k is NoneType; pass a tensor"),
        ("dense", {"v": X.double()}, TypeError, "float64"),
        ("dense", {"dropout_p": 1.0}, ValueError, "dropout is 1.0; pass a probability from 0 to below 1"),
        ("dense", {"softmax_scale": -1.0}, ValueError, "scale is -1.0"),
        ("dense", {"causal": "yes"}, TypeError, "causal is 'yes'"),
        ("dense", {"window_size": 5}, TypeError, r"window_size is 5; pass \(left, right\)"),
        ("dense", {"window_size": (1.5, 2)}, TypeError, "window_size has 1.5 on the left"),
        ("dense", {"softcap": "x"}, TypeError, "softcap is 'x'"),
        ("dense", {"alibi_slopes": torch.zeros(3)}, ValueError, r"alibi_slopes has shape \(3,\); expected"),
        ("dense", {"alibi_slopes": [0.1, 0.2]}, TypeError, "alibi_slopes is of type list"),
        ("dense", {"dropout_p": 0.1, "k": X[:1]}, ValueError, "B must be the same"),
        ("dense", {"deterministic": 1}, TypeError, "deterministic is 1; pass True or False"),
        ("dense", {"return_attn_probs": None}, TypeError, "return_attn_probs is None"),
        ("kvpacked", {"kv": X}, ValueError, r"kv is \(2, 4, 2, 16\); pass k and v in one tensor"),
        ("qkvpacked", {"qkv": torch.stack([X, X], 2)}, ValueError, "pass q, k and v in one tensor"),
        ("varlen", {"k": X}, ValueError, r"k is \(2, 4, 2, 16\); pass a tensor of packed tokens"),
        ("varlen", {"cu_seqlens_q": CU.float()}, TypeError, "cu_seqlens_q is"),
        ("varlen", {"cu_seqlens_k": CU[:2]}, ValueError, "cu_seqlens_k"),
        ("varlen", {"max_seqlen_q": 3}, ValueError, "max_seqlen_q is 3, and a sequence has 4 tokens"),
        ("varlen", {"max_seqlen_k": 0.5}, TypeError, "max_seqlen_k is 0.5; pass a whole number"),
        ("varlen", {"block_table": TABLE.long()}, TypeError, "block_table is .*int64; pass a tensor"),
        ("varlen", {"block_table": TABLE}, ValueError, "with block_table pass pages"),
        (
            "varlen",
            {"block_table": TABLE[:1], "k": X, "v": X},
            ValueError,
            r"cu_seqlens_k is .* pass a tensor \(2,\)",
        ),
        ("varlen", {"block_table": TABLE, "k": X[:, :2], "v": X[:, :2]}, ValueError, "has room for 2 tokens"),
        ("cache", {"q": X[0]}, ValueError, r"q is \(4, 2, 16\)"),
        ("cache", {"k_cache": X.half()}, TypeError, "float16"),
        ("cache", {"v_cache": None}, ValueError, "v_cache is NoneType"),
        ("cache", {"k": NEW}, ValueError, "k is given, and v is not"),
        ("cache", {"v": NEW}, ValueError, "v is given, and k is not"),
        ("cache", {"k": NEW, "v": NEW}, ValueError, "k is given, and cache_seqlens is not"),
        ("cache", {"rotary_cos": COS, "rotary_sin": COS}, ValueError, "rotary_cos is given, and k is not"),
        (
            "cache",
            {"k": NEW, "v": NEW, "cache_seqlens": 1, "rotary_cos": COS[:2], "rotary_sin": COS},
            ValueError,
            "rotary_cos has 2 positions, and the cache has room for 4",
        ),
        ("cache", {"rotary_sin": COS}, ValueError, "rotary_sin is given, and rotary_cos is not"),
        ("cache", {"cache_seqlens": "all"}, TypeError, "cache_seqlens is of type str"),
        ("cache", {"cache_seqlens": LENGTHS[:1]}, ValueError, "cache_seqlens has shape"),
        ("cache", {"cache_batch_idx": LENGTHS.long()}, TypeError, "cache_batch_idx has dtype torch.int64"),
        ("cache", {"cache_leftpad": LENGTHS.long()}, TypeError, "cache_leftpad has dtype torch.int64"),
        ("cache", {"block_table": TABLE}, ValueError, "block_table is given, and cache_seqlens is not"),
        (
            "cache",
            {"block_table": TABLE, "cache_seqlens": LENGTHS, "cache_batch_idx": LENGTHS},
            ValueError,
            "a cache in pages has no sequences to choose",
        ),
        ("cache", {"softmax_scale": 0.0}, ValueError, "scale is 0"),
        ("cache", {"causal": 2}, TypeError, "causal is 2"),
        ("cache", {"window_size": (1,)}, TypeError, "window_size is"),
        ("cache", {"softcap": None}, TypeError, "softcap is None"),
        ("cache", {"rotary_interleaved": 1}, TypeError, "rotary_interleaved is 1"),
        ("cache", {"alibi_slopes": torch.zeros(3)}, ValueError, "alibi_slopes has shape"),
        ("cache", {"num_splits": -1}, TypeError, "num_splits is -1; pass a whole number"),
        ("cache", {"return_softmax_lse": 1}, TypeError, "return_softmax_lse is 1"),
        ("cache", {"q": X.clone().requires_grad_()}, ValueError, "Q requires a gradient"),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_unsupported_arguments_are_refused(call, changed, error, words, monkeypatch):
    for module in ("launch.inputs", "decode"):
        monkeypatch.setattr(f"flashlib.kernels.{module}.check_device", lambda **_: None)
    function, given = CALLS[call]
    with pytest.raises(error, match=words):
        function(**given | changed)


def test_every_argument_is_refused_where_it_is_wrong():
    """Each argument of each function has a case above, under the function that takes it for the others."""
    cases = test_unsupported_arguments_are_refused.pytestmark[0].args[1]
    fed = {}
    for call, changed, *_ in cases:
        fed.setdefault(call, set()).update(changed)
    fed["kvpacked"] |= fed["dense"]
    fed["qkvpacked"] |= fed["dense"]
    fed["varlen"] |= fed["dense"] - {"k"}
    for call, (function, _) in CALLS.items():
        missing = set(inspect.signature(function).parameters) - fed[call]
        assert not missing, f"{call}: {missing}"


def test_a_refused_call_writes_nothing():
    caches = X.clone(), X.clone()
    new = torch.ones(2, 1, 2, 16)
    with pytest.raises(ValueError, match="alibi_slopes has shape"):
        flash_attn.flash_attn_with_kvcache(
            X, *caches, new, new, cache_seqlens=LENGTHS, alibi_slopes=torch.zeros(3)
        )
    assert not caches[0].any() and not caches[1].any()


@pytest.fixture
def without_modules(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "flash_attn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def test_its_kernels_are_portable_if_asked(without_modules, monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "attention", lambda *given, portable, **_: asked.append(portable) or 1 / 0)
    monkeypatch.setattr(flash_attn.dense, "PORTABLE", False)
    for options, expected in (({}, False), ({"portable": True}, True), ({}, False)):
        flash_attn.stand_in(**options)
        with pytest.raises(ZeroDivisionError):
            flash_attn.flash_attn_func(X, X, X)
        assert asked.pop() is expected
    with pytest.raises(TypeError, match="portable is 1; pass True or False"):
        flash_attn.stand_in(portable=1)


def test_a_window_of_tensors_is_read_in_every_call():
    left, found = torch.tensor(0), []
    q = torch.randn(1, 9, 1, 16)
    for n in (0, 3):
        left.fill_(n)
        found.append(flash_attn.flash_attn_func(q, q, q, window_size=(left, torch.tensor(0))))
        assert torch.equal(found[-1], flash_attn.flash_attn_func(q, q, q, window_size=(n, 0)))
    assert not torch.equal(*found)


def test_it_replaces_the_package(without_modules):
    import importlib

    flash_attn.stand_in()
    found = importlib.import_module("flash_attn")
    assert found is flash_attn and importlib.import_module("flash_attn.flash_attn_interface") is flash_attn
    assert found.flash_attn_func is flash_attn.flash_attn_func and found.__version__ == "2.8.3"
    flash_attn.stand_in()  # once more is no harm
    padding = importlib.import_module("flash_attn.bert_padding")
    assert padding is flash_attn.bert_padding and callable(padding.unpad_input)
    with pytest.raises(ModuleNotFoundError, match="flash_attn.layers"):
        importlib.import_module("flash_attn.layers.rotary")


MASKS_OF_TOKENS = {
    "right": lambda n, at: at < n,
    "left": lambda n, at: at >= at.max() + 1 - n,
    "holes": lambda n, at: (at % 3 != 1) & (n > 0),
}


@pytest.mark.parametrize("kind", MASKS_OF_TOKENS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_padded_sequences_are_packed_and_unpacked(kind, dtype):
    padding, at, lengths = flash_attn.bert_padding, torch.arange(9), torch.tensor([4, 0, 9, 1])[:, None]
    mask = MASKS_OF_TOKENS[kind](lengths, at)
    X = torch.randn(4, 9, 3, 5, dtype=torch.float64, requires_grad=True)
    pack, indices, offsets, longest, used = padding.unpad_input(X, mask.to(dtype))
    assert torch.equal(pack, X[mask]) and torch.equal(indices, mask.flatten().nonzero()[:, 0])
    assert offsets.tolist() == [0, *mask.sum(1).cumsum(0)] and offsets.dtype == used.dtype == torch.int32
    assert type(longest) is int and longest == mask.sum(1).max() and torch.equal(used.long(), mask.sum(1))
    weights = torch.randn(4, 9, 3, 5, dtype=torch.float64)
    again = padding.pad_input(pack**2, indices, 4, 9)
    assert torch.equal(again, torch.where(mask[..., None, None], X**2, 0))
    (again * weights).sum().backward()
    torch.testing.assert_close(X.grad, torch.where(mask[..., None, None], 2 * X * weights, 0).detach())


def test_tokens_that_are_not_used_keep_their_places():
    X, mask, unused = (
        torch.randn(2, 5, 7),
        torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]]),
        torch.zeros(2, 5).long(),
    )
    unused[0, 2], unused[1, 4] = 1, 1
    pack, indices, offsets, longest, used = flash_attn.bert_padding.unpad_input(X, mask, unused)
    assert torch.equal(pack, torch.cat([X[0, :3], X[1]])) and indices.tolist() == [0, 1, 2, 5, 6, 7, 8, 9]
    assert offsets.tolist() == [0, 3, 8] and longest == 5 and used.tolist() == [2, 4]


def test_rows_are_taken_and_put_at_indices():
    padding, X, at = flash_attn.bert_padding, torch.randn(6, 2, 3, requires_grad=True), torch.tensor([4, 0, 5])
    taken = padding.index_first_axis(X, at)
    put = padding.index_put_first_axis(taken, at, 8)
    assert torch.equal(taken, X[at]) and torch.equal(put[at], X[at])
    assert put.shape == (8, 2, 3) and not put[[1, 2, 3, 6, 7]].any()
    put.sum().backward()
    assert torch.equal(X.grad[:, 0, 0], torch.tensor([1.0, 0, 0, 0, 1, 1]))


def test_masks_of_different_tokens_are_refused():
    X, mask = torch.randn(2, 5, 7), torch.ones(2, 5)
    for masks, error, words in (
        ((mask[:, :4],), ValueError, r"attention_mask has shape \(2, 4\) and hidden_states \(2, 5, 7\)"),
        ((mask, mask[0]), ValueError, r"unused_mask has shape \(5,\)"),
        (([[1]],), TypeError, "attention_mask is of type list; pass a tensor"),
    ):
        with pytest.raises(error, match=words):
            flash_attn.bert_padding.unpad_input(X, *masks)


def test_a_padded_batch_is_attended_to_as_users_of_the_package_write_it(device):
    padding, mask = flash_attn.bert_padding, torch.arange(11) < torch.tensor([11, 4, 7])[:, None]
    mask = mask.to(device)
    q, k, v = (X.requires_grad_() for X in torch.randn(3, 3, 11, 2, 16, device=device))
    pack, indices, offsets, longest, _ = padding.unpad_input(torch.stack([q, k, v], 2), mask)
    O = flash_attn.flash_attn_varlen_qkvpacked_func(pack, offsets, longest, causal=True)
    O = padding.pad_input(O, indices, 3, 11)
    for b, n in enumerate((11, 4, 7)):
        own = (X[b : b + 1, :n].double().transpose(1, 2) for X in (q, k, v))
        exact = torch_ref.attention(*own, causal=True).O.transpose(1, 2)[0]
        torch.testing.assert_close(O[b, :n].double(), exact, rtol=0, atol=5e-6)
        assert not O[b, n:].any()


def test_it_does_not_replace_a_loaded_package(without_modules):
    sys.modules["flash_attn"] = sys
    with pytest.raises(RuntimeError, match="flash_attn is imported already: call stand_in"):
        flash_attn.stand_in()
