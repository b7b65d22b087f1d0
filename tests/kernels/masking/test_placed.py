"""The kernels under the mask of a part: O, lse and gradients are those of its rows and keys in the whole."""

import numpy as np
import pytest
import torch

from flashlib import masks
from flashlib.kernels import backward, forward
from flashlib.kernels.launch import planning
from flashlib.kernels.masking import bits, prepare
from flashlib.kernels.masking.device_side import Closed
from flashlib.kernels.masking.pass_sizes import PassSizes
from tests import masked
from tests.kernels import drawn, gradients
from tests.kernels.masking.test_masks import LOADING, SMALL, WAYS, check, one_of, tensors
from tests.masks.test_parts import draw_runs, listed
from tests.tiers import amounts

N_Q, N_K = 45, 61
WAYS_TO_STAND = [  # layouts of the rows and of the keys
    ("zigzag", "zigzag"),
    ("striped", "contiguous"),
    ("striped", "striped"),
    ("contiguous", "zigzag"),
    ("contiguous", "contiguous"),
    ("zigzag", "striped"),
    ("one", "one"),
]
KINDS = {
    **{kind: lambda rng, *sizes, kind=kind: drawn.case(kind, rng, *sizes[2:]).mask for kind in masked.KINDS},
    **drawn.WIDE,
    "tree": lambda rng, B, H, N_q, N_k: masks.tree(rng.integers(-1, np.arange(N_q))),
}
FEW = [  # one for each way to define what a part sees and how its scores change
    "prefix", "blocks", "alibi", "score", "union", "tree",
    "causal documents of sequences", "slopes of heads", "function of heads with a kernel",
    "score of heads", "new kind of heads",
]  # fmt: skip
IN_STRIPES = masks.from_function(lambda r, c: (r - c) % 5 == 0, kernel=drawn.in_stripes)


def draw(rng, kind, rows, keys):
    """Return the part of a mask of this kind for rows and keys in these layouts, and their numbers."""
    rows, keys = draw_runs(rng, rows, N_Q), draw_runs(rng, keys, N_K)
    part = masks.placed(KINDS[kind](rng, 2, 2, N_Q, N_K), N_Q, N_K, rows, keys)
    return part, len(listed(rows)), len(listed(keys))


def hold(part, n_q, n_k, device, kind, dtype=torch.float32):
    """Compare O, lse and the gradients of random tensors under a part with fp64; past their ends is NaN."""
    Q, K, V, dO = tensors(device, n_q, n_k, dtype=dtype, heads=(2, 2, 1))
    check(Q, K, V, mask=part, B_r=16, B_c=16, descriptors=one_of(LOADING, kind, KINDS) if n_q * n_k else None)
    gradients.check(Q, K, V, dO, mask=part, **one_of(WAYS.values(), kind, KINDS) if n_q * n_k else {}, **SMALL)


@pytest.mark.parametrize("rows, keys", WAYS_TO_STAND)
@pytest.mark.parametrize("amount, kind", amounts(KINDS, few=FEW))
def test_every_kind_of_mask_is_right_at_the_place_of_a_part(amount, kind, rows, keys, device, rng, poisoned):
    hold(*draw(rng, kind, rows, keys), device, kind)


@pytest.mark.parametrize(
    "amount, kind", amounts(["causal", "documents", "blocks", "stripes", "union"], few=["documents", "stripes"])
)
def test_many_pieces_are_taken_if_no_score_is_changed(amount, kind, device, rng, poisoned):
    hold(*draw(rng, kind, "three pieces", "three pieces"), device, kind)


@pytest.mark.parametrize(
    "amount, left, right",
    [
        ("few", None, -9),
        ("few", -5, None),
        ("all", 40, -20),
        ("few", -20, 40),
        ("all", 3, -4),
        ("all", 1000, 1000),
    ],
)
@pytest.mark.parametrize("size", [(61, 37), (37, 61), (45, 45)], ids=str)
def test_the_bounds_of_a_window_may_be_negative(amount, left, right, size, device, poisoned):
    hold(masks.Window(left, right), *size, device, "window")


@pytest.mark.parametrize(
    "amount, kind",
    amounts(
        ["causal documents of sequences", "slopes of heads", "function with a kernel"], few=["slopes of heads"]
    ),
)
def test_half_precision(amount, kind, device, rng, poisoned):
    hold(*draw(rng, kind, "zigzag", "zigzag"), device, kind, torch.bfloat16)


def asked(n_q, n_k, transposed=False):
    return PassSizes(1, 1, n_q, n_k, 16, 16, torch.device("cpu"), transposed)


@pytest.mark.parametrize("transposed", [False, True])
def test_windows_of_a_part_are_closed_forms_without_numbers_in_memory(transposed):
    for mask in (masks.causal(), masks.window(50, 0), masks.causal() & masks.window(9, 30)):
        for rows, keys in ((range(100, 200), range(40, 140)), (range(3, 400, 4), range(1, 400, 4))):
            part = masks.placed(mask, 400, 400, rows, keys)
            args, code = prepare.prepared_mask(part, False, asked(len(rows), len(keys), transposed))
            assert isinstance(args.bounds, Closed) and args.order is None and not code.placed.value


