"""Attention over a cache equals a loop over its sequences, in fp64, however keys are split, paged and masked."""

import re

import numpy as np
import pytest
import torch

from flashlib import masks, sink, torch_ref
from flashlib.cache import Cache
from flashlib.kernels import append, decode
from flashlib.kernels.ablations import decode as ablated
from flashlib.kernels.launch import planning
from flashlib.lm import rotary
from flashlib.types import Attention
from tests import oracle
from tests.kernels import cached, drawn
from tests.kernels.test_forward import dot_product_rounding, largest
from tests.tiers import amounts

LENGTHS = [0, 1, 200, 37, 397]  # ragged, one, none
HALF = [torch.float16, torch.bfloat16]


def check(problem, lengths, **options):
    """Decode, and compare O and lse with fp64: at most twice the error of the loop in the same dtype."""
    Q, cache, K, V = problem
    given = decode.attention(Q, **cache, **options)
    assert given.O.dtype == Q.dtype and given.lse.dtype == torch.float32
    assert given.O.shape == (*Q.shape[:3], V.shape[3]) and given.lse.shape == Q.shape[:3]
    plain = {
        name: (lambda b, value=options[name]: value) for name in ("causal", "mask", "scale") if name in options
    }
    exact, same = (
        Attention(*cached.attention(X, *(Y.to(X) for Y in (K, V)), lengths, **plain)) for X in (Q.double(), Q)
    )
    if (s := options.get("sink")) is not None:
        exact, same = sink.add(exact, s), sink.add(same, s)
    each = K.repeat_interleave(Q.shape[1] // K.shape[1], dim=1)
    rounded = [dot_product_rounding(Q[b], each[b, :, :n], options.get("scale")) for b, n in enumerate(lengths)]
    in_scores = max(rounded, default=0.0)
    rounding = (2.0**-22 * largest(exact.lse) + 2.0**-24 * K.shape[2] ** 0.5 + in_scores) * largest(V)
    oracle.assert_close(
        given.O.cpu().double(), exact.O.cpu(), plain=same.O.cpu().double(), rounding=rounding, what="O"
    )
    oracle.assert_close(given.lse.cpu(), exact.lse.cpu(), rounding=rounding + 2 * in_scores, what="lse")
    return given


@pytest.mark.parametrize("page", [0, 16, 64])
@pytest.mark.parametrize("N_q, causal", [(1, False), (3, True), (5, False)])
@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
def test_equals_a_loop_over_the_sequences(page, N_q, causal, dtype, device, poisoned):
    check(cached.problem(device, LENGTHS, N_q=N_q, dtype=dtype, page=page), LENGTHS, causal=causal)


@pytest.mark.parametrize("amount, heads", amounts([(3, 3), (6, 2), (8, 1), (20, 1)], few=[(6, 2), (8, 1)]))
@pytest.mark.parametrize("N_q", [1, 7])
def test_query_heads_of_a_group_are_rows_of_one_tile(amount, heads, N_q, device, poisoned):
    lengths = [90, 17]
    check(cached.problem(device, lengths, heads=heads, N_q=N_q, page=16), lengths, causal=True)


@pytest.mark.parametrize(
    "amount, dims", amounts([(16, 16), (17, 40), (80, 64), (128, 24), (256, 256)], few=[(17, 40), (256, 256)])
)
def test_every_head_dimension(amount, dims, device, poisoned):
    (d, d_v), lengths = dims, [70, 33]
    for page in (0, 16):
        check(cached.problem(device, lengths, d=d, d_v=d_v, page=page), lengths)


@pytest.mark.parametrize("amount, lengths", [("few", [0, 200, 70]), ("all", [333]), ("all", [0, 400, 70])])
def test_the_result_does_not_depend_on_how_keys_are_split(amount, lengths, device, poisoned):
    problem = cached.problem(device, lengths, N_q=2)
    for parts in (1, 2, 7, 40, None):
        check(problem, lengths, causal=True, parts=parts)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"mask": masks.window(40, 0)}, {"shared": 20}], ids=str)
