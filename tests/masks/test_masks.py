"""Masks do what their definitions say, for every tile, and attention under them equals the oracle."""

import functools
import re
import sys
import types
import warnings

import numpy as np
import pytest

from flashlib import cost, masks, naive, tiled
from tests import masked, oracle
from tests.tiers import amounts

KINDS, SIZES = list(masked.KINDS), masked.SIZES
BLOCKS = [(1, 1), (3, 4), (4, 3), (5, 7), (64, 64)]


def grid(N_q, N_k, B_r, B_c):
    return [(rows, cols) for rows in tiled.blocks(N_q, B_r) for cols in tiled.blocks(N_k, B_c)]


def problem(rng, N_q, N_k, d=3, d_v=4, dtype=np.float64):
    return tuple(
        rng.standard_normal(shape).astype(dtype) for shape in ((N_q, d), (N_k, d), (N_k, d_v), (N_q, d_v))
    )


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_are_hidden_whole_or_cut_as_defined(kind, N_q, N_k, rng):
    case = masked.draw(kind, rng, N_q, N_k)
    tiles, seen = case.mask.on(N_q, N_k), masked.seen(case, N_q, N_k)
    assert np.array_equal(tiles.seen(*tiles.all), seen)
    for B_r, B_c in BLOCKS:
        for rows, cols in grid(N_q, N_k, B_r, B_c):
            tile = seen[rows, cols]
            assert np.array_equal(tiles.seen(rows, cols), tile)
            assert tiles.hidden(rows, cols) == (not tile.any())
            assert tiles.cut(rows, cols) == (not tile.all())
    if tiles.keys is not None:
        first, end = tiles.keys
        assert first.shape == end.shape == (N_q,)
        assert (np.diff(first) >= 0).all() and (np.diff(end) >= 0).all()
        c = np.arange(N_k)
        assert np.array_equal((first[:, None] <= c) & (c < end[:, None]), seen)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_gradients_of_a_tile_are_as_defined(kind, rng):
    N_q, N_k = 11, 14
    case = masked.draw(kind, rng, N_q, N_k)
    tiles, seen = case.mask.on(N_q, N_k), masked.seen(case, N_q, N_k)
    S, dS, h = rng.standard_normal((N_q, N_k)) * 3, rng.standard_normal((N_q, N_k)), 1e-6
    before = S.copy()

    def defined(S):
        new = [[case.score(S[i, c], i + 3, c) for c in range(N_k)] for i in range(N_q)]
        return np.where(seen, new, -np.inf)

    for rows, cols in grid(N_q, N_k, 4, 5):
        np.testing.assert_allclose(tiles.scores(S[rows, cols], rows, cols), defined(S)[rows, cols], rtol=1e-12)
        given = tiles.gradient(dS[rows, cols], S[rows, cols], rows, cols)
        slope = (defined(S + h) - np.where(seen, defined(S - h), 0)) / (2 * h)
        expected = np.where(seen, dS * np.where(seen, slope, 0), 0)[rows, cols]
        np.testing.assert_allclose(np.where(seen[rows, cols], given, 0), expected, atol=1e-7)
    assert np.array_equal(S, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_gradients_keep_the_dtype(kind, dtype, rng):
    tiles = masked.draw(kind, rng, 5, 7).mask.on(5, 7)
    S = rng.standard_normal((5, 7)).astype(dtype)
    assert tiles.scores(S, *tiles.all).dtype == dtype and tiles.gradient(S, S, *tiles.all).dtype == dtype


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_attention_and_gradients_equal_the_oracle_in_both_orders(kind, N_q, N_k, rng):
    case, (Q, K, V, dO) = masked.draw(kind, rng, N_q, N_k), problem(rng, N_q, N_k)
    O, lse, grads = masked.attention(Q, K, V, case, dO=dO)
    B_r, B_c = (int(n) for n in rng.integers(1, 9, 2))
    tiling, option = {"B_r": B_r, "B_c": B_c}, {"mask": case.mask}
    forward = [naive.attention(Q, K, V, **option)]
    forward += [tiled.attention(Q, K, V, **tiling, **option, order=order) for order in ("fa1", "fa2")]
    backward = [naive.backward(Q, K, V, O, lse, dO, **option)]
    backward += [tiled.backward(Q, K, V, O, lse, dO, **tiling, **option)]
    for given in forward:
        oracle.assert_close(given.O, O, rounding=1e-13, what=f"O, {kind}")
        oracle.assert_close(given.lse, lse, rounding=1e-13, what=f"lse, {kind}")
    for given in backward:
        for name, X, exact in zip(given._fields, given, grads, strict=True):
            oracle.assert_close(X, exact, rounding=1e-9, what=f"{name}, {kind}")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_error_is_at_most_twice_that_of_storing_S_and_P(kind, dtype, rng):
    case, (Q, K, V, dO) = masked.draw(kind, rng, 37, 41), problem(rng, 37, 41, 8, 5, dtype)
    O, lse, grads = masked.attention(Q, K, V, case, dO=dO.astype(np.float64))
    plain, given = (f.attention(Q, K, V, mask=case.mask) for f in (naive, tiled))
    assert given.O.dtype == dtype and given.lse.dtype == np.float32
    oracle.assert_close(given.O, O, plain=plain.O, rounding=float(np.finfo(dtype).eps), what="O")
    oracle.assert_close(given.lse, lse, plain=plain.lse, rounding=1e-5, what="lse")
    rounding = 4e-6 if dtype == np.float32 else 4e-3  # a score that grows like S^2 amplifies it more than S
    stored, backward = (f.backward(Q, K, V, *plain, dO, mask=case.mask) for f in (naive, tiled))
    for name, X, exact, by_storing in zip(backward._fields, backward, grads, stored, strict=True):
        assert X.dtype == dtype
        oracle.assert_close(X, exact, plain=by_storing, rounding=rounding, what=name)


@pytest.mark.parametrize(
    "amount, kind",
    amounts(
        ["alibi", "soft cap", "score", "cap after alibi", "alibi after cap", "capped window"],
        few=["score", "cap after alibi"],
    ),
)
def test_gradients_equal_central_differences(amount, kind, rng):
    case, (Q, K, V, dO) = masked.draw(kind, rng, 7, 9), problem(rng, 7, 9)
    Q, h = Q * 2, 1e-5
    grads = tiled.backward(Q, K, V, *naive.attention(Q, K, V, mask=case.mask), dO, B_r=3, B_c=2, mask=case.mask)

    def loss():
        return (tiled.attention(Q, K, V, B_r=2, B_c=4, mask=case.mask).O * dO).sum()

    for X, dX in zip((Q, K, V), grads, strict=True):
        for at in np.ndindex(X.shape):
            value = X[at]
            X[at] = value + h
            above = loss()
            X[at] = value - h
            below = loss()
            X[at] = value
            assert abs((above - below) / (2 * h) - dX[at]) < 1e-8


@pytest.mark.parametrize("N_q, N_k", [(11, 14), (14, 11), (0, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_causal_and_a_mask_intersect(kind, N_q, N_k, rng):
    case, (Q, K, V, dO) = masked.draw(kind, rng, N_q, N_k), problem(rng, N_q, N_k)
    both = case._replace(sees=lambda r, c: c <= r and case.sees(r, c))
    O, lse, grads = masked.attention(Q, K, V, both, dO=dO)
    options = {"mask": case.mask, "causal": True}
    given = tiled.attention(Q, K, V, B_r=3, B_c=4, **options)
    oracle.assert_close(given.O, O, rounding=1e-13)
    oracle.assert_close(given.lse, lse, rounding=1e-13)
    for X, exact in zip(tiled.backward(Q, K, V, *given, dO, B_r=4, B_c=3, **options), grads, strict=True):
        oracle.assert_close(X, exact, rounding=1e-9)


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_only_tiles_with_a_seen_score_are_computed_and_counted(kind, N_q, N_k, rng):
    case, (Q, K, V, dO) = masked.draw(kind, rng, N_q, N_k), problem(rng, N_q, N_k)
    seen, forward = masked.seen(case, N_q, N_k), naive.attention(Q, K, V, mask=case.mask)
    for B_r, B_c in BLOCKS[1:]:
        tiling = {"B_r": B_r, "B_c": B_c, "mask": case.mask}
        computed = {
            (rows.start // B_r, cols.start // B_c)
            for rows, cols in grid(N_q, N_k, B_r, B_c)
            if seen[rows, cols].any()
        }
        traces = [tiled.steps(Q, K, V, **tiling, order=order) for order in ("fa1", "fa2")]
        traces += [tiled.backward_steps(Q, K, V, *forward, dO, **tiling, wrt=wrt) for wrt in ("kv", "q")]
        for trace in traces:
            tiles = [(step.i, step.j) for step in trace]
            assert len(tiles) == len(computed) and set(tiles) == computed
        counted = cost.computed_tiles(N_q, N_k, **tiling)
        assert counted.shape == (-(-N_q // B_r), -(-N_k // B_c))
        assert set(zip(*np.nonzero(counted), strict=True)) == computed
        assert np.array_equal(cost.tiles_per_row_block(N_q, N_k, **tiling), counted.sum(axis=1))
    assert masked.count(case.mask, N_q, N_k) == seen.sum()


F = lambda r, c: c <= r  # noqa: E731
KERNEL = types.SimpleNamespace(arg_names=["r", "c"])  # as a @triton.jit function has them
ALL = slice(0, 6), slice(0, 6)


def G(S, h, r, c):
    return S


REFUSED = [
    (lambda: masks.window(-1, 0), ValueError, "left is -1; accepted are whole numbers of at least 0"),
    (lambda: masks.window(0, 1.5), TypeError, "right is 1.5; accepted are whole numbers"),
    (lambda: masks.window(True, 0), TypeError, "left is True"),
    (lambda: masks.prefix(-2), ValueError, "n is -2"),
    (lambda: masks.prefix(None), TypeError, "n is None"),
    (lambda: masks.documents([0.0, 1.0]), TypeError, "ids has shape .2,. and dtype float64; pass whole numbers"),
    (lambda: masks.documents(3), TypeError, "ids has shape .. and dtype"),
    (lambda: masks.documents([0, 1, 1, 0, 1]), ValueError, "ids: 0 comes again at position 3, after another"),
    (lambda: masks.blocks([[True]], 0, 1), ValueError, "B_r is 0"),
    (lambda: masks.blocks([True], 1, 1), ValueError, "table has shape .1,. and dtype bool; pass a matrix of bool"),
    (lambda: masks.blocks([[1]], 1, 1), ValueError, "table has shape .1, 1. and dtype int64"),
    (lambda: masks.from_function(3), TypeError, "3 is not a function; pass one of .r, c. or .b, h, r, c."),
    (
        lambda: masks.from_function(lambda r: r),
        TypeError,
        "the function takes .r.; accepted are .r, c. or .b, h, r, c.",
    ),
    (lambda: masks.from_function(lambda *x: x[0] < 1), TypeError, "the function takes ..x.; accepted are"),
    (
        lambda: masks.from_function(lambda r, c, *, b: r < c),
        TypeError,
        "the function takes .r, c, ., b.; accepted",
    ),
    (
        lambda: masks.from_function(F, kernel=F),
        TypeError,
        "kernel is <function .*; pass a @triton.jit function of",
    ),
    (lambda: masks.from_function(F, kernel=KERNEL), TypeError, "kernel takes .r, c.; .* function of .b, h, r, c."),
    (lambda: masks.score(F, F), TypeError, "the function takes .r, c.; accepted are .S, h, r, c."),
    (lambda: masks.score(G, G, kernel=KERNEL), TypeError, "kernel is .*; pass a pair of @triton.jit functions"),
    (lambda: masks.score(G, G, kernel=(KERNEL,)), TypeError, "kernel is .*; pass a pair of @triton.jit functions"),
    (lambda: masks.score(G, G, kernel=(KERNEL, G)), TypeError, "kernel takes .r, c.; .* function of .S, h, r, c."),
    (lambda: masks.alibi("steep"), TypeError, "slopes is 'steep'; pass numbers"),
    (lambda: masks.alibi(None), ValueError, "slopes is None, of shape"),
    (lambda: masks.softcap(10**400), ValueError, "cap is 1000.*; pass a positive number"),
    (lambda: masks.alibi([[1.0]]), ValueError, "of shape .1, 1.; pass a finite number for each head"),
    (lambda: masks.alibi([]), ValueError, "of shape .0,."),
    (lambda: masks.alibi(np.nan), ValueError, "pass a finite number for each head"),
    (lambda: masks.alibi_slopes(0), ValueError, "H is 0"),
    (lambda: masks.softcap(0), ValueError, "cap is 0; pass a positive number"),
    (lambda: masks.softcap("50"), ValueError, "cap is '50'; pass a positive number"),
    (lambda: masks.documents([[0, 1], [0]]), TypeError, "ids is ..0, 1., .0..; pass whole numbers, .N_k,. or"),
    (lambda: masks.tree([[-1, 0], [-1]]), TypeError, "parents is ...1, 0., ..1..; pass whole numbers, .N_q,. or"),
    (
        lambda: masks.blocks([[True], []], 1, 1),
        TypeError,
        "table is ..True., ...; pass a matrix of bool, a row for",
    ),
    (lambda: masks.alibi([[1.0], []]), TypeError, "slopes is ..1.0., ...; pass numbers"),
    (lambda: masks.alibi(10**400), ValueError, "slopes is 1000*; pass finite numbers"),
    (lambda: masks.alibi(True), TypeError, "slopes is True; pass numbers"),
    (lambda: masks.alibi(["1"]), TypeError, "slopes is .'1'.; pass numbers"),
    (lambda: masks.causal().on(-1, 4), ValueError, "N_q is -1; accepted are whole numbers of at least 0"),
    (lambda: masks.causal().on("3", 4), TypeError, "N_q is '3'; accepted are whole numbers"),
    (lambda: masks.causal().on(3, 4.0), TypeError, "N_k is 4.0; accepted are whole numbers"),
    (
        lambda: masks.resolve(masks.causal, False, 2, 2),
        TypeError,
        r"mask is causal itself; call it: masks.causal\(\)",
    ),
    (lambda: masks.causal() & masks.window, TypeError, r"mask is window itself; call it: masks.window\(...\)"),
    (
        lambda: masks.documents([[0]] * 2) & masks.documents([[0]] * 3),
        ValueError,
        "one mask is made for 2 sequences and the other for 3",
    ),
    (lambda: masks.causal() & F, TypeError, "mask is of type function; pass one of flashlib.masks"),
    (lambda: masks.causal() | masks.softcap(2.0), ValueError, "softcap changes scores, and a union does not say"),
    (lambda: masks.alibi([1, 2]) & masks.alibi([1, 2, 3]), ValueError, "is made for 2 heads and the other for 3"),
    (lambda: masks.documents([0, 1]).on(2, 3), ValueError, "ids has shape .2,., and there are 3 keys"),
    (
        lambda: masks.blocks([[True]], 2, 2).on(2, 3),
        ValueError,
        r"have \(1, 2\) blocks of 2 x 2: is it a table of",
    ),
    (
        lambda: masks.alibi([1, 2]).on(4, 4),
        ValueError,
        "is made for 2 heads, and this is one head.*alibi.slopes.h",
    ),
    (lambda: masks.documents([[0, 1], [0, 0]]).on(2, 2), ValueError, "is made for 2 sequences.*documents.ids.b"),
    (lambda: masks.resolve(F, False, 2, 2), TypeError, "mask is of type function; pass one of flashlib.masks"),
    (lambda: masks.resolve(None, 1, 2, 2), TypeError, "causal is 1; pass True or False"),
    (lambda: masks.fitted(masks.alibi([1, 2]), False, 1, 3, 4, 4), ValueError, "is made for 2 heads, and Q has 3"),
    (lambda: masks.fitted(masks.documents([[0], [0]]), False, 3, 1, 1, 1), ValueError, "is made for 2 sequences"),
]


def test_bad_masks_are_refused_with_a_sentence():
    others = []
    for make, error, words in REFUSED:
        try:
            others.append((words, make()))
        except error as refused:
            if not re.search(words, str(refused)):
                others.append((words, refused))
    assert not others, "these were not refused, or in other words"


def test_parameters_with_defaults_belong_to_the_function():
    expected = masks.window(3, 0).on(6, 6).seen(*ALL)
    for f in (
        lambda r, c, w=3: (r - c >= 0) & (r - c <= w),
        lambda r, c, low=0, high=3: (r - c >= low) & (r - c <= high),
        functools.partial(lambda r, c, low, high: (r - c >= low) & (r - c <= high), low=0, high=3),
        functools.partial(lambda w, r, c: (r - c >= 0) & (r - c <= w), 3),
        lambda b, h, r, c, w=3: (r - c >= 0) & (r - c <= w + b + h),
    ):
        assert np.array_equal(masks.from_function(f).on(6, 6).seen(*ALL), expected)


@pytest.mark.parametrize("N_q, N_k", [(6, 6), (4, 2), (2, 5)])
def test_a_bound_beyond_all_positions_has_no_effect(N_q, N_k):
    for far in (sys.maxsize, 2**30, 2**70):
        assert masks.window(far, 0) == masks.causal() and masks.window(far, far) == masks.window(None, None)
        rows, cols = slice(0, N_q), slice(0, N_k)
        tiles = masks.prefix(far).on(N_q, N_k)
        assert tiles.seen(rows, cols).all() and not tiles.cut(rows, cols)


def test_a_mask_that_does_not_fit_is_refused_before_any_work(rng):
    Q, K, V, dO = problem(rng, 4, 6)
    O, lse = naive.attention(Q, K, V)
    bad, words = masks.documents([0, 1]), "ids has shape .2,., and there are 6 keys"
    for call in (
        lambda: naive.attention(Q, K, V, mask=bad),
        lambda: tiled.attention(Q, K, V, mask=bad),
        lambda: tiled.steps(Q, K, V, mask=bad),
        lambda: naive.backward(Q, K, V, O, lse, dO, mask=bad),
        lambda: tiled.backward(Q, K, V, O, lse, dO, mask=bad),
        lambda: tiled.backward_steps(Q, K, V, O, lse, dO, mask=bad, wrt="q"),
        lambda: cost.fa2_traffic(4, 6, 3, B_r=2, B_c=2, dtype="float32", mask=bad),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_function_that_returns_numbers_is_refused():
    with pytest.raises(TypeError, match="returned int64; it must return bool: a comparison"):
        tiled.attention(*np.ones((3, 4, 2)), mask=masks.from_function(lambda r, c: r - c))


ODD = {  # wrong results of a mask's function, for r (6, 1) and c (1, 6)
    "nothing": (lambda r, c: None, TypeError, "returned NoneType; it must return bool: a comparison"),
    "a number": (lambda r, c: 1, TypeError, "returned int; it must return bool"),
    "a list": (lambda r, c: [True], TypeError, "returned list; it must return bool"),
    "one axis of another size": (
        lambda r, c: np.ones((6, 5), bool),
        ValueError,
        r"returned the shape \(6, 5\) for r of \(6, 1\) and c of \(1, 6\); .* that broadcasts to \(6, 6\)",
    ),
    "an axis more": (lambda r, c: (r >= c)[None], ValueError, r"returned the shape \(1, 6, 6\)"),
}


@pytest.mark.parametrize("f, error, words", ODD.values(), ids=ODD)
def test_a_wrong_result_of_a_function_is_refused_in_words(f, error, words):
    tiles = masks.from_function(f).on(6, 6)
    with pytest.raises(error, match="the function of the mask " + words):
        tiles.seen(*ALL)


def test_a_function_of_tensors_returns_tensors():
    torch = pytest.importorskip("torch")
    r, c = torch.arange(6)[:, None], torch.arange(6)
    mask = masks.from_function(lambda r, c: np.ones((6, 6), bool))
    words = "was given a torch tensor and returned a NumPy array: look things up in the same kind as r and c"
    with pytest.raises(TypeError, match=words):
        mask.sees(masks.Place(6, 6), r, c)
    mask = masks.from_function(lambda b, h, r, c: (r >= c) & (b < 1))
    place = masks.Place(6, 6, torch.arange(3)[:, None, None, None], torch.arange(2)[:, None, None])
    assert mask.sees(place, r, c).shape == (3, 1, 6, 6)


def test_a_wrong_result_of_a_score_is_refused_in_words(rng):
    S = rng.standard_normal((6, 6))
    for f, error, words in (
        (lambda S, h, r, c: None, TypeError, "returned None for a NumPy array; it must return the same kind as S"),
        (lambda S, h, r, c: 1.0, TypeError, "returned 1.0 for a NumPy array"),
        (lambda S, h, r, c: S[:5], ValueError, r"returned the shape \(5, 6\), and S has \(6, 6\)"),
        (lambda S, h, r, c: S[None], ValueError, r"returned the shape \(1, 6, 6\)"),
    ):
        with pytest.raises(error, match="the function of the score " + words):
            masks.score(f, G).on(6, 6).scores(S, *ALL)
        if words != "returned 1.0 for a NumPy array":  # a slope may be the same everywhere
            with pytest.raises(error, match="the slope of the score " + words):
                masks.score(G, f).on(6, 6).gradient(S, S, *ALL)
    torch = pytest.importorskip("torch")
    with pytest.raises(
        TypeError, match="returned a NumPy array for a torch tensor; it must return the same kind as S"
    ):
        masks.score(lambda T, h, r, c: S, G).score(torch.from_numpy(S), masks.Place(6, 6), *np.ogrid[ALL])


def test_a_soft_cap_takes_a_number():
    place = masks.Place(1, 1)
    assert masks.softcap(2.0).score(1.0, place, 0, 0) == 2 * np.tanh(0.5)
    assert masks.softcap(2.0).slope(1.0, place, 0, 0) == 1 - np.tanh(0.5) ** 2


def test_a_score_and_its_slope_may_depend_on_less_than_S(rng):
    Q, K, V, dO = problem(rng, 6, 6)
    results = []
    for f, slope in (
        (lambda S, h, r, c: 0.1 * c, lambda S, h, r, c: 0),
        (lambda S, h, r, c: 0.1 * c + 0 * S, lambda S, h, r, c: 0 * S),
    ):
        mask = masks.score(f, slope)
        O, lse = tiled.attention(Q, K, V, mask=mask, B_r=4, B_c=4)
        results.append((O, lse, *tiled.backward(Q, K, V, O, lse, dO, mask=mask, B_r=4, B_c=4)))
    assert all(map(np.array_equal, *results))


READ = {
    "causal()": masks.causal(),
    "window(3, None)": masks.window(3, None),
    "prefix(7)": masks.prefix(7),
    "softcap(50.0)": masks.softcap(50),
    "alibi(0.5)": masks.alibi(0.5),
    "alibi(<4 slopes>)": masks.alibi([1, 2, 3, 4]),
    "tree([-1, 0, 0])": masks.tree([-1, 0, 0]),
    "tree(<9 candidates>)": masks.tree(range(-1, 8)),
    "tree(<2 sequences of 2 candidates>)": masks.tree([[-1, 0], [-1, -1]]),
    "documents(<2 sequences of 3 tokens>)": masks.documents([[0, 0, 1], [0, 1, 1]]),
    "blocks(<1 x 2 tiles>, 64, 32)": masks.blocks([[True, False]], 64, 32),
    "dense(<(1, 1, 1, 2)>)": masks.dense([[True, False]]),
    "causal() & documents(<3 documents of 5 tokens>)": masks.causal() & masks.documents([4, 4, 0, 2, 2]),
    "(causal() | prefix(2)) & softcap(2.0)": (masks.causal() | masks.prefix(2)) & masks.softcap(2),
    "causal() & prefix(2) | window(1, 1)": masks.causal() & masks.prefix(2) | masks.window(1, 1),
    "from_function(<lambda>)": masks.from_function(lambda r, c: r > c),
    "from_function(<partial>)": masks.from_function(functools.partial(lambda r, c: r > c)),
    "score(G, G)": masks.score(G, G),
    "Mask()": masks.Mask(),
    "<documents(<2 sequences of 2 tokens>), 3 times>": masks.repeated(masks.documents([[0, 0], [0, 1]]), 2, 3),
}


def test_a_mask_reads_as_python_where_it_can():
    names = {name: getattr(masks, name) for name in masks.__all__} | {"G": G}
    assert [repr(mask) for mask in READ.values()] == list(READ)
    written = [text for text in READ if "<" not in text]
    assert written and [repr(eval(text, names)) for text in written] == written


def test_a_function_may_ignore_its_arguments():
    tiles = masks.from_function(lambda r, c: True).on(3, 4)
    assert tiles.seen(*tiles.all).all() and tiles.seen(*tiles.all).shape == (3, 4)


def test_masks_of_heads_and_batches_are_evaluated_at_their_place():
    seen = masks.from_function(lambda b, h, r, c: c <= r + h - b)
    r, c = np.ogrid[0:5, 0:5]
    for b, h in [(0, 0), (1, 0), (0, 2)]:
        assert np.array_equal(seen.sees(masks.Place(5, 5, b, h), r, c), c <= r + h - b)
    slopes = masks.alibi_slopes(4)
    assert slopes.tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]
    for h in range(4):
        changed = masks.alibi(slopes).score(np.zeros((5, 5)), masks.Place(5, 5, 0, h), r, c)
        assert np.array_equal(changed, -slopes[h] * abs(r - c))


@pytest.mark.parametrize("one, each", [(0.5, [0.1, 0.2]), ([0.1, 0.2], 0.5), (0.5, [0.25])])
def test_one_slope_applies_to_all_heads(one, each):
    mask = masks.alibi(one) & masks.alibi(each)
    H = max(np.size(one), np.size(each))
    assert mask.heads == H and (masks.causal() & masks.alibi(one)).heads == np.size(one)
    r, c = np.ogrid[0:5, 0:5]
    for h, slope in enumerate(np.add(one, each).reshape(-1)):
        changed = mask.score(np.zeros((5, 5)), masks.Place(5, 5, 0, h), r, c)
        assert np.allclose(changed, -slope * abs(r - c))


@pytest.mark.parametrize("mask", [masks.documents([[4, 4, 7]]), masks.tree([[-1, 0, 0]])], ids=["ids", "parents"])
def test_a_row_for_one_sequence_applies_to_all_sequences(mask):
    assert mask.batches is None and masks.fitted(mask, False, 2, 1, 3, 3) is mask
    r, c = np.ogrid[0:3, 0:3]
    assert np.array_equal(mask.sees(masks.Place(3, 3, 1), r, c), mask.sees(masks.Place(3, 3, 0), r, c))


def test_a_tile_without_rows_is_hidden_and_not_cut():
    for kind in KINDS:
        tiles = masked.draw(kind, np.random.default_rng(0), 0, 5).mask.on(0, 5)
        assert tiles.hidden(slice(0, 0), slice(0, 5)) and not tiles.cut(slice(0, 0), slice(0, 5))


def test_counts_need_no_matrix_of_tiles():
    N = 10**6  # tiles of 64 x 64 would be 2.4e8
    tiles = cost.tiles_per_row_block(N, N, B_r=64, B_c=64, mask=masks.window(1023, 0))
    assert tiles.max() == 17 and tiles[0] == 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("cap", [1e-3, 0.1, 50.0])
def test_a_soft_cap_of_huge_scores_is_the_cap_without_a_warning(dtype, cap):
    S = np.array([-1, 1], dtype) * np.finfo(dtype).max
    place, at = masks.Place(1, 2), (np.array([[0]]), np.array([0, 1]))
    mask = masks.softcap(cap)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(mask.score(S[None], place, *at), np.array([[-cap, cap]], dtype))
        np.testing.assert_array_equal(mask.slope(S[None], place, *at), 0)