@pytest.mark.parametrize(
    "rows, keys, causal",
    [
        (range(40, 60), range(40, 60), True),
        ((range(4, 8), range(24, 28)), (range(4, 8), range(24, 28)), True),
        (range(3, 80, 4), range(0, 80, 4), True),
        (range(40, 60), range(0, 40), False),
    ],
)
def test_a_part_that_is_causal_or_whole_runs_the_code_without_a_mask(rows, keys, causal):
    """The recorded kernels, and those for Hopper, take no mask."""
    Q, K = (torch.zeros(1, 1, len(listed(given)), 16) for given in (rows, keys))
    assert prepare.checked_mask(masks.placed(masks.causal(), 80, 80, rows, keys), False, Q, K) == (None, causal)


def test_plans_of_parts_that_are_causal_or_whole_are_kept_for_parts_made_anew(device):
    Q, K, V, dO = tensors(device, 32, 32)
    saved = forward.attention(Q, K, V)
    before = len(forward.PLANS.of_masks), len(backward.PLANS.of_masks)
    for rows in (range(0, 32), range(48, 80)):
        part = masks.placed(masks.causal(), 80, 80, rows, range(0, 32))
        forward.attention(Q, K, V, mask=part)
        backward.backward(Q, K, V, *saved, dO, mask=part)
    assert (len(forward.PLANS.of_masks), len(backward.PLANS.of_masks)) == before


class Launched(Exception):
    """A kernel was launched."""


@pytest.mark.parametrize(
    "mask",
    [
        masks.causal(),
        masks.causal() & IN_STRIPES,
        masks.alibi(0.5) & masks.window(10, 0),
        masks.documents(np.arange(80) // 40),
        masks.blocks(np.tri(5, dtype=bool), 16, 16),
    ],
    ids=repr,
)
def test_a_hidden_part_launches_nothing(mask, device, poisoned, monkeypatch):
    def launch(*_, **options):
        raise Launched

    part = masks.placed(mask, 80, 80, range(0, 32), range(48, 80))
    Q, K, V, dO = tensors(device, 32, 32, dtype=torch.float16)
    monkeypatch.setattr(planning.Launch, "__call__", launch)
    with pytest.raises(Launched):
        forward.attention(Q, K, V)
    for out_dtype in (None, torch.float32):
        O, lse = forward.attention(Q, K, V, mask=part, out_dtype=out_dtype)
        assert O.dtype == (out_dtype or Q.dtype) and O.shape == Q.shape and not O.any()
        assert (lse == -torch.inf).all() and lse.shape == Q.shape[:3]
        given = backward.backward(Q, K, V, O.half(), lse, dO, mask=part, out_dtype=out_dtype)
        for grad, X in zip(given, (Q, K, V), strict=True):
            assert grad.dtype == (out_dtype or X.dtype) and grad.shape == X.shape and not grad.any()


def test_a_hidden_part_is_checked_as_any_other(device):
    part = masks.placed(masks.causal(), 80, 80, range(0, 32), range(48, 80))
    Q, K, V, dO = tensors(device, 32, 32)
    with pytest.raises(ValueError, match="B_r is 17"):
        forward.attention(Q, K, V, mask=part, B_r=17)
    with pytest.raises(ValueError, match="num_stages is 0"):
        backward.backward(Q, K, V, Q, torch.zeros(1, 2, 32, device=device), dO, mask=part, num_stages=0)
    with pytest.raises(TypeError, match="out_dtype is torch.float16"):
        forward.attention(Q, K, V, mask=part, out_dtype=torch.float16)


def test_a_function_of_a_part_with_a_kernel_is_not_evaluated_by_torch(device, rng, monkeypatch):
    monkeypatch.setattr(bits, "mask_bits", lambda *_: pytest.fail("torch was asked"))
    Q, K, V, _ = tensors(device, 30, 40)
    for mask in (IN_STRIPES, IN_STRIPES & masks.documents(np.arange(80) // 30), masks.prefix(7) & IN_STRIPES):
        part = masks.placed(mask, 80, 80, (range(0, 15), range(60, 75)), range(1, 80, 2))
        check(Q, K, V, mask=part, B_r=16, B_c=16)


LIMIT = [40]


def test_a_function_of_a_part_is_evaluated_anew_when_it_changes(device):
    part = masks.placed(masks.from_function(lambda r, c: c < LIMIT[0]), 80, 80, range(0, 40), range(20, 60))
    Q, K, V, _ = tensors(device, 40, 40)
    for LIMIT[0] in (40, 30):
        check(Q, K, V, mask=part, B_r=16, B_c=16)


def test_scores_in_many_pieces_are_refused(device):
    part = masks.placed(masks.alibi(0.5), 80, 80, (range(3), range(5, 9), range(20, 30)), range(40))
    Q, K, V, _ = tensors(device, 17, 40)
    with pytest.raises(ValueError, match="kernels change scores of a part in one or two pieces of equal steps"):
        forward.attention(Q, K, V, mask=part)


def test_vmap_takes_a_part(device, rng):
    from flashlib.kernels import autograd

    part = masks.placed(masks.documents(np.arange(80) // 30), 80, 80, range(1, 80, 2), range(0, 40))
    Q, K, V, _ = (torch.stack([X, -X]) for X in tensors(device, 40, 40))
    given = torch.func.vmap(lambda *X: autograd.attention(*X, mask=part).O)(Q, K, V)
    for O, *X in zip(given, Q, K, V, strict=True):
        torch.testing.assert_close(O, check(*X, mask=part).O)