@pytest.mark.parametrize("amount, B, N", [("few", 3, 77), ("all", 1, 130), ("all", 2, 64)])
def test_a_full_cache_needs_no_lengths(amount, B, N, options, device, poisoned):
    """The same bits: as many parts, though they are found without reading lengths; one part needs no merge."""
    Q, cache, *_ = cached.problem(device, [N] * B, N_q=2)
    if "shared" in options:
        for name in "KV":
            cache[name][:, :, : options["shared"]] = cache[name][:1, :, : options["shared"]]
    full = cache | {"lengths": None}
    for parts in (1, B, 3 * B + 1):
        given, expected = (decode.attention(Q, **of, **options, parts=parts) for of in (full, cache))
        assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)
    plan = decode.plan_of(Q, decode.CacheTensors(cache["K"], cache["V"], *[None] * 4), False, None, None, 0, B)
    assert plan.partial and plan.merge is None and plan.states == 0


def test_pages_do_not_change_a_bit(device, poisoned):
    lengths = [150, 5, 0, 128]
    Q, cache, *_ = cached.problem(device, lengths, N_q=3, N=256)
    expected = decode.attention(Q, **cache, causal=True, parts=3)
    for page in (16, 128):
        given = decode.attention(Q, **cached.in_pages(cache, page), causal=True, parts=3)
        assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)


@pytest.mark.parametrize("amount, d_v", amounts([24, 40, 100, 256], few=[24, 100]))
def test_a_row_is_merged_by_several_programs(amount, d_v, device, poisoned, monkeypatch):
    lengths = [523]
    monkeypatch.setattr(decode, "PLANS", planning.PlansOfMasks())
    problem = cached.problem(device, lengths, heads=(2, 1), d_v=d_v)
    check(problem, lengths, parts=9, sink=0.5)
    plans = list(decode.PLANS.of_none.values())
    blocks = [plan.merge.constants["D_V"] // plan.merge.constants["COLS"] for plan in plans]
    assert [plan.merge.grid[0] for plan in plans] == [2 * n for n in blocks] and (d_v < 33) == (blocks == [1])


@pytest.mark.parametrize("amount, heads", [("few", (17, 1)), ("all", (40, 1)), ("few", (130, 2))])
def test_a_group_of_many_heads(amount, heads, device, poisoned):
    lengths = [70, 0, 31] if heads[0] < 100 else [70]
    check(cached.problem(device, lengths, heads=heads, dtype=HALF[0], d=32), lengths)
    check(cached.problem(device, lengths, heads=heads, page=16, dtype=HALF[1]), lengths, mask=masks.softcap(2.0))


@pytest.mark.parametrize("amount, page", [("all", 0), ("few", 16)])
def test_merging_in_the_last_program_gives_the_same(amount, page, device, poisoned):
    lengths = [0, 33, 150]
    problem = cached.problem(device, lengths, heads=(2, 1), N_q=3, page=page)
    for parts in (1, 4):
        expected = decode.attention(problem.Q, **problem.cache, causal=True, parts=parts)
        for _ in range(2):  # counts are 0 again
            given = ablated.attention(problem.Q, **problem.cache, causal=True, parts=parts)
            np.testing.assert_allclose(given.O.cpu(), expected.O.cpu(), atol=1e-6)
            np.testing.assert_allclose(given.lse.cpu(), expected.lse.cpu(), rtol=1e-6)


MASKS = {
    "window": lambda H: masks.window(40, 0),
    "window to both sides": lambda H: masks.window(70, 1),
    "own key alone": lambda H: masks.window(0, 0),
    "prefix": lambda H: masks.prefix(9),
    "soft cap": lambda H: masks.causal() & masks.softcap(1.5),
    "alibi": lambda H: masks.causal() & masks.alibi(masks.alibi_slopes(H)),
    "score": lambda H: drawn.OF_HEADS & masks.window(100, 0),
    "function": lambda H: drawn.stripes(),
    "function of heads": lambda H: masks.causal() & drawn.stripes(of_heads_too=True),
    "tree": lambda H: masks.tree([-1, 0, 0, 1, -1]),
    "tree in a window": lambda H: masks.tree([-1, 0, 1, 1, 0]) & masks.window(50, None) & masks.softcap(3.0),
}


@pytest.mark.parametrize(
    "amount, name",
    amounts(
        MASKS,
        few=[
            "window",
            "window to both sides",
            "prefix",
            "alibi",
            "score",
            "function of heads",
            "tree in a window",
        ],
    ),
)
def test_masks(amount, name, device, poisoned):
    """The masks of Masks; rows have different positions in each sequence."""
    lengths, heads, N_q = [5, 300], (4, 2), 5  # in a window of 40 key 255 is seen, the last of its tile
    mask, problem = MASKS[name](heads[0]), cached.problem(device, lengths, heads=heads, N_q=N_q, page=16)
    given = decode.attention(problem.Q, **problem.cache, mask=mask, parts=3)
    for b, n in enumerate(lengths):
        Q, K, V = (X[b : b + 1].cpu().double() for X in (problem.Q, problem.K_exact, problem.V_exact))
        K, V = (X[:, :, :n].repeat_interleave(heads[0] // heads[1], dim=1) for X in (K, V))
        exact = masked_attention(Q, K, V, mask, b)
        np.testing.assert_allclose(given.O[b].cpu(), exact.O[0], atol=2e-5)
        np.testing.assert_allclose(given.lse[b].cpu(), exact.lse[0], rtol=1e-5, atol=1e-5)


def masked_attention(Q, K, V, mask, b):
    """Return O and lse of sequence b under a mask, from its definition."""
    (_, H, N_q, d), N_k = Q.shape, K.shape[2]
    place = masks.Place(N_q, N_k, b, torch.arange(H)[:, None, None])
    r, c = torch.arange(N_q)[:, None] + place.past, torch.arange(N_k)
    S = mask.score(Q @ K.mT / d**0.5, place, r, c).masked_fill(~mask.sees(place, r, c), -torch.inf)
    lse = S.logsumexp(-1)
    P = (S - lse[..., None].masked_fill(lse[..., None] == -torch.inf, 0)).exp()
    return Attention(P @ V, lse)


def test_each_sequence_has_its_own_tree(device, poisoned):
    parents, lengths = [[-1, 0, 1, 1], [-1, -1, 0, 2]], [50, 21]
    problem = cached.problem(device, lengths, N_q=4)
    both = decode.attention(problem.Q, **problem.cache, mask=masks.tree(parents))
    for b in range(2):
        alone = decode.attention(problem.Q, **problem.cache, mask=masks.tree(parents[b]))
        assert torch.equal(both.O[b], alone.O[b]) and torch.equal(both.lse[b], alone.lse[b])


@pytest.mark.parametrize("one_for_each_head", [False, True])
def test_a_sink_is_one_more_state(one_for_each_head, device, poisoned):
    lengths = [0, 150, 33]
    problem = cached.problem(device, lengths, N_q=2, page=16)
    s = torch.tensor([0.5, -2.0, 3.0, 0.0], device=device) if one_for_each_head else 0.5
    check(problem, lengths, causal=True, sink=s)


@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("amount, shared, N_q", [("few", 16, 1), ("all", 48, 3), ("few", 100, 2)])
def test_keys_that_all_sequences_share_give_the_same_if_read_once(amount, page, shared, N_q, device, poisoned):
    lengths = [shared + N_q, shared + 77, 300]
    shared = shared // page * page if page else shared
    Q, cache, K, V = cached.problem(device, lengths, N_q=N_q, N=304)
    for X in (K, V, cache["K"], cache["V"]):
        X[:, :, :shared] = X[:1, :, :shared].clone()
    if page:
        cache = cached.in_pages(cache, page)
        cache["table"][:, : shared // page] = cache["table"][:1, : shared // page].clone()
    problem = cached.Problem(Q, cache, K, V)
    check(problem, lengths, causal=True, sink=0.25, shared=shared)
    check(problem, lengths, mask=masks.causal() & masks.softcap(2.0), shared=shared)


@pytest.mark.parametrize("amount, name", amounts(MASKS, few=["window", "soft cap", "function of heads", "tree"]))
def test_shared_keys_under_a_mask_are_refused_or_right(amount, name, device, poisoned):
    shared, heads, N_q = 16, (4, 2), 5
    Q, cache, *_ = cached.problem(device, [37, 64], heads=heads, N_q=N_q)
    for X in (cache["K"], cache["V"]):
        X[1, :, :shared] = X[0, :, :shared].clone()
    mask = MASKS[name](heads[0])
    expected = decode.attention(Q, **cache, mask=mask)
    try:
        given = decode.attention(Q, **cache, mask=mask, shared=shared)
    except ValueError as refused:
        assert "pass shared=0" in str(refused)
        return
    np.testing.assert_allclose(given.O.cpu(), expected.O.cpu(), atol=2e-6)
    np.testing.assert_allclose(given.lse.cpu(), expected.lse.cpu(), rtol=2e-6)


def test_shared_keys_are_read_from_the_first_sequence_alone(device, poisoned):
    lengths = [90, 70]
    Q, cache, *_ = cached.problem(device, lengths)
    for X in (cache["K"], cache["V"]):
        X[1, :, :64] = X[0, :, :64]
    expected = decode.attention(Q, **cache, shared=64)
    for X in (cache["K"], cache["V"]):
        X[1, :, :64] = torch.nan
    given = decode.attention(Q, **cache, shared=64)
    assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)


@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_cache_in_fp8_gives_the_attention_of_its_numbers(page, dtype, device, poisoned):
    lengths = [200, 0, 37]
    problem = cached.problem(device, lengths, N_q=2, dtype=dtype, page=page, fp8=True)
    given = decode.attention(problem.Q, **problem.cache, causal=True)
    exact = Attention(
        *cached.attention(problem.Q.double(), problem.K_exact, problem.V_exact, lengths, causal=lambda b: True)
    )
    in_products = 2.0**-8 * largest(exact.lse) * largest(exact.O)  # Q and P are bf16 in the products
    oracle.assert_close(given.O.cpu().double(), exact.O.cpu(), rounding=2 * in_products, what="O")
    oracle.assert_close(given.lse.cpu(), exact.lse.cpu(), rounding=2.0**-7 * largest(exact.lse), what="lse")


def test_lengths_beyond_the_cache_count_as_its_size_and_below_0_as_0(device, poisoned):
    Q, cache, *_ = cached.problem(device, [64, 64, 64], page=16)
    as_given = decode.attention(Q, **cache | {"lengths": torch.tensor([2**32 + 5, -5, 10**6], device=device)})
    expected = decode.attention(Q, **cache | {"lengths": torch.tensor([64, 0, 64], device=device)})
    assert torch.equal(as_given.O, expected.O) and torch.equal(as_given.lse, expected.lse)


@pytest.mark.parametrize("page", [0, 16, 64])
@pytest.mark.parametrize("which", ["window", "shared"])
def test_keys_that_no_row_sees_are_not_read(which, page, device, poisoned):
    """Pages before a window may be given away, and shared keys are read from the first sequence only."""
    lengths, N_q = [150, 111], 2
    Q, cache, *_ = cached.problem(device, lengths, N_q=N_q, N=192)
    options = {"mask": masks.window(40, 0)} if which == "window" else {"shared": 48}
    for X in (cache["K"], cache["V"]):
        X[1, :, :48] = X[0, :, :48]
    cache = cached.in_pages(cache, page) if page else cache
    if page and which == "shared" and page <= 48:
        cache["table"][1, : 48 // page] = cache["table"][0, : 48 // page].clone()
    expected = decode.attention(Q, **cache, **options)
    for b, n in enumerate(lengths):
        gone = n - N_q - 40 if which == "window" else 48 * b
        if not page:
            for X in (cache["K"], cache["V"]):
                X[b, :, :gone] = torch.nan
        elif gone >= page:
            cache["table"][b, : gone // page] = 2**30  # no such page
    given = decode.attention(Q, **cache, **options)
    assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)


@pytest.mark.parametrize("s", [-float("inf"), -1e30, 1e30, 9e37])
@pytest.mark.parametrize("scale", [1e-30, 0.25, 1e30])
def test_a_sink_of_any_size(s, scale, device, poisoned):
    lengths = [0, 40]
    Q, cache, K, V = cached.problem(device, lengths)
    given = decode.attention(Q, **cache, sink=s, scale=scale)
    exact = sink.add(Attention(*cached.attention(Q.double(), K, V, lengths, scale=lambda b: scale)), s)
    np.testing.assert_allclose(given.O.cpu(), exact.O.cpu(), atol=1e-4)
    np.testing.assert_allclose(given.lse.cpu(), exact.lse.cpu(), rtol=1e-5)


def test_views_options_and_trees_of_any_kind(device, poisoned):
    lengths = [96, 50]
    Q, cache, *_ = cached.problem(device, lengths, N_q=2, page=16)
    s = torch.tensor([0.5, -1, 0, 2.0], device=device)
    expected = decode.attention(Q, **cache, causal=True, parts=3, sink=s)
    apart = torch.zeros(4, dtype=torch.int64, device=device)
    apart[::2] = cache["lengths"]
    others = {"lengths": apart[::2], "table": cache["table"].mT.contiguous().mT}
    given = decode.attention(Q, **cache | others, causal=True, parts=np.int64(3), sink=torch._neg_view(-s))
    assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)
    last = ablated.attention(Q, **cache | others, causal=True, parts=3)
    np.testing.assert_allclose(last.O.cpu(), decode.attention(Q, **cache, causal=True, parts=3).O.cpu(), atol=1e-6)
    of_one = decode.attention(Q, **cache, mask=masks.tree([[-1, 0]]))
    assert torch.equal(of_one.O, decode.attention(Q, **cache, mask=masks.tree([-1, 0])).O)
    many = decode.attention(Q, **cache, causal=True, parts=10**10)
    np.testing.assert_allclose(many.O.cpu(), decode.attention(Q, **cache, causal=True).O.cpu(), atol=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e9])
def test_huge_scores_are_those_of_the_largest_key(size, device, poisoned):
    """In base 2 the maximum of such scores is not exact: parts must be merged in units of their products."""
    lengths = [700]
    problem = cached.problem(device, lengths, N_q=2)
    problem.Q.mul_(size)
    given = decode.attention(problem.Q, **problem.cache, parts=5)
    exact = cached.attention(problem.Q.double(), problem.K_exact, problem.V_exact, lengths)
    S = problem.Q.double() @ problem.K_exact.repeat_interleave(2, dim=1).mT / 4
    clear = S.topk(2).values.diff().abs()[..., 0] > 2.0**-18 * size
    assert clear.any() and given.O.isfinite().all()
    np.testing.assert_allclose(given.O[clear].cpu(), exact[0][clear].cpu(), atol=1e-5 if size > 1e6 else 1e-3)


@pytest.mark.parametrize("shape", [(0, 4, 1), (2, 0, 1), (2, 4, 0)])
def test_no_queries(shape, device):
    B, H_q, N_q = shape
    K = torch.randn(B, max(H_q // 2, 1), 32, 16, device=device)
    given = decode.attention(torch.randn(*shape, 16, device=device), K, K)
    assert given.O.shape == (*shape, 16) and given.lse.shape == shape


def test_rows_of_an_empty_cache_see_nothing(device, poisoned):
    K = torch.randn(2, 2, 0, 16, device=device)
    given = decode.attention(torch.randn(2, 4, 3, 16, device=device), K, K)
    assert not given.O.any() and torch.equal(given.lse, torch.full_like(given.lse, -torch.inf))


ERRORS = {
    "no table": (
        lambda p: {"table": None},
        ValueError,
        "K has shape (21, 2, 16, 16); expected (B, H_k, N, d) here",
    ),
    "a short table": (
        lambda p: {"table": p["table"][:1]},
        ValueError,
        "table has shape (1, 5); expected (B, most)",
    ),
    "a long table": (
        lambda p: {"table": p["table"].long()},
        TypeError,
        "table has dtype torch.int64; accepted are",
    ),
    "no lengths": (lambda p: {"lengths": None}, ValueError, "lengths is None; a cache in pages needs"),
    "lengths": (
        lambda p: {"lengths": p["lengths"].float()},
        TypeError,
        "lengths has dtype torch.float32; accepted",
    ),
    "a list": (
        lambda p: {"lengths": [3, 4]},
        TypeError,
        "lengths is of type list; pass a torch tensor (B,) of torch.int32",
    ),
    "a page of 12": (
        lambda p: {X: p[X][:, :, :12] for X in "KV"},
        ValueError,
        "K has pages of 12 keys; pass pages of",
    ),
    "dtype": (
        lambda p: {X: p[X].half() for X in "KV"},
        TypeError,
        "K has dtype torch.float16; accepted are torch.fl",
    ),
    "V": (
        lambda p: {"V": p["V"][:, :1]},
        ValueError,
        "V has shape (21, 1, 16, 16); expected (pages, H_k, page, d_v)",
    ),
    "strides": (
        lambda p: {X: p[X].mT for X in "KV"},
        ValueError,
        "a cache is not copied: make its last axis cont",
    ),
    "d": (lambda p: {"K": p["K"][..., :8].contiguous()}, ValueError, "Q has d = 16 and K 8"),
    "heads": (lambda p: {X: p[X][:, [0, 1, 0]] for X in "KV"}, ValueError, "Q has 4 heads and the cache has 3"),
    "scale": (
        lambda p: {"k_scale": torch.ones(3)},
        ValueError,
        "k_scale is given, and caches of torch.float32 have no",
    ),
    "fp8": (
        lambda p: {X: p[X].to(cached.FP8) for X in "KV"},
        TypeError,
        "k_scale is of type NoneType; pass a torch tensor (B, H_k, N), or (pages, H_k, page), of torch.float32",
    ),
    "documents": (
        lambda p: {"mask": masks.documents(np.zeros(80, int))},
        ValueError,
        "takes no mask of documents",
    ),
    "a union": (lambda p: {"mask": masks.causal() | masks.prefix(3)}, ValueError, "takes no mask of either"),
    "function": (lambda p: {"mask": drawn.stripes(kernel=False)}, ValueError, "takes no mask of function"),
    "tree": (
        lambda p: {"mask": masks.tree([-1, 0])},
        ValueError,
        "parents has shape (2,), and there are 1 queries",
    ),
    "parts": (lambda p: {"parts": 0}, ValueError, "parts is 0"),
    "shared": (lambda p: {"shared": 81}, ValueError, "shared is 81, and the cache holds 80 tokens"),
    "shared and far": (lambda p: {"shared": 16, "mask": masks.window(3, 0)}, ValueError, "pass shared=0"),
    "a sink of nan": (lambda p: {"sink": float("nan")}, ValueError, "sink is nan; pass a number below 1e38"),
    "a sink to learn": (
        lambda p: {"sink": torch.zeros(4, requires_grad=True)},
        ValueError,
        "sink requires a gradi",
    ),
    "sink": (lambda p: {"sink": torch.zeros(3)}, ValueError, "sink has shape (3,)"),
    "no mask": (lambda p: {"mask": True}, TypeError, "mask is of type bool"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_it_refuses_what_it_does_not_take_in_words(name, device):
    Q, cache, *_ = cached.problem(device, [80, 33], page=16)
    change, error, said = ERRORS[name]
    with pytest.raises(error, match=re.escape(said)):
        decode.attention(Q, **cache | change(cache))


@pytest.mark.parametrize("amount, dtype", [("few", torch.float32), ("all", torch.bfloat16), ("few", cached.FP8)])
def test_tokens_appended_to_a_cache_are_attended_to(amount, dtype, device):
    """Three tokens per step through the allocator, `append` and `decode`, against fp64 without a cache."""
    H_q, H_k, d, page, N = 4, 2, 32, 16, 40
    of_q = torch.bfloat16 if dtype == cached.FP8 else dtype
    store = Cache(12, page, H_k, d, dtype=dtype, device=device)
    sequences, rotary_pair = [store.start()[0] for _ in range(2)], rotary.angles(N, d, device=device)
    Q, K, V = (torch.randn(2, H, N, d, device=device).to(of_q) for H in (H_q, H_k, H_k))
    cache = {"K": store.K[0], "V": store.V[0]}
    scales = {} if store.k_scale is None else {"k_scale": store.k_scale[0], "v_scale": store.v_scale[0]}
    for at in range(0, N - 1, 3):
        for sequence in sequences:
            store.append(sequence, 3)
        lengths, table, new = store.lengths(sequences), store.table(sequences, width=3), slice(at, at + 3)
        append.append(K[:, :, new], V[:, :, new], *cache.values(), lengths, table, rotary=rotary_pair, **scales)
    q = append.rotate(Q[:, :, new], lengths, rotary_pair)
    given = decode.attention(q, **cache, lengths=lengths, table=table, causal=True, **scales)
    exact = [rotary.rotate(X[:, :, :39].double(), *(Y[:39].double() for Y in rotary_pair)) for X in (Q, K)]
    exact = torch_ref.attention(
        exact[0], *(X.repeat_interleave(2, 1) for X in (exact[1], V[:, :, :39].double())), causal=True
    )
    rounding = {torch.float32: 1e-5, torch.bfloat16: 2e-2, cached.FP8: 0.2}[dtype]
    oracle.assert_close(given.O.double().cpu(), exact.O[:, :, -3:].cpu(), rounding=rounding, what="O")


@pytest.mark.gpu
@pytest.mark.parametrize("B", [90, 300])
@pytest.mark.parametrize("page, fp8", [(0, False), (16, False), (0, True), (16, True)])
@pytest.mark.parametrize("d", [64, 128])
def test_many_short_sequences_that_one_program_each_reads(B, page, fp8, d, poisoned):
    lengths = np.random.default_rng(B + d).integers(0, 90, B).tolist()
    given = cached.problem("cuda", lengths, heads=(6, 3), d=d, dtype=torch.bfloat16, page=page, fp8=fp8)
    for parts in (B, None):
        check(given, lengths, parts=parts)


@pytest.mark.gpu
@pytest.mark.parametrize("page", [0, 16, 256])
def test_a_graph_that_was_captured_once_serves_growing_lengths(page):
    torch.manual_seed(0)
    lengths = [700, 3, 1023]
    problem = cached.problem("cuda", lengths, N_q=2, d=64, dtype=torch.bfloat16, page=page, N=1024)
    own = problem.cache["lengths"]
    decode.attention(problem.Q, **problem.cache, causal=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = decode.attention(problem.Q, **problem.cache, causal=True)
    for shorter in (0, 1, 129, 690):
        own.copy_(torch.tensor([max(n - shorter, 0) for n in lengths], device="cuda"))
        for X in captured:
            X.fill_(torch.nan)
        graph.replay()
        expected = decode.attention(problem.Q, **problem.cache, causal=True)
        assert torch.equal(captured.O, expected.O) and torch.equal(captured.lse, expected.lse)
